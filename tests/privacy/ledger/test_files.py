"""The ledger's file: one name, never empty, never half read, and what is wrong with it is said in plain words."""

from __future__ import annotations

import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.exc import OperationalError

from discreet.privacy.accounting import laplace_event
from discreet.privacy.ledger import Ledger, locks, store
from discreet.privacy.ledger.records import ChainError

QUARTER = laplace_event(4.0)  # epsilon 0.25 at delta 0
TINY = laplace_event(1e6)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "budget.db"


@pytest.fixture
def ledger(path: Path) -> Ledger:
    made = Ledger(path)
    made.open("t", 1.0, 0.0)
    made.reserve("t", QUARTER, note="first", relation="replace")
    return made


def refuses(ledger: Ledger, words: str) -> None:
    """Nothing is granted or summed up, and `verify` says why in one line."""
    with pytest.raises((ChainError, OSError), match=words):
        ledger.reserve("t", TINY, relation="replace")
    with pytest.raises((ChainError, OSError), match=words):
        ledger.spent("t")
    found = ledger.verify()
    assert words in " ".join(found)
    assert not any("\n" in line for line in found)


# --- names ---------------------------------------------------------------------------------------------


def test_between_writes_there_is_one_file(ledger: Ledger, path: Path) -> None:
    assert os.listdir(path.parent) == ["budget.db"]
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("delete",)
    connection.close()


def test_a_hard_link_is_refused_under_both_names(ledger: Ledger, path: Path) -> None:
    other = path.with_name("other.db")
    os.link(path, other)
    for name in (path, other):
        refuses(Ledger(name), "2 names")
    other.unlink()
    assert ledger.verify() == []
    ledger.reserve("t", QUARTER, relation="replace")


def test_a_symbolic_link_is_followed(ledger: Ledger, path: Path) -> None:
    path.with_name("link.db").symlink_to(path)
    Ledger(path.with_name("link.db")).reserve("t", QUARTER, relation="replace")
    assert ledger.spent("t") == pytest.approx(0.5)


def test_a_file_mounted_alone_is_refused(ledger: Ledger, path: Path) -> None:
    """As containers do with a volume that is a single file: its journal would be looked for in another folder."""
    other = path.with_name("in container.db")
    other.touch()
    done = subprocess.run(["mount", "--bind", path, other], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"no permission to mount a file: {done.stderr.strip()}")
    try:
        refuses(Ledger(other), "mount its folder")
        ledger.reserve("t", QUARTER, relation="replace")
    finally:
        subprocess.run(["umount", other], check=True)
    assert ledger.verify() == []


def test_mounts_are_read_from_the_kernels_list(
    ledger: Ledger, path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mounts = tmp_path / "mountinfo"
    escaped = str(path).replace(" ", r"\040")
    line = "42 27 254:0 /srv/budget.db {} rw,relatime - ext4 /dev/vda rw\n"
    monkeypatch.setattr(locks, "_MOUNTS", mounts)
    mounts.write_text(line.format(tmp_path))
    assert ledger.verify() == []
    for place in (escaped, f"{escaped}-journal"):
        mounts.write_text(line.format("/") + line.format(place))
        refuses(ledger, "mount its folder")


def test_a_file_that_was_replaced_during_a_write_grants_nothing(ledger: Ledger, path: Path) -> None:
    copy = path.with_name("copy.db")
    shutil.copy(path, copy)
    with pytest.raises(ChainError, match="was replaced"), ledger._chain.writing():
        os.replace(copy, path)
    with pytest.raises(ChainError, match="was deleted"), ledger._chain.writing():
        path.unlink()


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the second lock is held on Linux")
def test_closing_the_file_elsewhere_in_the_process_gives_no_lock_away(ledger: Ledger, path: Path) -> None:
    """SQLite's locks are gone once any thread has closed the file; another process must be kept out all the same."""
    script = (
        "import sys\nfrom discreet.privacy.ledger import Ledger, locks\n"
        "from discreet.privacy.accounting import laplace_event\n"
        "locks.WAIT_SECONDS = 0.2\nLedger(sys.argv[1]).reserve('t', laplace_event(4.0), relation='replace')"
    )
    with ledger._chain.writing() as writer:
        writer.append("commit", "t", {"entry": 2})
        path.read_bytes()
        done = subprocess.run([sys.executable, "-c", script, path], capture_output=True, text=True, check=False)
    assert "TimeoutError: the ledger did not answer" in done.stderr
    assert ledger.verify() == []


def test_a_reader_outside_the_library_keeps_a_write_waiting(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks, "WAIT_SECONDS", 0.1)
    ledger = Ledger(path)
    ledger.open("t", 1.0, 0.0)
    reader = sqlite3.connect(path, isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT * FROM discreet_tip").fetchall()
    with pytest.raises(TimeoutError, match="nothing was written"):
        ledger.reserve("t", QUARTER, relation="replace")
    reader.close()
    assert ledger.spent("t") == 0.0
    ledger.reserve("t", QUARTER, relation="replace")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_half_written_file_is_completed_by_its_journal_and_refused_without(ledger: Ledger, path: Path) -> None:
    """The state after a kill in the middle of a write that was too large for memory."""
    child = os.fork()
    if child == 0:
        with ledger._chain.writing() as writer:
            writer._open.exec_driver_sql("PRAGMA cache_size = 1")
            for _ in range(100):
                writer.append("commit", "t", {"entry": 2, "filling": "x" * 1000}, "a total")
            os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    copy = path.with_name("copy.db")
    shutil.copy(path, copy)
    assert Path(f"{path}-journal").exists()
    refuses(Ledger(copy), "damaged")
    assert ledger.verify() == []
    assert len(ledger.entries("t")) == 1


# --- what is no ledger ---------------------------------------------------------------------------------


def test_an_empty_file_is_no_ledger(path: Path) -> None:
    path.touch()
    refuses(Ledger(path), "is empty")
    with pytest.raises(ChainError, match="is empty"):
        Ledger(path).open("t", 1.0, 0.0)
    assert path.stat().st_size == 0


def test_an_erased_ledger_does_not_start_anew(ledger: Ledger, path: Path) -> None:
    path.write_bytes(b"")
    refuses(ledger, "all of it was erased")


def test_a_missing_ledger_is_reported_and_not_made(path: Path) -> None:
    assert Ledger(path).verify() == [f"there is no ledger at {path}"]
    with pytest.raises(ValueError, match="unknown data set"):
        Ledger(path).reserve("t", TINY, relation="replace")
    assert not path.exists()


def test_the_journal_of_a_lost_file_is_not_taken_for_that_of_a_new_one(path: Path) -> None:
    for ending in ("-journal", "-wal"):
        remains = Path(f"{path}{ending}")
        remains.write_bytes(b"what was here before")
        with pytest.raises(ChainError, match="file is missing"):
            Ledger(path).open("t", 1.0, 0.0)
        remains.unlink()
    assert os.listdir(path.parent) == []


def test_another_database_is_left_alone(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE patients (name TEXT)")
    connection.commit()
    before = path.read_bytes()
    refuses(Ledger(path), "without a ledger")
    with pytest.raises(ChainError, match="without a ledger"):
        Ledger(path).open("t", 1.0, 0.0)
    assert path.read_bytes() == before
    connection.close()


def test_a_text_file_is_refused(path: Path) -> None:
    path.write_text("epsilon = 1\n" * 400)
    refuses(Ledger(path), "damaged, or is no ledger")


def test_a_cut_file_is_refused(ledger: Ledger, path: Path) -> None:
    for i in range(30):
        ledger.reserve("t", TINY, note="x" * 400 + str(i), relation="replace")
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    refuses(ledger, "damaged")


def test_a_read_only_file_is_reported(ledger: Ledger, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path.chmod(0o444)
    if os.geteuid() == 0:  # root may write whatever the mode says, so ask as somebody else would
        monkeypatch.setattr(os, "access", lambda place, mode: Path(place) != path)
    assert ledger.verify() == [f"{path} is read-only: nothing can be reserved"]
    assert ledger.spent("t") == pytest.approx(0.25)


def test_flipped_bytes_are_reported_or_change_nothing(ledger: Ledger, path: Path) -> None:
    """100 damaged copies: one line each, no other error, and no sum or entry that differs unnoticed."""
    for i in range(6):
        ledger.reserve("t", TINY, note=f"entry {i}", relation="replace")
    whole, chance = path.read_bytes(), random.Random(0)
    spent, entries = ledger.spent("t"), ledger.entries("t")
    noticed = 0
    for _ in range(100):
        broken = bytearray(whole)
        for _ in range(chance.choice([1, 1, 2, 8])):
            broken[chance.randrange(len(broken))] ^= 1 << chance.randrange(8)
        path.write_bytes(broken)
        found = ledger.verify()
        assert not any("\n" in line for line in found)
        if found:
            noticed += 1
        else:
            assert (ledger.spent("t"), ledger.entries("t")) == (spent, entries)
        try:
            ledger.reserve("t", TINY, relation="replace")
        except (ChainError, OSError, ValueError):
            continue
    assert noticed > 10


# --- backup --------------------------------------------------------------------------------------------


def test_a_backup_taken_during_writes_has_everything_granted_before(ledger: Ledger, path: Path) -> None:
    stop, granted = threading.Event(), []

    def write() -> None:
        while not stop.is_set():
            granted.append(ledger.reserve("t", TINY, relation="replace").hash)

    writers = [threading.Thread(target=write) for _ in range(2)]
    for thread in writers:
        thread.start()
    for i in range(8):
        before = list(granted)
        head = ledger.backup(path.with_name(f"copy{i}.db"))
        copy = Ledger(path.with_name(f"copy{i}.db"))
        stored = {record.hash for record in copy._chain.read()[0]}
        assert stored >= {head, *before}
        assert copy.verify() == []
    stop.set()
    for thread in writers:
        thread.join()
    assert ledger.verify(head=head) == []


def test_a_backup_overwrites_nothing_and_knows_its_age(ledger: Ledger, path: Path) -> None:
    copy = path.with_name("copy.db")
    ledger.backup(copy)
    with pytest.raises(FileExistsError, match=r"copy.db exists"):
        ledger.backup(copy)
    with pytest.raises(FileNotFoundError, match="folder"):
        ledger.backup(path.with_name("nowhere") / "copy.db")
    later = ledger.reserve("t", QUARTER, relation="replace").hash
    shutil.copy(copy, path)
    (problem,) = Ledger(path).verify(head=later)
    assert later in problem


def test_memory_can_be_kept_and_servers_have_their_own_tools(path: Path) -> None:
    memory = Ledger("sqlite://")
    memory.open("t", 1.0, 0.0)
    memory.reserve("t", QUARTER, relation="replace")
    memory.backup(path)
    assert Ledger(path).spent("t") == pytest.approx(0.25)
    with pytest.raises(ValueError, match="pg_dump"):
        Ledger("postgresql://steward@db/budgets").backup(path.with_name("copy.db"))


class FailsAtFirst:
    """An engine whose first connections fail."""

    def __init__(self, failures: int, reason: str) -> None:
        self.failures, self.reason = failures, reason

    def connect(self) -> str:
        self.failures -= 1
        if self.failures >= 0:
            raise OperationalError("", None, sqlite3.OperationalError(self.reason))
        return "connection"


def test_opening_is_tried_again_while_another_process_undoes_a_write(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "PAUSES", (0.0, 0.0))
    assert store.patiently_opened(FailsAtFirst(2, "disk I/O error")) == "connection"
    for engine in (FailsAtFirst(3, "disk I/O error"), FailsAtFirst(1, "unable to open database file")):
        with pytest.raises(OperationalError):
            store.patiently_opened(engine)


def test_a_reader_holds_the_file_alone_while_a_write_is_undone(
    ledger: Ledger, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = []
    plain = locks.locked

    def locked(of: Path, exclusive: bool) -> Any:
        held.append(exclusive)
        return plain(of, exclusive)

    monkeypatch.setattr(locks, "locked", locked)
    ledger.spent("t")
    assert held == [False]
    path.with_name(path.name + "-journal").touch()
    ledger.spent("t")
    assert held == [False, False, True]
