"""Strongly convex logistic regressions for output and objective perturbation: an L2 penalty of 0.01.

Columns are divided by their largest entries, so that all lie in [-1, 1] and nothing is clipped.
"""

import functools

import numpy as np
from framework import Dataset
from stored_tables import load_benchmark

from discreet.problem.losses import Logistic
from discreet.problem.penalties import L2

SOURCES = {"electricity": "Elec2, OpenML 151", "adult": "UCI Adult, categories as indicators"}


def load(name):
    X, y = load_benchmark(name)
    return X / np.maximum(np.abs(X).max(axis=0), 1e-12), 2.0 * y - 1.0


perturbation = [
    Dataset(
        f"{name} in [-1, 1], L2 0.01",
        source,
        functools.partial(load, name),
        classification=True,
        experiments=("perturbation",),
        stored=name,
        dear=name == "adult",
        facts={"loss": Logistic(), "penalty": L2(0.01)},
    )
    for name, source in SOURCES.items()
]
