"""Measures the cells that are missing, in worker processes with one thread each."""

from __future__ import annotations

import math
import multiprocessing
import os
import sys
import threading
import time
import warnings
from collections.abc import Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool

from framework import registry
from framework.cells import Cell, Numbers
from framework.store import Store

WORKERS = 2
MOST_LOST = 5  # processes that may be ended from outside before the run gives up
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


def missing(cells: Iterable[Cell], store: Store) -> list[tuple[str, Cell]]:
    """Cells without numbers, each once, by key."""
    wanted = {registry.key_of(cell): cell for cell in cells}
    return [(key, cell) for key, cell in wanted.items() if key not in store]


def run_cells(cells: Iterable[Cell], store: Store, workers: int = WORKERS, seconds: float | None = None) -> int:
    """Measure what is missing and keep each cell as it is done; returns how many are still missing.

    Experiments that measure time come last, one cell at a time, whatever the number of workers. `seconds` is the time
    after which no further cell is begun. A cell that fails is kept with its error: a failure is a result, and it is not
    tried again before its version is raised or the store is forgotten.
    """
    todo = missing(cells, store)
    bar, end = _Bar(len(todo)), math.inf if seconds is None else time.monotonic() + seconds
    known, lost = registry.experiments(), 0
    for alone in (False, True):
        waiting = [(key, cell) for key, cell in reversed(todo) if known[cell.experiment].alone is alone]
        while waiting and time.monotonic() < end:
            try:
                _run(waiting, store, 1 if alone else workers, end, bar)
            except BrokenProcessPool:  # a process was ended from outside: its cells stay missing, the others go on
                lost += 1
                if lost > MOST_LOST:
                    raise
    bar.close()
    return len(missing(cells, store))


def processor_seconds(cells: Iterable[Cell], store: Store) -> float:
    """What the cells took that have been measured, in this run or an earlier one: not affected by other work."""
    kept = {key: store.get(key) for key in map(registry.key_of, cells)}
    return sum(float(numbers.get("cell_seconds", 0.0)) for numbers in kept.values() if numbers)


def _run(waiting: list[tuple[str, Cell]], store: Store, workers: int, end: float, bar: _Bar) -> None:
    """Take cells from the end of the list until there are none, or there is no time."""
    context = multiprocessing.get_context("spawn")  # fork would copy the threads of BLAS
    running: dict[Future[Numbers], tuple[str, Cell]] = {}
    with ProcessPoolExecutor(workers, mp_context=context, initializer=_end_with, initargs=(os.getpid(),)) as pool:
        while running or (waiting and time.monotonic() < end):
            while waiting and len(running) < workers and time.monotonic() < end:
                key, cell = waiting.pop()
                running[pool.submit(measured, cell)] = (key, cell)
            done, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                key, cell = running.pop(future)
                store.add(key, cell, future.result())
                bar.advance(cell)


def measured(cell: Cell) -> Numbers:
    """The numbers of a cell, with the seconds that it took; an exception becomes {"failed": ...}."""
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            numbers = registry.experiments()[cell.experiment].measure(cell)
        except Exception as error:
            numbers = {"failed": f"{type(error).__name__}: {error}"[:300]}
    return {**numbers, "cell_seconds": round(time.process_time() - start, 4)}


def _end_with(parent: int) -> None:
    """Have this process end when the one that started it has been killed: nobody would keep its cell."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1.0)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


class _Bar:
    """How many cells are done, and the time that is left if the others take as long."""

    def __init__(self, total: int) -> None:
        self.total, self.done, self.begin = total, 0, time.monotonic()
        self.live = sys.stderr.isatty()

    def advance(self, cell: Cell) -> None:
        self.done += 1
        spent = time.monotonic() - self.begin
        left = spent / self.done * (self.total - self.done)
        filled = round(20 * self.done / self.total)
        bar = "#" * filled + "." * (20 - filled)
        line = f"[{bar}] {self.done}/{self.total}, {_clock(left)} left; {cell.describe()}"
        begin, end = ("\r\x1b[K", "") if self.live else ("", "\n")
        print(begin + line[:150], end=end, file=sys.stderr, flush=True)

    def close(self) -> None:
        if self.total and self.live:
            print(file=sys.stderr)


def _clock(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"
