"""Tables whose columns are split between two to four holders; `load` gives a `vertical.case.Case`."""

from __future__ import annotations

import functools

import numpy as np
from framework import Dataset
from stored_tables import SOURCES, stored_table
from vertical.case import Case

from discreet.problem.losses import Logistic, Loss, Squared

# Which columns each holder has, by the beginnings of their names; the label holder is the last.
SPLITS: dict[str, dict[str, tuple[str, ...]]] = {
    "electricity, 2 holders": {
        "market": ("nswprice", "vicprice"),
        "grid": ("date", "day", "period", "nswdemand", "vicdemand", "transfer"),
    },
    "electricity, 2 states": {
        "victoria": ("vicprice", "vicdemand", "transfer"),
        "new south wales": ("date", "day", "period", "nswprice", "nswdemand"),
    },
    "electricity, 3 holders": {
        "market": ("nswprice", "vicprice"),
        "grid": ("nswdemand", "vicdemand", "transfer"),
        "customer": ("date", "day", "period"),
    },
    "california, 2 holders": {
        "tax office": ("MedInc", "Population", "AveOccup"),
        "land registry": ("HouseAge", "AveRooms", "AveBedrms", "Latitude", "Longitude"),
    },
    "california, 4 holders": {
        "tax office": ("MedInc",),
        "census": ("Population", "AveOccup"),
        "map": ("Latitude", "Longitude"),
        "land registry": ("HouseAge", "AveRooms", "AveBedrms"),
    },
    "acsincome_co, 2 holders": {
        "registry": ("MAR", "RELP", "RAC1P", "POBP", "SCHL"),
        "employer": ("AGEP", "WKHP", "COW", "OCC", "SEX"),
    },
    "acsincome_co, 3 holders": {
        "employer": ("WKHP", "COW", "OCC"),
        "registry": ("MAR", "RELP", "RAC1P", "POBP"),
        "school": ("AGEP", "SCHL", "SEX"),
    },
}
# Public limits of the columns that are not indicators or fractions, by the meaning of their numbers.
LIMITS = {
    "day": (1, 7), "MedInc": (0, 15), "HouseAge": (0, 60), "AveRooms": (0, 20), "AveBedrms": (0, 5),
    "Population": (0, 10_000), "AveOccup": (0, 20), "Latitude": (32, 42), "Longitude": (-125, -114),
    "AGEP": (16, 96), "SCHL": (1, 24), "WKHP": (0, 99),
}  # fmt: skip
TARGETS = {"california": (0.0, 5.0)}


def load(name: str) -> Case:
    table = name.split(",", maxsplit=1)[0]
    data = stored_table(table)
    X, y, names = data["X"], data["y"], [str(column) for column in data["feature_names"]]
    starts = SPLITS[name]
    columns = {
        holder: [j for j, column in enumerate(names) if column.split("=")[0] in own] for holder, own in starts.items()
    }
    assert sorted(j for own in columns.values() for j in own) == list(range(len(names))), "every column has one holder"
    bounds = np.array([LIMITS.get(column, (0, 1)) for column in names], dtype=np.float64).T
    loss: Loss = Squared() if table in TARGETS else Logistic()
    y = y if table in TARGETS else 2.0 * y - 1.0
    X = np.clip(X, *bounds)
    order = np.random.default_rng(0).permutation(len(y))
    test, train = order[: len(y) // 5], order[len(y) // 5 :]
    return Case(name, loss, columns, bounds, X[train], y[train], X[test], y[test], TARGETS.get(table))


vertical_tables = [
    Dataset(name, SOURCES[table], functools.partial(load, name), table not in TARGETS, ("vertical",), table)
    for name, table in ((name, name.split(",", maxsplit=1)[0]) for name in SPLITS)
]
