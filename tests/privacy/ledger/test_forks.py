"""A fork waits for the ledger, and a child that could not wait refuses to use one."""

from __future__ import annotations

import ctypes
import os
import sys
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest

from discreet.privacy.accounting import laplace_event
from discreet.privacy.ledger import Ledger, locks
from discreet.privacy.ledger.locks import FORKS, ForkGuard

QUARTER = laplace_event(4.0)
pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    made = Ledger(tmp_path / "budget.db")
    made.open("t", 1.0, 0.0)
    return made


def answer_of_child(task: Callable[[], object], fork: Callable[[], int] = os.fork) -> str:
    """What a task returns, or the error it raises, in a forked process."""
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # newer Pythons warn of forks beside threads
        child = fork()
    if child == 0:
        try:
            try:
                answer = str(task())
            except BaseException as error:
                answer = f"{type(error).__name__}: {error}"
            os.write(writing, answer.encode())
        finally:
            os._exit(0)
    os.close(writing)
    with open(reading) as pipe:
        answer = pipe.read()
    os.waitpid(child, 0)
    return answer


def hold(ledger: Ledger, ready: threading.Event, until: threading.Event) -> None:
    with ledger._chain.writing():
        ready.set()
        until.wait(10.0)


def test_a_fork_waits_until_no_thread_uses_a_ledger(ledger: Ledger) -> None:
    """Without the wait the child believes in locks that it does not have, or never gets any."""
    ready, until = threading.Event(), threading.Event()
    thread = threading.Thread(target=hold, args=(ledger, ready, until))
    thread.start()
    ready.wait()
    threading.Timer(0.3, until.set).start()
    began = time.monotonic()
    assert answer_of_child(lambda: ledger.reserve("t", QUARTER, relation="replace").id) == "2"
    assert time.monotonic() - began >= 0.25
    thread.join()
    assert [entry.id for entry in ledger.entries("t")] == [2]


def test_a_fork_inside_a_transaction_is_finished_by_the_parent_alone(ledger: Ledger) -> None:
    children: list[str] = []
    with ledger._chain.writing() as writer:
        number = writer.append("commit", "t", {"entry": 1})
        children.append(answer_of_child(lambda: ledger.spent("t")))
    assert "cannot use a ledger" in children[0]
    assert ledger._chain.read()[0][-1].number == number
    assert ledger.reserve("t", QUARTER, relation="replace").id == number + 1


def test_a_child_that_leaves_the_block_of_its_parent_undoes_nothing(ledger: Ledger) -> None:
    def leave_the_block(ledger: Ledger) -> int:
        with ledger._chain.writing() as writer:
            writer.append("commit", "t", {"entry": 1})
            return os.fork()

    parent, (reading, writing) = os.getpid(), os.pipe()
    try:
        child = leave_the_block(ledger)
    except RuntimeError as error:
        assert os.getpid() != parent
        os.write(writing, str(error).encode())
        os._exit(0)
    os.close(writing)
    with open(reading) as pipe:
        assert "only the parent writes it" in pipe.read()
    os.waitpid(child, 0)
    assert len(ledger._chain.read()[0]) == 2
    assert ledger.verify() == []
    assert ledger.reserve("t", QUARTER, relation="replace").id == 3


@pytest.mark.skipif(sys.platform != "linux", reason="calls fork of the C library")
def test_a_fork_by_a_library_is_noticed(ledger: Ledger) -> None:
    fork = ctypes.PyDLL(None).fork  # runs none of Python's hooks
    assert answer_of_child(lambda: ledger.reserve("t", QUARTER, relation="replace").id, fork) == "2"
    ready, until = threading.Event(), threading.Event()
    thread = threading.Thread(target=hold, args=(ledger, ready, until))
    thread.start()
    ready.wait()
    assert "forked while the ledger was in use" in answer_of_child(lambda: ledger.spent("t"), fork)
    until.set()
    thread.join()
    assert ledger.spent("t") == pytest.approx(0.25)


def test_who_comes_during_a_fork_waits_for_its_end() -> None:
    guard, inside = ForkGuard(), threading.Event()

    def use() -> None:
        with guard.using():
            inside.set()

    guard.before_fork()
    threading.Thread(target=use).start()
    assert not inside.wait(0.1)
    guard.after_fork_in_parent()
    assert inside.wait(5.0)


def test_a_fork_does_not_wait_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks, "LONGEST_WAIT", 0.05)
    guard, ready, until = ForkGuard(), threading.Event(), threading.Event()

    def use() -> None:
        with guard.using():
            ready.set()
            until.wait(10.0)

    thread = threading.Thread(target=use)
    thread.start()
    ready.wait()
    guard.before_fork()
    guard.after_fork_in_parent()
    until.set()
    thread.join()


def test_uses_of_one_thread_may_be_nested() -> None:
    with FORKS.using(), FORKS.using():
        assert answer_of_child(lambda: 1) == "1"
    assert answer_of_child(lambda: Ledger("sqlite://").datasets()) == "[]"
