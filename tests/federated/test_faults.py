"""Clients that fail in every way, and what must hold all the same: the round goes on and the table stays consistent."""

from __future__ import annotations

import numpy as np
import pytest

from discreet.federated import Refusal, Reply, Server, StateFile
from tests.federated_tools import (
    NAMES,
    NaiveServer,
    ask,
    changed,
    faults_of,
    make_clients,
    make_plan,
    make_server,
    play,
    request_of,
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


def paths(folder):
    return {name: folder / f"{name}.json" for name in NAMES}


def test_a_client_that_restarts_with_its_state_goes_on_as_if_nothing_had_happened(tmp_path):
    plan = make_plan()
    server, clients = make_server(plan), make_clients(plan)
    play(server, clients)
    again, states = make_server(plan), paths(tmp_path)
    while not again.finished:
        again.receive(ask(again, make_clients(plan, states)).values())  # every client restarts in every round
    assert np.array_equal(again.weights, server.weights)
    assert np.array_equal(again.duals, server.duals)


def test_a_client_that_forgets_its_state_refuses_and_its_dual_variable_stays(tmp_path):
    plan, states = make_plan(), paths(tmp_path)
    server, clients = make_server(plan), make_clients(plan, states)
    server.receive(ask(server, clients).values())
    kept = server.duals[0]
    states["a"].unlink()
    while not server.finished:
        clients = make_clients(plan, states)
        answers = ask(server, clients)
        assert isinstance(answers["a"], Refusal)
        assert "lost its state" in answers["a"].reason
        report = server.receive(answers.values())
        assert report.missing == ("a",)
        assert faults_of(server, clients, honest=NAMES[1:]) == []
        assert np.array_equal(server.duals[0], kept)


@pytest.mark.parametrize("damage", ["", "{}", "null", '{"format": "discreet federated client", "version": 1}'])
def test_a_damaged_state_is_refused_and_left_alone(tmp_path, damage):
    plan, states = make_plan(), paths(tmp_path)
    states["a"].write_text(damage)
    with pytest.raises(ValueError, match="not the state of a client"):
        make_clients(plan, states)
    assert states["a"].read_text() == damage


def test_the_state_of_another_run_or_client_is_refused(tmp_path):
    plan, states = make_plan(), paths(tmp_path)
    server, clients = make_server(plan), make_clients(plan, states)
    server.receive(ask(server, clients).values())
    with pytest.raises(ValueError, match="another run or client"):
        make_clients(make_plan(run="tomorrow"), states)
    with pytest.raises(ValueError, match="another run or client"):
        make_clients(plan, states | {"a": states["b"]})


def test_the_count_is_on_the_disk_before_the_reply_leaves(tmp_path):
    plan = make_plan()
    client = make_clients(plan, paths(tmp_path))["a"]

    class Full(StateFile):
        def save(self, state):
            raise OSError("no space left on device")

    reply = client.answer(request_of(plan))
    assert StateFile(tmp_path / "a.json").load().number == reply.number == 1
    client._store = Full(tmp_path / "a.json")
    with pytest.raises(OSError, match="no space"):
        client.answer(request_of(plan, 2, 1))
    assert client.replies == 1


def test_a_replayed_round_gets_the_same_reply_without_new_noise(tmp_path):
    plan = make_plan()
    states = paths(tmp_path)
    client = make_clients(plan, states)["a"]
    first = client.answer(request_of(plan))
    for weights in (np.zeros(plan.dimension), np.ones(plan.dimension)):  # also where the server asks something else
        again = make_clients(plan, states)["a"].answer(request_of(plan, weights=weights))
        assert np.array_equal(again.gradient, first.gradient)
        assert again.number == 1


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


def test_a_server_that_restarts_goes_on_where_it_stopped(tmp_path):
    plan = make_plan(per_round=3, participations=4)
    clients = make_clients(plan)
    whole = make_server(plan)
    play(whole, clients)
    clients, reports = make_clients(plan), []
    while True:
        server = make_server(plan, state=tmp_path / "server.json")
        if server.finished:
            break
        first = server.next_requests()
        again = make_server(plan, state=tmp_path / "server.json")  # a crash after the requests were sent
        assert list(again.next_requests()) == list(first)
        reports.append(again.receive([clients[name].answer(r) for name, r in again.next_requests().items()]))
        assert faults_of(again, clients) == []
    assert len(reports) == plan.rounds
    assert sum(len(report.used) for report in reports) == 3 * plan.rounds


def test_a_server_whose_state_is_put_back_is_refused_by_clients_that_know_better(tmp_path):
    plan, path = make_plan(), tmp_path / "server.json"
    server, clients = make_server(plan, state=path), make_clients(plan)
    server.receive(ask(server, clients).values())
    old = path.read_bytes()
    for _ in range(2):
        server.receive(ask(server, clients).values())
    path.write_bytes(old)
    restored = make_server(plan, state=path)
    answers = ask(restored, clients)
    assert all(isinstance(answer, Refusal) for answer in answers.values())
    assert restored.receive(answers.values()).used == ()
    assert faults_of(restored, clients, honest=()) == []


def test_the_state_of_another_server_or_a_damaged_one_is_refused(tmp_path):
    plan, path = make_plan(), tmp_path / "server.json"
    server, clients = make_server(plan, state=path), make_clients(plan)
    server.receive(ask(server, clients).values())
    with pytest.raises(ValueError, match="another run"):
        make_server(make_plan(run="tomorrow"), state=path)
    with pytest.raises(ValueError, match="another run"):
        make_server(plan, names=NAMES[::-1], state=path)
    path.write_text(path.read_text().replace('"duals": [[', '"duals": [[0.0, '))
    with pytest.raises(ValueError, match="not a server's state"):
        make_server(plan, state=path)


def central_plan(**changes):
    return make_plan(unit="client", model="central", dropouts=1, **changes)


def test_the_central_model_ends_before_the_promise_would_break():
    """Two clients miss a round where one may: the second round is not applied."""
    plan = central_plan()
    server, clients = make_server(plan), make_clients(plan)
    answers = ask(server, clients)
    assert server.receive([answers[name] for name in NAMES[1:]]).ended == ""
    before = server.weights
    answers = ask(server, clients)
    report = server.receive([answers[name] for name in NAMES if name != "b"])
    assert "more than 1 clients have missed" in report.ended
    assert server.finished
    assert np.array_equal(server.weights, before)
    assert server.missed == ("a", "b")
    assert server.next_requests() == {}


def test_in_the_local_model_the_run_goes_on_and_the_central_figure_is_withdrawn():
    plan = make_plan(unit="client", dropouts=1)
    server, clients = make_server(plan), make_clients(plan)
    answers = ask(server, clients)
    server.receive([answers[name] for name in NAMES[1:]])
    assert server.guarantees == plan.guarantees
    answers = ask(server, clients)
    assert server.receive([answers[name] for name in NAMES if name != "b"]).ended == ""
    promised = server.guarantees["central", "client"].epsilon
    assert promised == plan.guarantees["local", "client"].epsilon > plan.guarantees["central", "client"].epsilon


def test_the_same_client_may_miss_many_rounds():
    plan = central_plan()
    server, clients = make_server(plan), make_clients(plan)
    reports = play(server, clients, lambda number, answers: [answers[name] for name in NAMES[1:]])
    assert len(reports) == plan.rounds
    assert server.ended == "all rounds are done"


def test_no_client_is_asked_more_often_than_planned():
    plan = make_plan(per_round=2, rounds=8, participations=3)
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
