"""Every loss, penalty and solver, crossed with small problems: a new solver joins the tests by its table row."""

from __future__ import annotations

import numpy as np

from discreet.losses import Huber, Logistic, Multinomial, OneVsRest, SmoothedHinge, Squared
from discreet.penalties import L1, L2, ElasticNet, Zero
from discreet.problem import Problem
from discreet.solvers import SOLVERS

LOSSES = [
    Squared(),
    Logistic(),
    Huber(0.7),
    SmoothedHinge(0.5),
    Multinomial(3),
    OneVsRest(Logistic(), 3),
]
PENALTIES = [Zero(), L1(0.05), L2(0.1), ElasticNet(0.05, 0.5)]
SOLVER_NAMES = list(SOLVERS)
RELATIONS = ["replace", "zero_out", "add_remove"]


def table(loss, rows=120, columns=4, seed=0, scales=None):
    """Uneven columns and targets coded as the loss wants them."""
    rng = np.random.default_rng(seed)
    scales = np.geomspace(0.1, 10.0, columns) if scales is None else scales
    X = rng.standard_normal((rows, columns)) * scales + 0.5 * scales
    signal = (X / scales) @ np.linspace(1.0, -1.0, columns)
    if not loss.classification:
        return X, signal + 0.3 * rng.standard_normal(rows)
    if loss.outputs == 1:
        return X, np.where(signal + rng.logistic(size=rows) > 0.3, 1.0, -1.0)
    scores = np.stack([signal, -signal, np.ones(rows)], axis=1) + rng.gumbel(size=(rows, 3))
    return X, scores.argmax(axis=1).astype(float)


def problems():
    """Every loss with every penalty, with an intercept."""
    return [Problem(loss, penalty) for loss in LOSSES for penalty in PENALTIES]


def suits(solver, problem):
    """Whether a solver (by name) takes this problem; refusals are tested on their own."""
    kind = SOLVERS[solver]
    return (problem.separable or not kind.needs_separable) and not (kind.single_output and problem.loss.outputs > 1)


def name_of(problem):
    return f"{problem.loss.name}-{problem.penalty.name}"
