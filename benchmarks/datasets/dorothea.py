"""Dorothea, 800 x 88,119, sparse: logistic + L1.

With this strength the error at w = 0 is the printed one of DP-SGD, which never left 0 (0.78); the optimum then has the
printed number of non-zeros (72).
"""

from framework import Dataset
from stored_tables import load_benchmark

from discreet.problem.losses import Logistic
from discreet.problem.penalties import L1


def load():
    X, y = load_benchmark("dorothea")
    return X, 2.0 * y - 1.0


dorothea = Dataset(
    "dorothea",
    "UCI Dorothea, training rows, columns that are not empty",
    load,
    classification=True,
    experiments=("greedy",),
    stored="dorothea",
    dear=True,
    facts={
        "loss": Logistic(),
        "penalty": L1(0.01005),
        "support": 72,
        "greedy": {"dp-cd": 0.77, "dp-sgd-claimed": 0.78, "dp-gcd-claimed": 0.64},
        "printed support": {"dp-cd": "1 / 1", "dp-sgd-claimed": "0 / 0", "dp-gcd-claimed": "1 / 0"},
        "printed settings": {
            "dp-cd": (3, 0.045, 4.64),
            "dp-sgd-claimed": (0.001, 1e-4, 1e-6),
            "dp-gcd-claimed": (2, 12.6, 2.15),
        },
    },
)
