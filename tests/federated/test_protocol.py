"""Servers that ask too much, lie or ask nonsense, and runs that must end before a promise would break."""

from __future__ import annotations

import numpy as np
import pytest

from discreet.federated import Refusal, Reply, Server
from tests.federated_tools import (
    NAMES,
    ask,
    faults_of,
    make_clients,
    make_plan,
    make_server,
    play,
    request_of,
)

pytestmark = pytest.mark.filterwarnings("ignore::discreet.InsecureRandomnessWarning")


def test_a_server_that_asks_too_often_is_refused():
    plan = make_plan(participations=2)
    client = make_clients(plan)["a"]
    answers = [client.answer(request_of(plan, number, min(number - 1, 2))) for number in range(1, 6)]
    assert [type(answer) for answer in answers] == [Reply, Reply, Refusal, Refusal, Refusal]
    assert "all of its 2 replies" in answers[2].reason


def test_lost_replies_count_against_the_cap():
    plan = make_plan(participations=3)
    client = make_clients(plan)["a"]
    kinds = [type(client.answer(request_of(plan, number, accepted=0))) for number in range(1, 6)]
    assert kinds == [Reply, Reply, Reply, Refusal, Refusal]


def test_a_server_that_lies_about_what_it_used_gets_no_more_than_the_plan_allows():
    plan = make_plan()
    client, rng = make_clients(plan)["a"], np.random.default_rng(0)
    sent = []
    for number in range(1, plan.rounds + 1):
        for accepted in rng.permutation(8):
            sent.append(client.answer(request_of(plan, number, int(accepted))))
    replies = {answer.number: answer for answer in sent if isinstance(answer, Reply)}
    assert len(replies) <= plan.participations
    # The memory is a function of what was told: it is one of the two that follow from the replies.
    state, z = client._state, np.zeros(plan.dimension)
    told = z - plan.gamma * replies[state.number].gradient
    assert np.allclose(state.dual, (1 - 2 * plan.relaxation) * state.base_dual + 2 * plan.relaxation * told)


@pytest.mark.parametrize(
    "request_",
    [
        "hello",
        None,
        request_of(make_plan(), number=0),
        request_of(make_plan(), number=6),
        request_of(make_plan(), number=True),
        request_of(make_plan(), accepted=-1),
        request_of(make_plan(), weights=np.zeros(3)),
        request_of(make_plan(), weights=np.zeros(4, dtype=np.float32)),
        request_of(make_plan(), weights=[0.0] * 4),
        request_of(make_plan(), weights=np.array([0.0, np.nan, 0.0, 0.0])),
        request_of(make_plan(), weights=np.array([0.0, np.inf, 0.0, 0.0])),
        request_of(make_plan(), weights=np.full(4, 1e13)),
        request_of(make_plan(), weights=np.full(4, 1e11)),  # finite, but too large for the tolerance of the plan
    ],
    ids=str,
)
def test_a_request_that_makes_no_sense_is_refused_and_costs_nothing(request_):
    client = make_clients(make_plan())["a"]
    assert isinstance(client.answer(request_), Refusal)
    assert client.replies == 0


def central_plan(**changes):
    return make_plan(unit="client", model="central", dropouts=1, **changes)


def test_the_central_model_does_not_use_a_round_that_would_break_the_promise():
    """One client may miss a round, another one the next; the round that two miss is not used, and the run goes on."""
    plan = central_plan()
    server, clients = make_server(plan), make_clients(plan)
    for lost in ("a", "b"):
        answers = ask(server, clients)
        assert server.receive([answers[name] for name in NAMES if name != lost]).used
    before, table = server.weights, server.duals
    answers = ask(server, clients)
    report = server.receive([answers[name] for name in NAMES[2:]])
    assert (report.used, report.missing, report.ended) == ((), NAMES[:2], "")
    assert {reason for _, reason in report.ignored} == {"too few of its cohort have answered"}
    assert np.array_equal(server.weights, before)
    assert np.array_equal(server.duals, table)
    assert server.missed == ("a", "b")
    assert play(server, clients)[-1].used == NAMES
    assert server.ended == "all rounds are done"
    assert server.guarantees == plan.guarantees


def test_in_the_local_model_such_a_round_is_used_and_the_central_figure_is_withdrawn():
    plan = make_plan(unit="client", dropouts=1)
    server, clients = make_server(plan), make_clients(plan)
    for lost in ("a", "b"):
        answers = ask(server, clients)
        server.receive([answers[name] for name in NAMES if name != lost])
    assert server.guarantees == plan.guarantees
    answers = ask(server, clients)
    assert server.receive([answers[name] for name in NAMES[2:]]).used == NAMES[2:]
    promised = server.guarantees["central", "client"].epsilon
    assert promised == plan.guarantees["local", "client"].epsilon > plan.guarantees["central", "client"].epsilon


def test_a_client_that_is_absent_is_taken_to_have_sent_the_mean_of_the_others():
    plan = central_plan(relaxation=0.3)
    server, clients = make_server(plan), make_clients(plan)
    answers = ask(server, clients)
    server.receive(answers.values())
    weights, before = server.weights, server.duals
    answers = ask(server, clients)
    server.receive([answers[name] for name in NAMES[1:]])
    mean = np.mean([answers[name].gradient for name in NAMES[1:]], axis=0)
    expected = 0.4 * before[0] + 0.6 * (weights - plan.gamma * mean)
    assert np.allclose(server.duals[0], expected, rtol=0.0, atol=1e-9)
    assert faults_of(server, clients, honest=()) == []


def test_the_same_client_may_miss_many_rounds():
    plan = central_plan()
    server, clients = make_server(plan), make_clients(plan)
    reports = play(server, clients, lambda number, answers: [answers[name] for name in NAMES[1:]])
    assert len(reports) == plan.rounds
    assert server.ended == "all rounds are done"


def test_no_client_is_asked_more_often_than_planned():
    plan = make_plan(per_round=2, rounds=8, participations=3, sampling="uniform")
    server, clients = make_server(plan), make_clients(plan)
    reports = play(server, clients, lambda number, answers: [])  # all answers are lost
    assert [len(report.missing) for report in reports] == [2] * 7 + [1]  # 5 clients, 3 times each
    assert all(client.replies <= 3 for client in clients.values())
    assert server.ended


def test_receiving_before_asking_is_an_error():
    with pytest.raises(RuntimeError, match="next_requests"):
        make_server(make_plan()).receive([])


def test_a_server_needs_one_name_for_each_client():
    with pytest.raises(ValueError, match="5 clients"):
        Server(make_plan(), ["a", "a", "b", "c", "d"])
