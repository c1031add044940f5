"""One draw at a time, and in one process: what keeps a generator from handing out the same words twice."""

from __future__ import annotations

import os
import threading


class DrawLock:
    """A context manager around each draw: threads take turns, and a draw inside a draw is refused.

    Every process has a lock of its own. After a fork that Python's hooks do not see (one made by C code), the child
    therefore does not wait for a thread that exists in its parent alone, and `process` differs from before, which
    tells the generator that its words are the parent's.

    Attributes
    ----------
    process : int
        The process of the latest draw.
    """

    def __init__(self) -> None:
        self.process = os.getpid()
        self._turns: dict[int, _Turn] = {}

    def __enter__(self) -> None:
        process = os.getpid()
        # `setdefault` is atomic: of two threads that come first in a new process, both get the same lock.
        turn = self._turns.get(process) or self._turns.setdefault(process, _Turn())
        # A thread may acquire it twice, so that a signal handler is refused below and does not wait for itself.
        turn.lock.acquire()
        if turn.taken:
            turn.lock.release()
            raise RuntimeError(
                "a RandomGenerator was asked for a draw in the middle of another draw, by a signal handler or a "
                "finaliser: give that code a generator of its own, secure_generator()"
            )
        turn.taken = True
        self.process, self._turn = process, turn

    def __exit__(self, *_: object) -> None:
        turn = self._turn
        turn.taken = False
        turn.lock.release()


class _Turn:
    """The lock of one process, and whether a draw is going on."""

    __slots__ = ("lock", "taken")

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.taken = False
