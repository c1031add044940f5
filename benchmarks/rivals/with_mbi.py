"""Synthetic rows from noisy marginals (package mbi) and scikit-learn on these, in an environment of their own.

Columns are cut to 8 values and the target to 16: their own values where there are no more, else equal parts of the true
ranges, which it is told. The mechanism is that of mbi_marginals.py with all pairs of a column and the target. Asked
with `levels`, it gives synthetic rows of the codes it was sent, and fits nothing.
"""

from __future__ import annotations

import warnings

import numpy as np
from exchange import answer
from mbi_marginals import synthetic
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

COLUMN_VALUES, TARGET_VALUES = 8, 16


def scores(asked: dict[str, np.ndarray]) -> np.ndarray:
    warnings.simplefilter("ignore")
    if "levels" in asked:
        levels = [int(size) for size in asked["levels"]]
        return synthetic(asked["codes"], levels, float(asked["rho"]), bool(asked["label"]), rng_of(asked))
    classes, table = int(asked["classes"]), np.column_stack([asked["X"], asked["y"]])
    most = [COLUMN_VALUES] * (table.shape[1] - 1) + [TARGET_VALUES]
    coded = [codes_of(values, count) for values, count in zip(table.T, most, strict=True)]
    codes = np.column_stack([codes for codes, _ in coded])
    made = synthetic(codes, [len(values) for _, values in coded], float(asked["rho"]), True, rng_of(asked))
    table = np.column_stack([values[made[:, j]] for j, (_, values) in enumerate(coded)])
    X, y = table[:, :-1], table[:, -1]
    if classes and len(np.unique(y)) < 2:  # all synthetic labels are alike
        return np.full(len(asked["held_out"]), (2.0 * y[0] - 1.0) * np.log(2.0 * len(y)))
    model = LogisticRegression(max_iter=2000) if classes else Ridge(1.0)
    model = make_pipeline(StandardScaler(), model).fit(X, y)
    return model.decision_function(asked["held_out"]) if classes else model.predict(asked["held_out"])


def codes_of(values: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray]:
    """A code for each entry, and the number that each code stands for."""
    known = np.unique(values)
    if len(known) <= most:
        return np.searchsorted(known, values), known
    edges = np.linspace(known[0], known[-1], most + 1)
    codes = np.clip(np.searchsorted(edges, values, side="right") - 1, 0, most - 1)
    return codes, 0.5 * (edges[1:] + edges[:-1])


def rng_of(asked: dict[str, np.ndarray]) -> np.random.Generator:
    return np.random.default_rng(int(asked["seed"]))


if __name__ == "__main__":
    answer(scores)
