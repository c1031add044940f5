"""Labels of a logistic model in three of ten normal columns, for the counts of scores: `load(rng)` draws one anew.

`facts`: rows to train on, strength of the scores, share of labels that are drawn at random.
"""

from __future__ import annotations

import functools
import math

import numpy as np
from framework import Dataset
from scipy.special import expit

HELD_OUT, COLUMNS = 5_000, 10
CASES = {  # rows, strength, random labels
    "nearly separable, 1,000 rows": (1_000, 12.0, 0.0),
    "nearly separable, 5,000 rows": (5_000, 12.0, 0.0),
    "weak signal, 1,000 rows": (1_000, 1.0, 0.0),
    "no signal, 1,000 rows": (1_000, 0.0, 0.0),
    "strong, a fifth of the labels at random, 5,000 rows": (5_000, 12.0, 0.2),
    "strong, a fifth of the labels at random, 20,000 rows": (20_000, 12.0, 0.2),
}


def load(rows, strength, random, rng=None):
    """Rows, of which the last 5,000 are held out, and labels 0 and 1."""
    rng = np.random.default_rng(3) if rng is None else rng
    X = rng.normal(size=(rows + HELD_OUT, COLUMNS))
    y = (rng.random(len(X)) < expit(strength * X[:, :3].sum(axis=1) / math.sqrt(3.0))).astype(int)
    return X, np.where(rng.random(len(X)) < random, rng.integers(0, 2, len(X)), y)


scored = [
    Dataset(name, "generated", functools.partial(load, *case), True, ("score_check",), facts={"rows": case[0]})
    for name, case in CASES.items()
]
