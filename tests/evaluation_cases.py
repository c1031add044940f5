"""The worst cases of the evaluations that are paid for, to be replayed: figures, fairness counts, and a gradient.

In all of them a row moves a release by exactly what is claimed, under every relation: a replay
shows it, and a sensitivity that is claimed too small is found.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet._common.exceptions import DiscreetWarning
from discreet.audit.neighbours import neighbours
from discreet.audit.targets import Outputs, Target
from discreet.data.rows import Data
from discreet.estimators import LinearSVC, LogisticRegression, Ridge
from discreet.fairness import gradient_distance, private_certificate
from discreet.metrics import evaluate
from discreet.privacy.budget import Budget
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.random.generator import RandomGenerator
from discreet.privacy.relation import Relation
from discreet.theory.distance import KnownDistance

BUDGET = Budget(1.0, 1e-3)
ROWS = 12

Evaluation = Callable[[Data, RandomGenerator | None], tuple[Outputs, Guarantee]]


@dataclass(frozen=True, eq=False)
class EvaluationCase:
    """What to replay, and two neighbouring tables on which one row has its full effect."""

    target: Target
    first: Data
    second: Data


def counts_case(relation: Relation, budget: Budget = BUDGET) -> EvaluationCase:
    """A private certificate; one row goes to another bin, becomes null or is left out.

    The last column of the tables holds the sensitive value.
    """
    model = _still_model()
    law = KnownDistance(np.ones(2), 1, "a model at this distance", 0.1)

    def evaluate(data: Data, rng: RandomGenerator | None) -> tuple[Outputs, Guarantee]:
        found = private_certificate(
            model,
            data.X[:, :2],
            data.y,
            data.X[:, 2],
            budget,
            groups=[0.0, 1.0],
            distance=law,
            sample_weight=data.weight,
            random_state=rng,
            **_shape(relation),
        )
        numbers = [[s.rows, s.value_low, s.value_high, s.low, s.high] for s in found.statements]
        return {"statements": np.array(numbers), "radius": found.radius}, found.guarantee

    X = np.column_stack([np.tile([[0.5, -0.5]], (ROWS, 1)), np.arange(ROWS) % 2])
    tables = neighbours(relation, X, np.ones(ROWS), np.ones(ROWS), np.array([0.5, -0.5, 1.0]), 4)
    return EvaluationCase(_target("private_certificate", evaluate, relation), *tables)


def gradient_case(relation: Relation, budget: Budget = BUDGET) -> EvaluationCase:
    """A paid gradient at coefficients of 0, where the slope of the hinge is at its bound; a corner row turns around."""
    model = _still_model()

    def evaluate(data: Data, rng: RandomGenerator | None) -> tuple[Outputs, Guarantee]:
        law = gradient_distance(
            model, data.X, data.y, epsilon=budget, sample_weight=data.weight, random_state=rng, **_shape(relation)
        )
        assert not hasattr(law, "distance")
        return {"residual": law.residual, "radius": law.radius(0.01), "scale": law.scale}, law.guarantee

    X = np.tile([[1.0, -1.0]], (ROWS, 1))
    tables = neighbours(relation, X, np.ones(ROWS), np.ones(ROWS), np.array([-1.0, 1.0]), 4)
    return EvaluationCase(_target("gradient_distance", evaluate, relation), *tables)


def errors_case(relation: Relation, budget: Budget = BUDGET) -> EvaluationCase:
    """R2: the target of a row goes from the centre, where all predictions are, to the end of the limits."""
    model = _silent(Ridge(epsilon=1.0, bounds=(-1.0, 1.0), y_bounds=(-1.0, 1.0)), np.zeros(ROWS))
    model.coef_, model.intercept_ = np.zeros_like(model.coef_), 0.0
    return _evaluated(model, relation, budget, (np.arange(ROWS) == 4).astype(float), y_bounds=(-1.0, 1.0))


def scores_case(relation: Relation, budget: Budget = BUDGET) -> EvaluationCase:
    """Accuracy, log-loss and curves: a row whose score is as wrong as can be gets one that is as right."""
    model = _silent(LogisticRegression(epsilon=1.0, bounds=(-1.0, 1.0), classes=[0, 1]), np.arange(ROWS) % 2)
    model.coef_, model.intercept_ = np.array([[9.0, 0.0]]), np.zeros(1)
    return _evaluated(model, relation, budget, np.isin(np.arange(ROWS), (3, 4)).astype(float))


def _silent(model: Any, y: np.ndarray) -> Any:
    """A model of two columns; its coefficients are public, so any will do."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DiscreetWarning)
        return model.fit(np.tile([[1.0, 1.0], [-1.0, -1.0]], (ROWS // 2, 1)), y)


def _evaluated(model: Any, relation: Relation, budget: Budget, y: np.ndarray, **settings: Any) -> EvaluationCase:
    def run(data: Data, rng: RandomGenerator | None) -> tuple[Outputs, Guarantee]:
        weight = None if data.weight is None or (data.weight == 1.0).all() else data.weight
        told = {"sample_weight": weight, "random_state": rng, **_shape(relation), **settings}
        found = evaluate(model, data.X, data.y, budget, **told)
        return {"released": found.released.values}, found.guarantee

    X = np.tile([[-1.0, 1.0]], (ROWS, 1))
    tables = neighbours(relation, X, y, np.ones(ROWS), np.array([1.0, 1.0]), 4)
    return EvaluationCase(_target("evaluate", run, relation), *tables)


def _still_model() -> Any:
    """A classifier of so many rows whose coefficients are all 0: they are public, so any will do."""
    X, y = np.tile([[1.0, 1.0], [-1.0, -1.0]], (ROWS // 2, 1)), np.tile([1.0, -1.0], ROWS // 2)
    settings: dict[str, Any] = {"bounds": (-1.0, 1.0), "classes": [-1.0, 1.0], "fit_intercept": False, "alpha": 0.1}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DiscreetWarning)
        model = LinearSVC(epsilon=1.0, **settings).fit(X, y)
    model.coef_ = np.zeros_like(model.coef_)
    return model


def _shape(relation: Relation) -> dict[str, Any]:
    return {"relation": relation, "public_n": ROWS if relation is Relation.ADD_REMOVE else None}


def _target(name: str, evaluate: Evaluation, relation: Relation) -> Target:
    def run(data: Data, rng: RandomGenerator | None) -> Outputs:
        return evaluate(data, rng)[0]

    def guarantee_for(data: Data) -> Guarantee:
        return evaluate(data, None)[1]

    return Target(run, relation, name, guarantee_for)
