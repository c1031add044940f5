"""Who may use a ledger's file at a moment: one writer, under one name, in no process that is being forked.

SQLite's own locks vanish when any part of the process closes the file, for example after copying it. Where possible
(Linux) a second lock is held that does not, on the file itself and not on a name. SQLite finds the journal of an
interrupted write by the file's name, so a file with two names could be read half-written: such a file is refused.
docs/ledger.md says what follows from this.

SQLite also keeps notes in memory about the locks that its process holds. A forked child inherits the notes without the
locks, and would write unprotected; it would wait for ever for threads that it did not inherit, and keep modules half
imported. So a fork waits until no thread uses a ledger, and whoever wants to use one waits until the fork is done.
"""

from __future__ import annotations

import os
import re
import secrets
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

from discreet.privacy.ledger.records import ChainError

LONGEST_WAIT = 120.0


class ForkGuard:
    """Counts the threads that use a ledger, and lets a fork wait for them.

    A child that was forked in spite of such a use (by the using thread itself, by a C library that runs none of
    Python's hooks, or after waiting for two minutes) refuses ledgers: its copy of SQLite's memory cannot be trusted.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._users: Counter[int] = Counter()
        self._forks = 0
        self._process = os.getpid()
        self._unusable = False

    @contextmanager
    def using(self) -> Iterator[None]:
        """Hold off forks for a block; inside one of its own blocks a thread does not wait for a fork."""
        self._notice_fork_without_hooks()
        if self._unusable:
            raise RuntimeError(
                "this process was forked while the ledger was in use, so it cannot use a ledger; "
                "start it with multiprocessing's 'spawn' or 'forkserver'"
            )
        me, process = threading.get_ident(), os.getpid()
        with self._changed:
            self._changed.wait_for(lambda: not self._forks or self._users[me])
            self._users[me] += 1
        try:
            yield
        finally:
            if os.getpid() == process:
                self._leave(me)

    def before_fork(self) -> None:
        """Wait until no other thread uses a ledger; new uses wait for `after_fork_in_parent`."""
        me = threading.get_ident()
        self._changed.acquire()
        self._forks += 1
        self._changed.wait_for(lambda: not set(self._users) - {me}, timeout=LONGEST_WAIT)

    def after_fork_in_parent(self) -> None:
        """Let ledgers be used again."""
        self._forks -= 1
        self._changed.notify_all()
        self._changed.release()

    def after_fork_in_child(self) -> None:
        """Start anew; a use that was going on cannot be finished here."""
        self._unusable = self._unusable or bool(self._users)
        self._changed, self._users, self._forks = threading.Condition(), Counter(), 0
        self._process = os.getpid()

    def _leave(self, me: int) -> None:
        with self._changed:
            self._users[me] -= 1
            if not self._users[me]:
                del self._users[me]
            self._changed.notify_all()

    def _notice_fork_without_hooks(self) -> None:
        if os.getpid() != self._process:
            self.after_fork_in_child()


FORKS = ForkGuard()
if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
    os.register_at_fork(
        before=FORKS.before_fork,
        after_in_parent=FORKS.after_fork_in_parent,
        after_in_child=FORKS.after_fork_in_child,
    )


WAIT_SECONDS = 60.0
_POLL_SECONDS = 0.002
_BESIDE = ("-journal", "-wal")  # what SQLite keeps beside a file during a write, and after an interrupted one
_MOUNTS = Path("/proc/self/mountinfo")
_THREADS: dict[Path, threading.Lock] = {}


@contextmanager
def locked(path: Path, exclusive: bool) -> Iterator[None]:
    """Hold the file for a block, alone or together with other readers.

    Guarantee: if the block ends well, the file that was held is the one that `path` names afterwards, and has no
    other name.
    """
    process, deadline = os.getpid(), time.monotonic() + WAIT_SECONDS
    # One thread at a time: closing the file in one would drop SQLite's locks in another.
    thread_lock = _THREADS.setdefault(path, threading.Lock())
    if not thread_lock.acquire(timeout=WAIT_SECONDS):
        raise _too_long()
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
        try:
            # Elsewhere this lock and those of SQLite would exclude each other.
            with _held(descriptor, exclusive, deadline) if sys.platform == "linux" else nullcontext():
                check_name(path, descriptor)
                yield
                check_name(path, descriptor)
        finally:
            os.close(descriptor)
    finally:
        if os.getpid() == process:
            thread_lock.release()


def check_name(path: Path, descriptor: int) -> None:
    """Refuse a file that was replaced, is empty, or has several names."""
    held = os.fstat(descriptor)
    try:
        found = os.stat(path)
    except FileNotFoundError:
        raise ChainError(f"{path} was deleted while it was in use") from None
    if (found.st_dev, found.st_ino) != (held.st_dev, held.st_ino):
        raise ChainError(f"{path} was replaced by another file while it was in use")
    if found.st_nlink != 1:
        raise ChainError(
            f"{path} has {found.st_nlink} names (hard links); a ledger's file must have one: remove the others"
        )
    if _is_mounted(path):
        raise ChainError(
            f"{path} is mounted as a single file, so it has another name elsewhere; mount its folder instead"
        )
    if found.st_size == 0:
        raise ChainError(f"{path} is empty; it is no ledger, or all of it was erased. For a new ledger, delete it")


def create(path: Path, fill: Callable[[Path], None]) -> bool:
    """Make a new file in one step: others see no file or a complete one. False if the file exists already."""
    with _folder_locked(path.parent):
        if path.exists():
            return False
        for remains in (Path(f"{path}{ending}") for ending in _BESIDE):
            if remains.exists():
                raise ChainError(f"{remains} belongs to a ledger whose file is missing: put {path} back, or delete it")
        draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}.new")
        try:
            fill(draft)
            with open(draft, "r+b") as file:
                os.fsync(file.fileno())
            os.rename(draft, path)
        finally:
            draft.unlink(missing_ok=True)
    return True


@contextmanager
def _folder_locked(folder: Path) -> Iterator[None]:
    """Let one process at a time make files in a folder; its entries are on the disk when the block ends."""
    if sys.platform == "win32":  # renaming to an existing name fails there, which serves as well
        yield
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        with _held(descriptor, True, time.monotonic() + WAIT_SECONDS):
            yield
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def _held(descriptor: int, exclusive: bool, deadline: float) -> Iterator[None]:
    """Hold a lock that belongs to the open file, not to the process."""
    import fcntl

    process = os.getpid()
    kind = (fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH) | fcntl.LOCK_NB
    while True:
        try:
            fcntl.flock(descriptor, kind)
            break
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise _too_long() from None
            time.sleep(_POLL_SECONDS)
        except OSError as error:
            raise OSError(f"the ledger's file cannot be locked ({error.strerror}); keep it on a local disk") from error
    try:
        yield
    finally:
        if os.getpid() == process:  # a forked child shares the lock, and must not give it back
            fcntl.flock(descriptor, fcntl.LOCK_UN)


def _is_mounted(path: Path) -> bool:
    """Whether the file, or its journal, is itself the place of a mount; only Linux mounts single files."""
    if not _MOUNTS.exists():
        return False
    names = {os.fsencode(f"{path}{ending}") for ending in ("", *_BESIDE)}
    places = (line.split(b" ")[4] for line in _MOUNTS.read_bytes().splitlines())
    return any(re.sub(rb"\\([0-7]{3})", lambda m: bytes([int(m[1], 8)]), place) in names for place in places)


def _too_long() -> TimeoutError:
    return TimeoutError("the ledger did not answer (others are using it); nothing was written")
