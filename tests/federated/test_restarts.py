"""Clients and servers that restart, forget, share or damage their state: no reply is made that is not counted."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from discreet.federated import Refusal, Reply, StateFile
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


def test_two_processes_with_one_state_count_together(tmp_path):
    """A second client with the same file, started before the first one answered, knows of its replies."""
    plan, states = make_plan(participations=2), paths(tmp_path)
    first, second = make_clients(plan, states)["a"], make_clients(plan, states)["a"]
    told = first.answer(request_of(plan))
    again = second.answer(request_of(plan))
    assert np.array_equal(again.gradient, told.gradient)
    assert second.answer(request_of(plan, 2, 1)).number == 2
    assert isinstance(first.answer(request_of(plan, 3, 1)), Refusal)  # by its own memory alone it would answer


def test_a_client_that_is_running_does_not_forget_when_its_file_goes(tmp_path):
    plan, states = make_plan(participations=2), paths(tmp_path)
    client = make_clients(plan, states)["a"]
    client.answer(request_of(plan))
    old = states["a"].read_bytes()
    client.answer(request_of(plan, 2, 1))
    for put_back in (states["a"].unlink, lambda: states["a"].write_bytes(old)):
        put_back()
        assert isinstance(client.answer(request_of(plan, 3, 2)), Refusal)
        assert client.replies == 2


def test_threads_that_ask_one_client_get_different_numbers(tmp_path):
    plan = make_plan(rounds=30)
    client = make_clients(plan, paths(tmp_path))["a"]
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda k: client.answer(request_of(plan, k, 0)), range(1, 31)))
    numbers = [answer.number for answer in answers if isinstance(answer, Reply)]
    assert len(numbers) == len(set(numbers)) == client.replies


def test_a_replayed_round_gets_the_same_reply_without_new_noise(tmp_path):
    plan = make_plan()
    states = paths(tmp_path)
    client = make_clients(plan, states)["a"]
    first = client.answer(request_of(plan))
    for weights in (np.zeros(plan.dimension), np.ones(plan.dimension)):  # also where the server asks something else
        again = make_clients(plan, states)["a"].answer(request_of(plan, weights=weights))
        assert np.array_equal(again.gradient, first.gradient)
        assert again.number == 1


@pytest.mark.parametrize(
    "asked",
    [{"per_round": 3, "participations": 4, "sampling": "uniform"}, {"per_round": 2}],
    ids=["uniform", "cohorts"],
)
def test_a_server_that_restarts_goes_on_where_it_stopped(tmp_path, asked):
    plan = make_plan(**asked)
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
    used = sum(len(report.used) for report in reports)
    assert used in ((12, 13) if plan.cohorts == 2 else (3 * plan.rounds,))  # cohorts of 2 and 3 clients, 5 rounds


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
