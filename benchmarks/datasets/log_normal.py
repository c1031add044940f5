"""log1 and log2 of the thesis: 1,000 x 100 normal entries, log-normal weights of log-deviation 1 and 2, logistic + L2.

Neither strengths nor errors are printed, so that two strengths are shown.
"""

import functools

from framework import Dataset

from discreet.data.synthetic import quasi_sparse_labels
from discreet.problem.losses import Logistic
from discreet.problem.penalties import L2

STRENGTHS = (1e-2, 1e-1)
SETTINGS = {
    "log1": {"dp-cd": (10, 0.184, 1), "dp-sgd-claimed": (20, 0.184, 4.64e-4), "dp-gcd-claimed": (10, 3.09, 2.15)},
    "log2": {"dp-cd": (1, 0.754, 2.15), "dp-sgd-claimed": (20, 0.184, 4.64e-4), "dp-gcd-claimed": (20, 1.93, 0.464)},
}


def load(spread):
    X, y, _ = quasi_sparse_labels(spread=spread)
    return X, y


log_normal = [
    Dataset(
        f"{name}, alpha {strength:g}",
        "generated",
        functools.partial(load, spread),
        classification=True,
        experiments=("greedy", "sketched") if (name, strength) == ("log1", 0.1) else ("greedy",),
        facts={"loss": Logistic(), "penalty": L2(strength), "printed settings": SETTINGS[name]},
    )
    for name, spread in (("log1", 1.0), ("log2", 2.0))
    for strength in STRENGTHS
]
