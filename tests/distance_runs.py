"""Runs of real solvers beside their noise-free limits, for tests of bounds on the distance and on the objective."""

from __future__ import annotations

import numpy as np

from discreet.data.public import Public
from discreet.data.validation import array_rows
from discreet.kernels.gradient import clipped_gradient_sum, row_norms
from discreet.privacy.budget import Budget
from discreet.privacy.random.generator import seeded_generator
from discreet.problem.losses import Multinomial, OneVsRest
from discreet.problem.scaled_problem import scale_problem

BUDGET = Budget(1.0, 1e-5)


def small_table(problem, rows=300, columns=3, seed=0):
    """Rows in [-1, 1] with labels that depend on them."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, (rows, columns))
    score = X @ rng.standard_normal(columns) + 0.5 * rng.standard_normal(rows)
    if isinstance(problem.loss, (Multinomial, OneVsRest)):
        return X, np.digitize(score, [-0.4, 0.4]).astype(np.float64)
    return X, np.where(score > 0.0, 1.0, -1.0) if problem.loss.classification else score


def planned(solver, problem, X, budget=BUDGET):
    return solver.plan(problem, Public.of(*X.shape, bounds=(-1.0, 1.0), y_bounds=(-5.0, 5.0)), budget)


def scaled_weights(problem, solution):
    """The weights in the solver's columns, the intercept last."""
    scaling = solution.scaling
    w = scaling.from_user(solution.coef)
    if not problem.fit_intercept:
        return w
    intercept = solution.intercept + solution.coef @ scaling.shift
    return np.concatenate([w, np.atleast_1d(intercept) if w.ndim == 1 else np.asarray(intercept)[:, None]], axis=-1)


def twin(problem, X, y, scaling, clip=np.inf, tolerance=1e-12):
    """The limit of proximal steps with clipped gradients and without noise, by plain steps until they stop moving."""
    scaled = scale_problem(problem, array_rows(X, y, None), scaling, X.shape[0], "C")
    step = 1.0 / (problem.loss.smoothness * np.linalg.norm(scaled.X, 2) ** 2 / X.shape[0] + 1e-12)
    return scaled, fixed_point(scaled, step, clip, tolerance)


def fixed_point(scaled, step, clip, tolerance):
    w, norms = scaled.start(), row_norms(scaled.X)
    for _ in range(1_000_000):
        gradient = clipped_gradient_sum(scaled.X, scaled.slopes(w), norms, clip, scaled.weight) / scaled.rows
        moved = scaled.prox(w - step * gradient, step)
        if np.abs(moved - w).max() < tolerance:
            return moved
        w = moved
    raise AssertionError("the twin was not found.")


def distances(solver, problem, X, y, count, plan, reference):
    """The distances of `count` private runs from the reference vector, in the norm of the law."""
    data, found = array_rows(X, y, None), []
    for seed in range(count):
        solution = solver.solve(problem, data, plan, seeded_generator(seed))
        law = plan.distance_law(solution.scaling)
        found.append(np.sqrt((law.weights * (scaled_weights(problem, solution) - reference) ** 2).sum()))
    return np.array(found), law
