"""Cohorts: who is asked, what the models tell by exact linear algebra, and which rounds are not used."""

from __future__ import annotations

import itertools
import json
import math

import numpy as np
import pytest

from discreet.federated import Reply, Server, plan_federated
from discreet.federated.server import ServerState
from discreet.privacy import accounting
from discreet.problem import Logistic, Problem
from tests.federated_tools import NAMES, ask, make_clients, make_plan, make_server, play

pytestmark = pytest.mark.filterwarnings("ignore::discreet.InsecureRandomnessWarning")
SIX = tuple("uvwxyz")


def plan_of(**changes):
    """Six clients and one number; no penalty, so that the models are linear functions of the messages."""
    chosen = {"per_round": 2, "rounds": 6, "model": "central", "dropouts": 0, "clip": 1.0, "gamma": 1.0, "delta": 1e-5}
    return plan_federated(Problem(Logistic(), fit_intercept=False), 1, (-1.0, 1.0), 6, **chosen | changes)


def models_of(plan, misses, messages, seed):
    """The models of all rounds for given messages, and who was used in each round."""
    server = Server(plan, SIX, random_state=seed)
    models, used = [], []
    while not server.finished:
        number = server.round
        replies = [
            Reply(name, number, request.accepted + 1, np.array([messages[number - 1, SIX.index(name)]]))
            for name, request in server.next_requests().items()
            if not misses[number - 1, SIX.index(name)]
        ]
        used.append(server.receive(replies).used)
        models.append(server.weights[0])
    return np.array(models), used


def true_mu(plan, misses=None, seed=0):
    """The largest ratio of shift to noise in the models of a run, over the clients, by exact linear algebra.

    All messages are variables with independent noise, the models linear functions A of them. A client that moves each
    of its messages by -2 C or 2 C moves the models by A d: the ratio is the length of d' A' (A A')^+ A d, over s^2.
    """
    misses = np.zeros((plan.rounds, 6), dtype=bool) if misses is None else misses
    silent = plan_of(**settings_of(plan) | {"epsilon": math.inf, "clip": 100.0})  # messages as they are
    zero = np.zeros((plan.rounds, 6))
    start, used = models_of(silent, misses, zero, seed)
    variables = [(k, SIX.index(name)) for k, names in enumerate(used) for name in names]
    A = np.empty((start.size, len(variables)))
    for column, place in enumerate(variables):
        one = zero.copy()
        one[place] = 1.0
        A[:, column] = models_of(silent, misses, one, seed)[0] - start
    known = np.linalg.pinv(A, rcond=1e-9) @ A  # the projection on what the models tell of the messages
    largest = 0.0
    for client in range(6):
        own = [column for column, (_, i) in enumerate(variables) if i == client]
        for signs in itertools.product([-1.0, 1.0], repeat=len(own)):
            largest = max(largest, float(np.array(signs) @ known[np.ix_(own, own)] @ np.array(signs)))
    return 2.0 * plan.clip / plan.grid.scale * math.sqrt(largest)


def settings_of(plan):
    names = ("per_round", "rounds", "participations", "sampling", "model", "dropouts", "relaxation", "gamma")
    return {name: getattr(plan, name) for name in names}


def stated_mu(plan):
    return accounting.mu_of(plan.event("central", "client"), plan.relation)


def random_misses(plan, rate, seed):
    return np.random.default_rng(seed).uniform(size=(plan.rounds, 6)) < rate


@pytest.mark.parametrize("relaxation", [0.5, 0.3])
@pytest.mark.parametrize(("per_round", "rounds"), [(2, 6), (2, 7), (3, 6), (4, 3), (6, 3)])
def test_without_dropouts_the_stated_loss_is_the_true_one(per_round, rounds, relaxation):
    plan = plan_of(per_round=per_round, rounds=rounds, relaxation=relaxation)
    assert true_mu(plan) == pytest.approx(stated_mu(plan), rel=1e-5)
    cohorts = 6 // per_round
    formula = 2.0 * plan.clip * math.sqrt(math.ceil(rounds / cohorts)) / (plan.grid.scale * math.sqrt(6 // cohorts))
    assert stated_mu(plan) == pytest.approx(formula, rel=1e-5)


@pytest.mark.parametrize("relaxation", [0.5, 0.3])
@pytest.mark.parametrize(("per_round", "dropouts"), [(2, 0), (3, 0), (3, 1), (6, 2)])
def test_with_dropouts_the_true_loss_is_never_above_the_stated_one(per_round, dropouts, relaxation):
    plan = plan_of(per_round=per_round, dropouts=dropouts, relaxation=relaxation)
    found = [true_mu(plan, random_misses(plan, 0.25, seed), seed) for seed in range(8)]
    assert max(found) <= stated_mu(plan) * (1.0 + 1e-9)
    assert max(found) > 0.5 * stated_mu(plan)


def test_uniform_sampling_would_break_the_figure_of_cohorts():
    """The planted fault: clients that are asked in changing company. What is stated for them holds."""
    plan = plan_of(sampling="uniform")
    cohorts = plan_of()
    true = true_mu(plan) * plan.grid.scale / cohorts.grid.scale  # the messages with the noise that cohorts need
    assert true > 1.1 * stated_mu(cohorts)
    assert true_mu(plan) <= stated_mu(plan)


def test_using_a_round_that_too_many_missed_would_break_the_promise():
    """The planted fault: the same run in the local model, which uses such rounds; its server says so."""
    settings = {"per_round": 3, "rounds": 4}
    central, local = plan_of(**settings), plan_of(**settings, model="local")
    for client in range(6):
        misses = np.zeros((4, 6), dtype=bool)
        misses[2:, client] = True
        assert true_mu(central, misses) <= stated_mu(central) * (1.0 + 1e-9)
        used = true_mu(local, misses) * local.grid.scale / central.grid.scale
        assert used > 1.1 * stated_mu(central)


def test_keeping_what_absent_clients_told_would_break_the_promise(monkeypatch):
    """The planted fault: their old messages stay in the sum, with the noise that they had when they came."""
    plan = plan_of(per_round=6, rounds=3, dropouts=3)
    misses = np.array([[0, 1, 1, 1, 0, 0], [1, 0, 0, 1, 1, 0], [0, 1, 1, 1, 0, 0]], dtype=bool)
    assert true_mu(plan, misses) == pytest.approx(stated_mu(plan), rel=1e-6)

    def keep(state, places, messages, weights, plan):
        state.duals[places] = weights - plan.gamma * messages
        state.sums[:] = state.duals.sum(axis=0)

    monkeypatch.setattr(ServerState, "move", keep)
    assert true_mu(plan, misses) > 1.4 * stated_mu(plan)


def test_cohorts_are_drawn_once_at_random_and_none_is_too_small():
    plan = plan_federated(Problem(Logistic()), 1, (-1.0, 1.0), 100, per_round=30)
    names = [str(i) for i in range(100)]
    first, again, other = (Server(plan, names, random_state=seed).cohorts for seed in (0, 0, 1))
    assert first == again
    assert first != other
    assert sorted(map(len, first)) == [33, 33, 34]
    assert sorted(name for cohort in first for name in cohort) == sorted(names)
    assert plan.smallest_cohort == 33


def test_whole_cohorts_are_asked_in_turn_in_a_new_order_every_cycle():
    plan = plan_of(rounds=30)
    server = Server(plan, SIX, random_state=0)
    order = []
    while not server.finished:
        order.append(server.cohorts.index(tuple(server.next_requests())))
        server.receive([])
    cycles = [tuple(order[k : k + 3]) for k in range(0, 30, 3)]
    assert all(sorted(cycle) == [0, 1, 2] for cycle in cycles)
    assert len(set(cycles)) > 2


def central_plan(**changes):
    return make_plan(unit="client", model="central", per_round=2, rounds=8, dropouts=0, **changes)


def test_a_round_that_too_many_missed_is_not_used_and_the_run_goes_on():
    plan = central_plan()
    server, clients = make_server(plan), make_clients(plan)
    server.receive(ask(server, clients).values())
    answers = ask(server, clients)
    names, before, table = tuple(answers), server.weights, server.duals
    report = server.receive([answers[names[-1]]])
    assert (report.used, report.missing, report.ended) == ((), names[:-1], "")
    assert np.array_equal(server.weights, before)
    assert np.array_equal(server.duals, table)
    reports = play(server, clients)
    assert any(names[0] in report.used for report in reports)
    assert max(server._state.asked) == plan.cohort_rounds == 4
    assert server.guarantees == plan.guarantees


def test_in_the_local_model_all_rounds_are_used_and_the_figure_is_withdrawn():
    plan = make_plan(unit="client", per_round=2, rounds=4, dropouts=0)
    assert plan.guarantees["central", "client"].epsilon < plan.guarantees["local", "client"].epsilon
    for lost, figure in ((0, "central"), (1, "local")):
        server = make_server(plan)
        reports = play(server, make_clients(plan), lambda number, answers, lost=lost: list(answers.values())[lost:])
        assert server.ended == "all rounds are done"
        assert all(report.used for report in reports)
        assert server.guarantees["central", "client"] == plan.guarantees[figure, "client"]


def test_no_cohort_is_asked_more_often_than_planned():
    plan = make_plan(per_round=2, rounds=8, participations=3)
    server, clients = make_server(plan), make_clients(plan)
    reports = play(server, clients, lambda number, answers: [])
    assert len(reports) == 6
    assert set(server._state.asked) == {3}


def test_the_sums_of_the_cohorts_are_those_of_the_table():
    plan = make_plan(per_round=2, rounds=8)
    server, clients = make_server(plan), make_clients(plan)
    while not server.finished:
        answers = list(ask(server, clients).values())
        server.receive(answers[1:] if server.round in (3, 4) else answers)
        for cohort, total in zip(server.cohorts, server._state.sums, strict=True):
            rows = [server.duals[NAMES.index(name)] for name in cohort]
            assert np.allclose(np.sum(rows, axis=0), total, rtol=0.0, atol=1e-12)


@pytest.mark.parametrize("cohort", [[0, 0, 0, 0, 1], [0, 0, 1, 1, 2], [0, 0, 1, 1, -1]], ids=str)
def test_cohorts_in_a_state_file_that_are_not_the_plans_are_refused(tmp_path, cohort):
    plan, path = make_plan(per_round=2), tmp_path / "server.json"
    make_server(plan, state=path).next_requests()
    make_server(plan, state=path)
    path.write_text(json.dumps(json.loads(path.read_text()) | {"cohort": cohort}))
    with pytest.raises(ValueError, match="cohort"):
        make_server(plan, state=path)
