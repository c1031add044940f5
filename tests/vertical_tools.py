"""A small vertical split, for its tests and its audit."""

from __future__ import annotations

import numpy as np

from discreet import Budget, Problem
from discreet.federated.vertical import Holder, HolderFacts, plan_vertical
from discreet.privacy.random.generator import seeded_generator
from discreet.problem.losses import Squared

COLUMNS = {"bank": 2, "shop": 3, "labels": 2}


def table(n=200, seed=0):
    """Correlated columns and a target that needs all of them."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 7)) @ (np.eye(7) + 0.3 * rng.normal(size=(7, 7)))
    return X, X @ rng.normal(size=7) + 0.5 * rng.normal(size=n) + 1.0


def cut(X):
    """The columns of each holder."""
    ends = np.cumsum(list(COLUMNS.values()))
    return dict(zip(COLUMNS, np.split(X, ends[:-1], axis=1), strict=True))


def small_plan(rows, problem=None, budget=None, bounds=(-10.0, 10.0), **options):
    budget = Budget(4.0, 1e-6) if budget is None else budget
    facts = [HolderFacts(name, columns, budget, bounds) for name, columns in COLUMNS.items()]
    return plan_vertical(problem or Problem(Squared()), facts, rows, labels="labels", **options)


def holders(plan, X, y, seed=3, kind=Holder, **weights):
    """All holders, each with a seed of its own."""
    streams = dict(zip(COLUMNS, seeded_generator(seed).spawn(len(COLUMNS)), strict=True))
    return {
        name: kind(plan, name, part, y if name == "labels" else None, weights.get(name), streams[name])
        for name, part in cut(X).items()
    }
