"""Whole runs: they minimise what they should, whoever takes part, and are quick."""

from __future__ import annotations

import math

import numpy as np
import pytest

from discreet.federated import plan_federated, simulate, split_by, split_evenly
from discreet.problem import L1, L2, Box, Huber, L2Ball, Logistic, Problem, SmoothedHinge, Squared
from tests.federated_tools import faults_of, table

pytestmark = pytest.mark.filterwarnings("ignore::discreet.InsecureRandomnessWarning")
PROBLEMS = {
    "logistic": Problem(Logistic(), L2(0.05)),
    "logistic, l1, no intercept": Problem(Logistic(), L1(0.02), fit_intercept=False),
    "hinge": Problem(SmoothedHinge(0.5), L2(0.05)),
    "squared": Problem(Squared(), L2(0.05)),
    "huber": Problem(Huber(0.5), L2(0.05)),
    "a ball": Problem(Logistic(), constraint=L2Ball(1.0)),
    "a box": Problem(Logistic(), constraint=Box(-0.5, 0.5)),
}


def without_noise(problem, columns, clients, **changes):
    """A plan without noise, and without a clip that any gradient of the tests would meet."""
    chosen = {"y_bounds": (-1.0, 1.0), "epsilon": math.inf, "clip": 50.0, "tolerance": 1e-9} | changes
    return plan_federated(problem, columns, (-1.0, 1.0), clients, **chosen)


@pytest.mark.parametrize("problem", PROBLEMS.values(), ids=PROBLEMS)
@pytest.mark.parametrize("unit", ["client", "record"])
def test_without_noise_a_run_ends_at_the_optimum(problem, unit):
    """Clients of equal size: the objective is that of the whole table, whose optimum is known with a certificate."""
    X, y = table(60, 3)
    plan = without_noise(problem, 3, 6, unit=unit, rows_per_client=10, rounds=150, gamma=4.0)
    run = simulate(plan, X, y, split_evenly(60, 6), seed=0)
    best = problem.optimum(X, y)
    reached = problem.objective(X, y, *run.server.to_user(run.server.weights))
    assert reached - best.value < 1e-6
    assert faults_of(run.server, run.clients, run.clients) == []


@pytest.mark.parametrize(("relaxation", "per_round", "dropout"), [(0.3, 6, 0.0), (0.5, 2, 0.0), (0.5, 6, 0.3)])
def test_a_run_ends_at_the_optimum_whoever_answers(relaxation, per_round, dropout):
    problem, (X, y) = PROBLEMS["logistic"], table(60, 3)
    plan = without_noise(
        problem, 3, 6, rounds=250, gamma=4.0, relaxation=relaxation, per_round=per_round, participations=250
    )
    run = simulate(plan, X, y, split_evenly(60, 6), dropout=dropout, seed=0)
    reached = problem.objective(X, y, *run.server.to_user(run.server.weights))
    assert reached - problem.optimum(X, y).value < 1e-6
    assert faults_of(run.server, run.clients, run.clients) == []


def test_clients_count_equally_whatever_their_size():
    """Three clients with 5, 10 and 45 rows: rows are weighted so that every client has the same weight."""
    X, y = table(60, 2)
    parts = {"a": np.arange(5), "b": np.arange(5, 15), "c": np.arange(15, 60)}
    plan = without_noise(Problem(Squared(), L2(0.1)), 2, 3, rounds=300, gamma=2.0)
    run = simulate(plan, X, y, parts, seed=0)
    weight = np.concatenate([np.full(part.size, 20.0 / part.size) for part in parts.values()])
    A = np.column_stack([X, np.ones(60)])
    normal = (A.T * weight) @ A / 60 + np.diag([0.1, 0.1, 0.0])
    best = np.linalg.solve(normal, (A.T * weight) @ y / 60)
    coef, intercept = run.server.to_user(run.server.weights)
    assert np.allclose([*coef, intercept], best, atol=1e-6)


@pytest.mark.parametrize("case", [{"model": "central"}, {"unit": "record", "rows_per_client": 30}], ids=str)
def test_with_noise_a_run_is_far_better_than_no_model(case):
    problem, (X, y) = Problem(Logistic(), L2(0.01)), table(3_000, 4)
    plan = plan_federated(problem, 4, (-1.0, 1.0), 100, epsilon=4.0, **case)
    run = simulate(plan, X, y, split_evenly(3_000, 100), dropout=0.0, seed=0)
    best = problem.optimum(X, y).value
    reached = problem.objective(X, y, *run.server.to_user(run.server.averaged_weights))
    nothing = problem.objective(X, y, np.zeros(4))
    assert reached - best < 0.4 * (nothing - best)
    assert run.seconds < 1.0


def test_the_averaged_model_is_the_mean_of_the_second_half():
    from discreet.federated import Server
    from tests.federated_tools import ask, make_clients, make_plan

    plan = make_plan(rounds=5)
    server, clients = Server(plan, "abcde", random_state=0), make_clients(plan)
    models = []
    while not server.finished:
        server.receive(ask(server, clients).values())
        models.append(server.weights)
    assert np.allclose(server.averaged_weights, np.mean(models[2:], axis=0))


def test_rows_are_split_as_asked():
    parts = split_evenly(103, 10, seed=1)
    assert sorted(map(len, parts.values())) == [10] * 7 + [11] * 3
    assert np.array_equal(np.sort(np.concatenate(list(parts.values()))), np.arange(103))
    by = split_by(["x", "y", "x", "z", "y"])
    assert {name: part.tolist() for name, part in by.items()} == {"x": [0, 2], "y": [1, 4], "z": [3]}
    with pytest.raises(ValueError, match="cannot be split"):
        split_evenly(3, 4)


def test_every_client_is_asked_equally_often_where_some_are_asked():
    X, y = table(60, 2)
    plan = without_noise(Problem(Logistic()), 2, 6, rounds=9, per_round=2, gamma=1.0)
    run = simulate(plan, X, y, split_evenly(60, 6), seed=0)
    assert plan.participations == 3
    assert {client.replies for client in run.clients.values()} == {3}
