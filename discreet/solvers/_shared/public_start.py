"""A start that is fitted, without privacy, on a public table.

A small table is overfitted easily, and an overfitted start would be worse than none: a ridge is added, whose strength
the table itself decides by cross-validation. Nothing here reads a private row.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import islice

import numpy as np

from discreet._common.types import FloatArray
from discreet.data.public import Public
from discreet.data.public_inputs import PublicModel
from discreet.data.rows import Data
from discreet.problem.column_scaling import identity_scaling
from discreet.problem.optimum import accelerated_steps, is_smooth, largest_curvature, lbfgs
from discreet.problem.problem import Problem
from discreet.problem.scaled_problem import ScaledBlock, ScaledProblem, scale_problem
from discreet.scaling.public_scales import with_public_scales

# Strengths of the ridge in units of the loss's curvature, in scaled columns; the last one leaves little but a constant.
RIDGES = (1e-4, 1e-3, 1e-2, 1e-1, 1.0, 1e2)
FOLDS = 5
MANY_ROWS = 5_000  # from which one fold tells enough
ROUGH_STEPS, ROUGH_PROGRESS = 200, 1e-6  # a start need not be exact


def fitted_start(problem: Problem, public: Public) -> PublicModel | None:
    """The best ridge model of the public table, in the user's columns; None without a table or its target."""
    table = public.table
    if table is None or table.y is None:
        return None
    data = Data(table.X, np.asarray(table.y, dtype=np.float64))
    target = not problem.loss.classification
    centred = problem.fit_intercept and not public.sparse
    scaling = with_public_scales(identity_scaling(public.columns), public, centred, target)
    scaled = scale_problem(problem, data, scaling, data.rows, "C")
    losses = np.zeros(len(RIDGES))
    folds = np.arange(data.rows) % FOLDS
    for fold in range(1 if data.rows > MANY_ROWS else min(FOLDS, data.rows)):
        fitted, kept = _part(scaled, folds != fold), _part(scaled, folds == fold)
        losses += [_mean_loss(kept, _minimised(fitted, ridge)) for ridge in RIDGES]
    w = _minimised(scaled, RIDGES[int(np.argmin(losses))])
    return PublicModel(*scaled.to_user(w))


def _part(scaled: ScaledProblem, chosen: FloatArray) -> ScaledProblem:
    where = np.flatnonzero(chosen)
    return replace(scaled, X=scaled.X[where], y=scaled.y[where], rows=where.size)


def _mean_loss(scaled: ScaledProblem, w: FloatArray) -> float:
    return float(scaled.sum(partial(ScaledBlock.loss_sum, w=w))[0]) / scaled.rows


def _minimised(scaled: ScaledProblem, ridge: float) -> FloatArray:
    """About the minimiser of the objective with a ridge more.

    That of the intercept weighs as much as one row, so that labels which do not occur keep a probability.
    """
    terms, smoothness = scaled.penalty_terms, scaled.problem.loss.smoothness
    added = np.full(scaled.columns, ridge * smoothness)
    added[scaled.scaling.columns :] = smoothness / scaled.rows
    scaled = replace(scaled, penalty_terms=terms._replace(l2=terms.l2 + added))
    if is_smooth(scaled):
        return lbfgs(scaled, ROUGH_STEPS, ROUGH_PROGRESS)
    steps = accelerated_steps(scaled, scaled.nearest_to_zero(), 1.0 / largest_curvature(scaled))
    return next(islice(steps, ROUGH_STEPS, None))
