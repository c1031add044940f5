"""Clients that fail in every way, and what must hold all the same: the round goes on and the table stays consistent."""

from __future__ import annotations

import numpy as np
import pytest

from discreet.federated import Refusal, Reply
from tests.federated_tools import (
    NAMES,
    NaiveServer,
    ask,
    changed,
    faults_of,
    make_clients,
    make_plan,
    make_server,
)

pytestmark = pytest.mark.filterwarnings("ignore::discreet.InsecureRandomnessWarning")
BAD_ROUNDS = (2, 4)


def drops_out(number, answers, late):
    return [answers[name] for name in answers if name != "a"]


def answers_late(number, answers, late):
    late.append(answers["a"])
    return [late[0] if len(late) > 1 else Refusal("a", number, "slow"), *(answers[n] for n in NAMES[1:])]


def answers_twice(number, answers, late):
    second = changed(answers["a"], gradient=answers["a"].gradient + 1.0)
    return [*answers.values(), second]


def with_gradient(make):
    def corrupted(number, answers, late):
        return [changed(answers["a"], gradient=make(answers["a"].gradient)), *(answers[n] for n in NAMES[1:])]

    return corrupted


def for_another_client(number, answers, late):
    return [*(answers[n] for n in NAMES[1:]), changed(answers["a"], client="nobody")]


def for_another_round(number, answers, late):
    stale = changed(answers["a"], round=number - 1, gradient=answers["a"].gradient + 1.0)
    return [stale, *(answers[n] for n in NAMES[1:])]


def with_a_number_of_the_past(number, answers, late):
    return [changed(answers["a"], number=0), *(answers[n] for n in NAMES[1:])]


def with_a_number_of_the_future(number, answers, late):
    return [changed(answers["a"], number=99), *(answers[n] for n in NAMES[1:])]


def sends_nonsense(number, answers, late):
    return ["hello", None, {"client": "a"}, *(answers[n] for n in NAMES[1:])]


FAULTS = {
    "drops out": drops_out,
    "answers late": answers_late,
    "answers twice": answers_twice,
    "NaN": with_gradient(lambda g: np.where(np.arange(g.size) == 1, np.nan, g)),
    "infinity": with_gradient(lambda g: np.where(np.arange(g.size) == 1, np.inf, g)),
    "too many numbers": with_gradient(lambda g: np.append(g, 0.0)),
    "a column instead of a row": with_gradient(lambda g: g[:, None]),
    "whole numbers": with_gradient(lambda g: np.round(g).astype(np.int64)),
    "single precision": with_gradient(lambda g: g.astype(np.float32)),
    "a list of nothing": with_gradient(lambda g: [None] * g.size),
    "another client": for_another_client,
    "another round": for_another_round,
    "a number of the past": with_a_number_of_the_past,
    "a number of the future": with_a_number_of_the_future,
    "nonsense": sends_nonsense,
}


def play_with(fault, server, clients):
    """A run with the fault in two rounds; the checks after every round, and the reports."""
    late, found, reports = [], [], []
    while not server.finished:
        number, answers = server.round, ask(server, clients)
        meddled = fault(number, answers, late) if number in BAD_ROUNDS else list(answers.values())
        reports.append(server.receive(meddled))
        found += faults_of(server, clients)
    return found, reports


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_the_round_goes_on_and_all_stays_consistent(fault):
    plan = make_plan()
    server, clients = make_server(plan), make_clients(plan)
    found, reports = play_with(fault, server, clients)
    assert found == []
    assert len(reports) == plan.rounds
    for report in reports:
        used = set(NAMES[1:]) if report.round in BAD_ROUNDS and fault is not answers_twice else set(NAMES)
        assert set(report.used) == used
        assert report.missing == tuple(sorted(set(NAMES) - used))
    ignored = [line for report in reports for line in report.ignored]
    assert bool(ignored) == (fault is not drops_out)


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_a_naive_server_fails_at_each_of_them(fault):
    plan = make_plan()
    server, clients = make_server(plan, kind=NaiveServer), make_clients(plan)
    try:
        found, _ = play_with(fault, server, clients)
    except (AttributeError, KeyError, ValueError, TypeError):
        return  # it crashed, and with it the run
    assert found != []


def test_a_naive_server_passes_the_checks_where_nothing_fails():
    plan = make_plan()
    server, clients = make_server(plan, kind=NaiveServer), make_clients(plan)
    found, _ = play_with(lambda number, answers, late: list(answers.values()), server, clients)
    assert found == []


@pytest.mark.parametrize("size", [1e3, 1e300])
def test_a_message_beyond_its_bound_is_cut_off_there(size):
    plan = make_plan()
    server, clients = make_server(plan), make_clients(plan)
    huge = with_gradient(lambda g: np.full_like(g, size))
    while not server.finished:
        number, answers, before = server.round, ask(server, clients), server.duals
        weights = server.weights
        report = server.receive(huge(number, answers, []) if number == 2 else list(answers.values()))
        assert faults_of(server, clients, honest=NAMES[1:]) == []
        if number == 2:
            assert report.shortened == ("a",)
            moved = np.linalg.norm(server.duals[0] - (1 - 2 * plan.relaxation) * before[0] - weights)
            assert moved == pytest.approx(plan.gamma * plan.bound, rel=1e-9)
        else:
            assert report.shortened == ()


def test_a_naive_server_is_moved_as_far_as_a_message_says():
    plan = make_plan()
    naive, clients = make_server(plan, kind=NaiveServer), make_clients(plan)
    found, _ = play_with(with_gradient(lambda g: np.full_like(g, 1e3)), naive, clients)
    assert "a dual variable beyond what bounded messages can make of it" in found


def test_a_name_that_is_not_the_senders_is_not_believed():
    from discreet.federated.rounds import in_process

    plan = make_plan()
    server, clients = make_server(plan), make_clients(plan)

    class Impostor:
        def answer(self, request):
            return Reply("b", request.round, 1, np.ones(plan.dimension))

    answers = in_process(clients | {"a": Impostor()})(server.next_requests())
    report = server.receive(answers)
    assert report.used == NAMES[1:]
    assert report.ignored == (("a", "refused: answered under another name"),)
    assert faults_of(server, clients, honest=NAMES[1:]) == []


@pytest.mark.parametrize("name", ["round", "number"])
@pytest.mark.parametrize(
    "value", [np.array([1, 1]), 10**5000, -(10**5000), 1.0, "1", None], ids=lambda value: type(value).__name__
)
def test_what_is_no_count_does_not_stop_a_server(name, value):
    plan = make_plan(rounds=1)
    server = make_server(plan)
    answers = ask(server, make_clients(plan))
    report = server.receive([changed(answers["a"], **{name: value}), answers["b"]])
    assert report.used == ("b",)
    assert report.ignored == (("a", "its round or its number is not a whole number, or too large"),)
