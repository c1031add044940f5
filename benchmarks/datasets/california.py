"""California housing, 20,640 x 8: the median price of a block. Raw ("imbalanced" in the papers) and standardised.

The strengths are not printed. That of the standardised table gives the printed number of non-zeros (3), that of the raw
one an error of DP-CD after two passes near the printed one. The target is centred, as there is no intercept.
"""

from framework import Dataset
from stored_tables import load_benchmark

from discreet.data.synthetic import standardised
from discreet.problem.losses import Squared
from discreet.problem.penalties import L1

SOURCE = "StatLib houses, as scikit-learn gives it"
PASSES = (2, 5, 10, 20, 50)


def raw():
    X, y = load_benchmark("california")
    return X, y - y.mean()


def scaled():
    X, y = raw()
    return standardised(X), y


def uncentred():
    """With an intercept the target need not be centred."""
    return load_benchmark("california")


def uncentred_scaled():
    X, y = uncentred()
    return standardised(X), y


def solvers(load, papers):
    """For the comparison of all solvers, with a weak penalty."""
    return {"load": load, "penalty": L1(1e-3), "declarable": True, "papers": papers}


def printed(*numbers):
    return dict(zip(PASSES, numbers, strict=True))


california_raw = Dataset(
    "california-raw",
    SOURCE,
    raw,
    classification=False,
    experiments=("solvers", "table2", "table3"),
    stored="california",
    facts={
        "loss": Squared(),
        "penalty": L1(0.4),
        "title": "California (imbalanced)",
        "solvers": solvers(uncentred, {"DP-CD, tuned": (1.0, 1.24e-2), "DP-SGD, tuned": (1.0, 0.1068)}),
        "table2": {
            "dp-cd": printed(0.1708, 0.1232, 0.0598, 0.0287, 0.0124),
            "dp-sgd-claimed": printed(0.2799, 0.1863, 0.1476, 0.1094, 0.1068),
        },
        "table3": {
            "dp-cd": printed(0.0029, 0.0065, 0.0130, 0.0258, 0.0647),
            "dp-sgd": printed(0.0269, 0.0665, 0.1318, 0.2628, 0.6476),
        },
    },
)

california_standardised = Dataset(
    "california-standardised",
    SOURCE,
    scaled,
    classification=False,
    experiments=("solvers", "table2", "table3", "greedy"),
    stored="california",
    facts={
        "loss": Squared(),
        "penalty": L1(0.1),
        "support": 3,
        "greedy": {"dp-cd": 0.0024, "dp-sgd-claimed": 0.020, "dp-gcd-claimed": 0.00056},
        "printed support": {"dp-cd": "3 / 2", "dp-sgd-claimed": "3 / 5", "dp-gcd-claimed": "2 / 0"},
        "printed settings": {
            "dp-cd": (5, 20.2, 1),
            "dp-sgd-claimed": (20, 12.6, 2.15e-5),
            "dp-gcd-claimed": (4, 51.8, 1),
        },
        "title": "California (balanced)",
        "solvers": solvers(uncentred_scaled, {"DP-CD, tuned": (1.0, 7e-4), "DP-SGD, tuned": (1.0, 4.2e-3)}),
        "table2": {
            "dp-cd": printed(0.0007, 0.0011, 0.0012, 0.0010, 0.0017),
            "dp-sgd-claimed": printed(0.0351, 0.0226, 0.0125, 0.0087, 0.0042),
        },
        "table3": {
            "dp-cd": printed(0.0031, 0.0065, 0.0132, 0.0262, 0.0649),
            "dp-sgd": printed(0.0261, 0.0641, 0.1295, 0.2592, 0.6469),
        },
    },
)
