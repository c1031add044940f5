"""No process is forked while one of its threads uses a ledger.

SQLite keeps notes in memory about the locks that its process holds. A forked child inherits the notes without the
locks, and would write unprotected; it would also wait for ever for threads that it did not inherit, and keep modules
half imported. So a fork waits until no thread uses a ledger, and whoever wants to use one waits until the fork is done.
"""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

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
