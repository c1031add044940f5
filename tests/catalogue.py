"""Every loss, penalty and solver, crossed with small problems: a new solver joins the tests by its table row."""

from __future__ import annotations

import numpy as np

from discreet.privacy.budget import Budget
from discreet.problem.constraints import Box, L1Ball, L2Ball, Simplex
from discreet.problem.losses import Huber, Logistic, Multinomial, OneVsRest, SmoothedHinge, Squared
from discreet.problem.penalties import L1, L2, ElasticNet, Zero
from discreet.problem.problem import Problem
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
CONSTRAINTS = [L1Ball(0.3), L2Ball(0.3), Simplex(1.0), Box(-0.1, 0.1)]
BUDGET = Budget(1.0, 1e-6)
PLAIN_LOSSES = (Logistic(), Squared())
SOLVER_NAMES = list(SOLVERS)
SIZES = {"exponential": (200, 2)}  # rows and columns of tables for solvers that do not take larger ones
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


def degenerate_tables():
    """Tables with nothing, too little or too much in them."""
    rng = np.random.default_rng(0)
    return [
        rng.standard_normal((5, 12)),  # more columns than rows
        rng.standard_normal((40, 1)),
        np.ones((40, 2)),
        np.zeros((40, 2)),
        np.repeat(rng.standard_normal((40, 1)), 3, axis=1),
        np.full((40, 2), 1e300),
        np.zeros((1, 1)),
    ]


def problems():
    """Every loss with every penalty and every bounded set, with an intercept."""
    penalised = [Problem(loss, penalty) for loss in LOSSES for penalty in PENALTIES]
    return penalised + [Problem(loss, constraint=c) for loss in LOSSES if loss.outputs == 1 for c in CONSTRAINTS]


def suits(solver, problem, budget=BUDGET):
    """Whether a solver (by name) takes this problem; refusals are tested on their own."""
    return SOLVERS[solver]().why_incompatible(problem, budget) is None


def problem_for(solver, losses=PLAIN_LOSSES):
    """A problem that the solver takes, as close to plain logistic regression as possible; None if there is none."""
    forms = [{"penalty": L2(0.01)}, {"constraint": Box(-2.0, 2.0)}, {"constraint": L1Ball(2.0)}]
    fitting = (Problem(loss, **form) for loss in losses for form in forms)
    return next((problem for problem in fitting if suits(solver, problem)), None)


def name_of(problem):
    return f"{problem.loss.name}-{problem.constraint.name if problem.constraint else problem.penalty.name}"
