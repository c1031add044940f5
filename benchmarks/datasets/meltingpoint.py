"""MeltingPoint of QSARdata, 4,401 x 202, in place of OpenML's mtp (4,450 x 202): least squares + L2, standardised.

The same collection of compounds after its package's curation; strength and errors are not printed.
"""

from framework import Dataset
from stored_tables import load_benchmark

from discreet.data.synthetic import standardised
from discreet.problem.losses import Squared
from discreet.problem.penalties import L2


def raw():
    return load_benchmark("meltingpoint")


def load():
    X, y = raw()
    return standardised(X), (y - y.mean()) / y.std()


meltingpoint = Dataset(
    "mtp (meltingpoint)",
    "R package QSARdata, in place of OpenML mtp",
    load,
    classification=False,
    experiments=("greedy",),
    stored="meltingpoint",
    facts={
        "loss": Squared(),
        "penalty": L2(1e-2),
        "printed settings": {
            "dp-cd": (3, 20.2, 0.0215),
            "dp-sgd-claimed": (20, 12.6, 2.15e-5),
            "dp-gcd-claimed": (7, 20.2, 0.464),
        },
    },
)

meltingpoint_raw = Dataset(
    "meltingpoint",
    "R package QSARdata",
    raw,
    classification=False,
    experiments=("solvers",),
    stored="meltingpoint",
    facts={"loss": Squared(), "solvers": {"penalty": L2(1e-3), "declarable": False}},
)
