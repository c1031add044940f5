"""The worst cases of releases that are no fit of one solver: neighbours on which a row, or client, has its full effect.

Evaluations, gradients, constants, cross-validations, quantiles, federated runs and runs on a graph. A statistic moves
by what is claimed, or nearly so: a sensitivity that is claimed too small is found.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from discreet._common.exceptions import DiscreetWarning
from discreet._common.types import FloatArray
from discreet.audit.neighbours import neighbours
from discreet.audit.targets import Outputs, Target, function_target, target_of
from discreet.data.rows import Data
from discreet.estimators import LinearSVC, LogisticRegression, Ridge
from discreet.fairness import gradient_distance, private_certificate
from discreet.federated.client import Client
from discreet.federated.decentralised import plan_network, train_network
from discreet.federated.decentralised.network import Network
from discreet.federated.plan import Unit
from discreet.federated.planning import plan_federated
from discreet.federated.rounds import Request, in_process, run_rounds
from discreet.federated.server import Server
from discreet.metrics import evaluate
from discreet.model_selection import cross_val_score_private
from discreet.preprocessing import PrivateQuantiles, private_smoothness
from discreet.privacy.budget import Budget
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.random.generator import RandomGenerator
from discreet.privacy.relation import Relation
from discreet.problem.losses import Logistic
from discreet.problem.penalties import L2
from discreet.problem.problem import Problem
from discreet.theory.distance import KnownDistance

BUDGET = Budget(1.0, 1e-3)
ROWS = 12
CLIENTS, ROUNDS = 4, 5


@dataclass(frozen=True, eq=False)
class ReleaseCase:
    """What to replay, and two neighbouring tables on which one row has its full effect."""

    target: Target
    first: Data
    second: Data


def refusal(make: Callable[[Relation], ReleaseCase], relation: Relation) -> str | None:
    """Why a case cannot be made under a relation; None if it can."""
    try:
        make(relation)
    except ValueError as refused:
        return str(refused)
    return None


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


def counts_case(relation: Relation, budget: Budget = BUDGET) -> ReleaseCase:
    """A private certificate; one row goes to another bin, becomes null or is left out.

    The last column of the tables holds the sensitive value.
    """
    model = _still_model()
    law = KnownDistance(np.ones(2), 1, "a model at this distance", 0.1)

    def release(data: Data, rng: RandomGenerator | None) -> tuple[Outputs, Guarantee]:
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
    return ReleaseCase(function_target("private_certificate", relation, release), *tables)


def errors_case(relation: Relation, budget: Budget = BUDGET) -> ReleaseCase:
    """R2: the target of a row goes from the centre, where all predictions are, to the end of the limits."""
    model = _silent(Ridge(epsilon=1.0, bounds=(-1.0, 1.0), y_bounds=(-1.0, 1.0)), np.zeros(ROWS))
    model.coef_, model.intercept_ = np.zeros_like(model.coef_), 0.0
    return _evaluated(model, relation, budget, (np.arange(ROWS) == 4).astype(float), y_bounds=(-1.0, 1.0))


def scores_case(relation: Relation, budget: Budget = BUDGET) -> ReleaseCase:
    """Accuracy, log-loss and curves: a row whose score is as wrong as can be gets one that is as right."""
    model = _silent(LogisticRegression(epsilon=1.0, bounds=(-1.0, 1.0), classes=[0, 1]), np.tile([0.0, 1.0], ROWS // 2))
    model.coef_, model.intercept_ = np.array([[9.0, 0.0]]), np.zeros(1)
    return _evaluated(model, relation, budget, np.isin(np.arange(ROWS), (3, 4)).astype(float))


def _silent(model: Any, y: FloatArray) -> Any:
    """A model of two columns; its coefficients are public, so any will do."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DiscreetWarning)
        return model.fit(np.tile([[1.0, 1.0], [-1.0, -1.0]], (ROWS // 2, 1)), y)


def _evaluated(model: Any, relation: Relation, budget: Budget, y: FloatArray, **settings: Any) -> ReleaseCase:
    def run(data: Data, rng: RandomGenerator | None) -> tuple[Outputs, Guarantee]:
        weight = None if data.weight is None or (data.weight == 1.0).all() else data.weight
        told = {"sample_weight": weight, "random_state": rng, **_shape(relation), **settings}
        found = evaluate(model, data.X, data.y, budget, **told)
        return {"released": found.released.values}, found.guarantee

    X = np.tile([[-1.0, 1.0]], (ROWS, 1))
    tables = neighbours(relation, X, y, np.ones(ROWS), np.array([1.0, 1.0]), 4)
    return ReleaseCase(function_target("evaluate", relation, run), *tables)


def gradient_case(relation: Relation, budget: Budget = BUDGET) -> ReleaseCase:
    """A paid gradient at coefficients of 0, where the slope of the hinge is at its bound; a corner row turns around."""
    model = _still_model()

    def release(data: Data, rng: RandomGenerator | None) -> tuple[Outputs, Guarantee]:
        told: dict[str, Any] = {"epsilon": budget, "sample_weight": data.weight, "random_state": rng}
        law = gradient_distance(model, data.X, data.y, **told, **_shape(relation))
        assert not hasattr(law, "distance")
        return {"residual": law.residual, "radius": law.radius(0.01), "scale": law.scale}, law.guarantee

    X = np.tile([[1.0, -1.0]], (ROWS, 1))
    tables = neighbours(relation, X, np.ones(ROWS), np.ones(ROWS), np.array([-1.0, 1.0]), 4)
    return ReleaseCase(function_target("gradient_distance", relation, release), *tables)


def smoothness_case(relation: Relation, budget: Budget = BUDGET) -> ReleaseCase:
    """Constants of a loss; a row at the corner of the range becomes one of zeros, null, or is left out."""

    def release(data: Data, rng: RandomGenerator | None) -> tuple[Outputs, Guarantee]:
        told: dict[str, Any] = {"sample_weight": data.weight, "random_state": rng}
        found = private_smoothness(data.X, Logistic(), (-1.0, 1.0), budget, **told, **_shape(relation))
        return {"values": found.values}, found.guarantee

    X = np.tile([[1.0, -1.0]], (ROWS, 1))
    tables = neighbours(relation, X, np.zeros(ROWS), np.ones(ROWS), np.zeros(2), 4)
    return ReleaseCase(function_target("private_smoothness", relation, release), *tables)


def quantiles_case(relation: Relation, budget: Budget = BUDGET) -> ReleaseCase:
    """Quartiles between declared bounds; a row goes from the lowest value to the highest, or vanishes."""
    X = np.linspace(-1.0, 1.0, ROWS)[:, None]
    tables = neighbours(relation, X, np.zeros(ROWS), np.ones(ROWS), np.ones(1), 1)
    model = PrivateQuantiles(epsilon=budget, bounds=(-1.0, 1.0), **_shape(relation))
    return ReleaseCase(target_of(model), *tables)


def cross_validation_case(relation: Relation, budget: Budget = BUDGET) -> ReleaseCase:
    """Scores of a cross-validation and its models; a row turns around, in every model but one and in one score."""
    if relation is not Relation.REPLACE:
        raise ValueError("rows of weight 0 cannot be passed, and a row more or less moves others between the folds.")
    settings: dict[str, Any] = {"bounds": (-1.0, 1.0), "classes": [-1.0, 1.0], "solver": "gd"}
    model = LogisticRegression(**settings)

    def release(data: Data, rng: RandomGenerator | None) -> tuple[Outputs, Guarantee]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DiscreetWarning)
            found = cross_val_score_private(model, data.X, data.y, cv=3, epsilon=budget, random_state=rng)
        coefs = np.array([fitted.coef_ for fitted in found.estimators])
        limits = np.array([[fold.low, fold.high] for fold in (*found.folds, found.mean)])
        return {"scores": found.scores, "limits": limits, "coefs": coefs}, found.guarantee

    X = np.tile([[1.0, -1.0]], (ROWS, 1))
    tables = neighbours(relation, X, np.ones(ROWS), np.ones(ROWS), -X[4], 4)
    return ReleaseCase(function_target("cross_val_score_private", relation, release), *tables)


def federated_case(relation: Relation, unit: Unit = "record", **settings: Any) -> ReleaseCase:
    """A server and clients in one process; a row of client 1, or (unit "client") all of them, turn or become null."""
    chosen: dict[str, Any] = {"rounds": ROUNDS, "gamma": 1e-3, "clip": 0.05, "rows_per_client": ROWS} | settings
    problem = Problem(Logistic(), L2(0.05), fit_intercept=False)
    made = plan_federated(problem, 2, (-1.0, 1.0), CLIENTS, epsilon=BUDGET, unit=unit, relation=relation, **chosen)

    def run(data: Data, rng: RandomGenerator | None) -> Outputs:
        plan = replace(made)  # which makes its grids in the run
        clients = {
            f"client {i}": Client(plan, f"client {i}", X, y, sample_weight=w, max_epsilon=math.inf, random_state=rng)
            for i, (X, y, w) in enumerate(_parts(data))
        }
        server = Server(plan, list(clients), random_state=rng)
        sent: list[Any] = []

        def send(requests: dict[str, Request]) -> list[Any]:
            sent.extend(answers := list(in_process(clients)(requests)))
            return answers

        run_rounds(server, send)
        coef, _ = server.to_user(server.averaged_weights)
        messages = np.array([answer.gradient for answer in sent])
        return {"coef": coef, "weights": server.weights, "duals": server.duals, "messages": messages}

    target = Target(run, relation, f"federated, {unit}", lambda data: made.guarantees["local", unit])
    return ReleaseCase(target, *_tables_of_clients(relation, unit))


def _parts(data: Data) -> list[tuple[Any, Any, Any]]:
    """The rows of each client."""
    weight = np.ones(data.rows) if data.weight is None else data.weight
    cut = (np.split(each, CLIENTS) for each in (data.X, data.y, weight))
    return list(zip(*cut, strict=True))


def _tables_of_clients(relation: Relation, unit: Unit) -> tuple[Data, Data]:
    """The rows of all clients, one after the other; what changes is a row or all rows of client 1."""
    X, y = np.tile([[1.0, -1.0]], (CLIENTS * ROWS, 1)), np.ones(CLIENTS * ROWS)
    first = Data(X, y, np.ones(y.size))
    changed = slice(ROWS, ROWS + 1 if unit == "record" else 2 * ROWS)
    if relation is Relation.REPLACE:
        other = X.copy()
        other[changed] *= -1.0
        return first, replace(first, X=other)
    weight = np.ones(y.size)
    weight[changed] = 0.0
    return first, replace(first, weight=weight)


def client_case(relation: Relation) -> ReleaseCase:
    """A federated run that protects whole clients."""
    return federated_case(relation, "client")


RING = Network(tuple("abcd"), ((1, 3), (0, 2), (1, 3), (0, 2)))


def network_case(relation: Relation, method: Any = "tree") -> ReleaseCase:
    """A training on a ring of nodes; all rows of one node turn around."""
    if relation is not Relation.REPLACE:
        raise ValueError("nodes take no weights, so that their rows cannot become null.")
    problem = Problem(Logistic(), L2(0.05), fit_intercept=False)
    settings: dict[str, Any] = {"rounds": ROUNDS, "gamma": 1e-3, "clip": 0.05, "relation": relation}
    made = plan_network(problem, 2, (-1.0, 1.0), RING, method=method, epsilon=BUDGET, **settings)

    def run(data: Data, rng: RandomGenerator | None) -> Outputs:
        plan = replace(made, federated=replace(made.federated))  # which makes its grids in the run
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DiscreetWarning)
            found = train_network(plan, [(X, y) for X, y, _ in _parts(data)], rng)
        return {"coef": found.coef, "weights": found.weights, "models": found.models}

    guarantee = made.federated.guarantee
    target = Target(run, relation, f"network, {method}", lambda data: guarantee)
    return ReleaseCase(target, *_tables_of_clients(relation, "client"))
