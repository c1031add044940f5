"""Tables of which some rows are taken as public: drawn like the private ones, or of other people.

Labels are 0 and 1. `facts["others"]` tells which rows are of other people, or `facts["elsewhere"]` the table that has
them.
"""

from __future__ import annotations

import functools

import numpy as np
from framework import Dataset
from stored_tables import load_benchmark

FIRST_MONTHS = 10_000  # rows


def young(X):
    return X[:, 0] < 30


def early(X):
    return np.arange(len(X)) < FIRST_MONTHS


def north(X):
    return X[:, 6] > 36.0


TABLES = {
    "adult": {"others": young},
    "acsincome_co": {"elsewhere": "acsincome_ne"},
    "electricity": {"others": early},
    "california": {"others": north},
}
with_public_rows = [
    Dataset(
        f"{name}, with public rows",
        "stored",
        functools.partial(load_benchmark, name),
        classification=name != "california",
        experiments=("warm_starts",),
        stored=name,
        facts={"shown": name, **facts},
    )
    for name, facts in TABLES.items()
]
