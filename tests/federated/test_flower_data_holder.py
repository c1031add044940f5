"""The client's process: it outlives its SuperNode, and requests that go wrong."""

from __future__ import annotations

import os
import signal
import threading
from types import SimpleNamespace

import httpx
import pytest

pytest.importorskip("flwr", reason="needs Flower: pip install 'discreet[flower]'")

from discreet.federated.flower import data_holder, internals
from discreet.federated.flower.certificates import make_client_key, make_server_certificate
from discreet.federated.flower.internals import EarlierConnection
from discreet.federated.flower.processes import ProgramEndedError, free_port
from tests.federated_tools import make_clients, make_plan, request_of


@pytest.fixture
def supernodes(monkeypatch):
    """SuperNodes that were started; the first two are turned away by the SuperLink."""
    started = []

    class FakeSuperNode:
        def __init__(self, command, log, environment, own_group):
            started.append([str(part) for part in command])
            self.running = len(started) > 2
            self.process = SimpleNamespace(terminate=lambda: None, wait=lambda seconds=None: None)

        def wait_for_port(self, port):
            if not self.running:
                raise ProgramEndedError("turned away")

        def kill(self):
            pass

    class FakeExecutor:
        def __init__(self, *_, **__):
            pass

        def run(self, stopped):
            os.kill(os.getpid(), signal.SIGTERM)
            assert stopped()

        def close(self):
            pass

    monkeypatch.setattr(data_holder, "Program", FakeSuperNode)
    monkeypatch.setattr(data_holder, "Executor", FakeExecutor)
    monkeypatch.setattr(data_holder, "SECONDS_BETWEEN_STARTS", 0.01)
    return started


def test_a_client_starts_its_supernode_until_it_is_let_in_and_stops_when_asked(tmp_path, supernodes):
    before = signal.getsignal(signal.SIGTERM)
    files = {name: tmp_path / name for name in ("authority", "key", "log")}
    data_holder.hold_data(None, tmp_path / "state", "127.0.0.1:1", **files)
    assert len(supernodes) == 3
    for command in supernodes:
        assert command[command.index("--isolation") + 1] == "process"  # it runs no code that it receives
        assert "--insecure" not in command
    assert signal.getsignal(signal.SIGTERM) is before


def test_an_executor_outlives_a_request_that_goes_wrong(tmp_path, monkeypatch, caplog):
    tasks = iter([httpx.ConnectError("not there yet"), "", "broken", "good"])
    answered = []

    class FakeConnection:
        def AcquireTask(self, request):  # noqa: N802 - as Flower calls it
            task = next(tasks)
            if isinstance(task, Exception):
                raise task
            return SimpleNamespace(token=task)

        def SendTaskHeartbeat(self, request):  # noqa: N802 - as Flower calls it
            pass

        def close(self):
            pass

    def pull(connection):
        if not answered and not caplog.records:
            raise RuntimeError("objects are missing")
        return "message", "context", None, None

    monkeypatch.setattr(internals.RuntimeHttpClient, "from_server_address", lambda **_: FakeConnection())
    monkeypatch.setattr(internals, "pull_task_input", pull)
    monkeypatch.setattr(internals, "push_message", lambda connection, reply, context: answered.append(reply))
    monkeypatch.setattr(internals, "push_task_output", lambda **_: None)
    authority = make_server_certificate(tmp_path).authority
    made = internals.Executor(lambda message, context: "reply", "127.0.0.1:1", authority=authority, secret=b"s")
    assert [made.answer_one() for _ in range(4)] == [False, False, False, True]
    assert answered == ["reply"]
    assert "objects are missing" in caplog.text


def test_the_earlier_connection_is_ended_where_there_was_one(tmp_path):
    earlier = EarlierConnection(tmp_path / "node")
    key, _ = make_client_key(tmp_path)
    authority = make_server_certificate(tmp_path).authority
    earlier.end("127.0.0.1:1", authority, tmp_path / "no key is read")  # nothing to end
    earlier.remember(17)
    earlier.end(f"127.0.0.1:{free_port()}", authority, key)  # no server: it finds out by itself
    assert (tmp_path / "node").read_text() == "17"


@pytest.mark.filterwarnings("ignore::discreet.InsecureRandomnessWarning")
def test_a_process_that_is_the_only_one_can_still_answer(tmp_path):
    plan, path = make_plan(), tmp_path / "a.json"
    client = make_clients(plan, {"a": path}, names=("a",))["a"]
    answers = []
    with data_holder.only_process(path):
        asking = threading.Thread(target=lambda: answers.append(client.answer(request_of(plan))), daemon=True)
        asking.start()
        asking.join(10.0)
        with pytest.raises(RuntimeError, match="another process"), data_holder.only_process(path):
            pass
    assert [answer.number for answer in answers] == [1]
