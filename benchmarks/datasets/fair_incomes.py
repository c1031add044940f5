"""Incomes in [0, 1] without the column of the sex; `load` gives X, labels 0 and 1, and who is a man."""

import functools

import numpy as np
from framework import Dataset
from stored_tables import stored_table

HIDDEN = "SEX=Male"
LARGEST = {"AGEP": 99.0, "SCHL": 24.0, "WKHP": 99.0}  # public, by the meaning of the columns; all others are 0 or 1


def load(name):
    data = stored_table(name)
    names = data["feature_names"]
    X = data["X"] / np.array([LARGEST.get(str(column), 1.0) for column in names])
    return np.clip(X[:, names != HIDDEN], 0.0, 1.0), data["y"], data["sensitive"]


fair_incomes = [
    Dataset(
        f"{name} without the sex",
        f"folktables, ACSIncome, {state}",
        functools.partial(load, name),
        True,
        ("fair-models",),
        name,
        facts={"place": name},
    )
    for name, state in (("acsincome_co", "Colorado"), ("acsincome_ne", "Nebraska"))
]
