"""Threads that compute the parts of a sum side by side, and return them in order."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from functools import cache
from threading import Lock
from typing import Any, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def thread_count(n_jobs: Any) -> int:
    """How many threads `n_jobs` asks for: None for all cores this process may use, -1 for all, -2 for all but one.

    None keeps to OMP_NUM_THREADS where it is set, as NumPy does: searches that start processes of their own set it.
    """
    if n_jobs is None:
        limit = os.environ.get("OMP_NUM_THREADS", "")
        return min(int(limit), _cores()) if limit.isdigit() and int(limit) > 0 else _cores()
    if isinstance(n_jobs, bool) or not hasattr(n_jobs, "__index__") or int(n_jobs) == 0:
        raise ValueError(f"n_jobs must be None, a positive number of threads, or -1 for all cores; got {n_jobs!r}.")
    count = int(n_jobs)
    return count if count > 0 else max(1, _cores() + 1 + count)


def ordered_map(function: Callable[[Item], Result], items: Iterable[Item], jobs: int = 1) -> Iterator[Result]:
    """The function of each item, in order; `jobs` threads compute them, and few items are at hand at once.

    Matrix products use one thread in the meantime: how BLAS divides its work must not decide about bits, and more
    threads than cores would wait for each other.
    """
    if isinstance(items, list) and len(items) == 1:  # nothing to divide, and BLAS may use its threads
        return map(function, items)
    return _with_one_blas_thread(function, items, jobs)


def _with_one_blas_thread(function: Callable[[Item], Result], items: Iterable[Item], jobs: int) -> Iterator[Result]:
    with _one_blas_thread:
        yield from map(function, items) if jobs == 1 else _threaded(function, items, jobs)


def _threaded(function: Callable[[Item], Result], items: Iterable[Item], jobs: int) -> Iterator[Result]:
    waiting: deque[Future[Result]] = deque()
    with ThreadPoolExecutor(jobs, thread_name_prefix="discreet") as pool:
        try:
            for item in items:
                # Settings such as np.errstate belong to a context, and threads begin with an empty one.
                waiting.append(pool.submit(copy_context().run, function, item))
                if len(waiting) > jobs:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for each in waiting:
                each.cancel()


@cache
def _cores() -> int:
    from joblib import cpu_count

    return int(cpu_count())


class _OneBlasThread:
    """Within it matrix products use one thread; fits that run side by side share it until the last of them leaves."""

    def __init__(self) -> None:
        self._lock, self._users = Lock(), 0
        self._limit: Any = None

    def __enter__(self) -> None:
        with self._lock:
            if self._users == 0:
                self._limit = _blas_libraries().limit(limits=1, user_api="blas")
            self._users += 1

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._users -= 1
            if self._users == 0 and self._limit is not None:
                self._limit.restore_original_limits()


_one_blas_thread = _OneBlasThread()


@cache
def _blas_libraries() -> Any:
    """Found once, after NumPy and SciPy have loaded theirs."""
    import scipy.linalg  # noqa: F401 - loads the library that SciPy brings
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
