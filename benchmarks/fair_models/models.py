"""Scores of held-out rows by fairer models: without privacy, with fair features, with the penalty itself.

The directions are paid from the same epsilon as the model. "Without privacy" has exact directions and the exact
optimum. `gd` takes the penalty itself, `newton` and `cd` take fair features.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from sklearn import linear_model
from sklearn.pipeline import make_pipeline

from discreet import Budget, LogisticRegression, Problem, Relation, solve
from discreet.fairness import FairFeatures, ReleasedDirections, mean_differences, private_directions
from discreet.privacy import accounting
from discreet.problem import L2, DirectionalL2, Logistic
from discreet.solvers import Newton
from fair_models.split import FloatArray, Split

EPSILON = 1.0
DIRECTION_SHARE = 0.25  # of the squared Gaussian-DP parameter
ALPHA = 1e-3
LARGEST_STRENGTH = 1e9  # of the penalty itself, in place of infinity
PARITY, OPPORTUNITY = "demographic parity", "equality of opportunity"


def exact_scores(split: Split, strength: float, notion: str) -> FloatArray:
    directions = mean_differences(
        split.X, split.men, split.y, groups=[1.0, 0.0], notion=notion, favourable=1.0 if notion == OPPORTUNITY else None
    )
    exact = linear_model.LogisticRegression(C=1.0 / (ALPHA * len(split.y)), solver="newton-cholesky", tol=1e-8)
    fitted = make_pipeline(FairFeatures(directions, strength), exact).fit(split.X, split.y)
    return np.asarray(fitted.decision_function(split.held_out))


def paid_directions(split: Split, notion: str, seed: int) -> ReleasedDirections:
    total = Budget(EPSILON, 1.0 / len(split.y) ** 2)
    spent = Budget.gdp(math.sqrt(DIRECTION_SHARE) * total.gaussian_mu())
    favourable = 1.0 if notion == OPPORTUNITY else None
    rows = (split.X, split.y, split.men, (0.0, 1.0), spent)
    return private_directions(*rows, groups=[1.0, 0.0], notion=notion, favourable=favourable, random_state=seed)


def private_scores(split: Split, strength: float, notion: str, solver: str, seed: int) -> FloatArray:
    """Directions and model, whose guarantees together are checked against the total."""
    total = Budget(EPSILON, 1.0 / len(split.y) ** 2)
    share = DIRECTION_SHARE if strength > 0.0 else 0.0
    left = Budget.gdp(math.sqrt(1.0 - share) * total.gaussian_mu())
    directions = paid_directions(split, notion, seed) if share else None
    fit = by_penalty if solver == "gd" else by_features
    scores, event = fit(split, strength, directions, solver, left, seed)
    events = [event] if directions is None else [directions.event, event]
    assert total.delta is not None
    assert accounting.epsilon_of(accounting.compose(events), total.delta, Relation.REPLACE) <= EPSILON + 1e-6
    return scores


def by_features(
    split: Split, strength: float, directions: ReleasedDirections | None, solver: str, budget: Budget, seed: int
) -> tuple[FloatArray, Any]:
    """Scores of held-out rows, and the cost, of a pipeline with fair features."""
    step = FairFeatures(np.zeros((1, split.X.shape[1])) if directions is None else directions, strength)
    bounds = step.fit(split.X[:1]).transformed_bounds((0.0, 1.0))
    # Fair features mix indicators, whose bulk is then narrow: newton does better with the declared ranges.
    declared = solver == "newton" and directions is not None
    model = LogisticRegression(
        alpha=ALPHA, solver=Newton(scale_share=0.0) if declared else solver, epsilon=budget, bounds=bounds,
        classes=[0.0, 1.0], random_state=seed,
    )  # fmt: skip
    fitted = make_pipeline(step, model).fit(split.X, split.y)
    return np.asarray(fitted.decision_function(split.held_out)), model.guarantee_.event


def by_penalty(
    split: Split, strength: float, directions: ReleasedDirections | None, solver: str, budget: Budget, seed: int
) -> tuple[FloatArray, Any]:
    """Scores of held-out rows, and the cost, of a solver that takes the penalty itself."""
    beta = ALPHA * min(strength, LARGEST_STRENGTH)
    penalty = L2(ALPHA) if directions is None else DirectionalL2(ALPHA, beta, directions.values)
    y = 2.0 * split.y - 1.0
    found = solve(
        Problem(Logistic(), penalty), split.X, y, solver=solver, budget=budget, bounds=(0.0, 1.0), random_state=seed
    )
    return split.held_out @ found.coef + float(found.intercept), found.plan.event
