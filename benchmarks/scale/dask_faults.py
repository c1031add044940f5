"""A fault run: kill -9 of a worker in every tenth round of a fit; the model is the same, and it is paid for once."""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
import time
import warnings
from typing import Any
from unittest import mock

import numpy as np

from scale.dask_overhead import dask_table, memory_table

ROWS, QUICK_ROWS, EVERY, STEPS = 400_000, 100_000, 10, 60


class Killer:
    """Stands in the way of an engine's questions, and kills the worker of one shard in every tenth round."""

    def __init__(self, client: Any) -> None:
        from discreet.data.distributed.dask_engine import DaskEngine

        self.client, self.rounds, self.kills, self._ask = client, 0, 0, DaskEngine._ask

    def __call__(self, engine: Any, which: list[int], method: str, *arguments: Any) -> Any:
        if method == "reduce" and len(which) == len(engine._places):  # a round, and not its repetition
            self.rounds += 1
            if self.rounds % EVERY == 0:
                pids = self.client.run(os.getpid)
                os.kill(pids[engine._places[self.kills % len(engine._places)]], signal.SIGKILL)
                self.kills += 1
        return self._ask(engine, which, method, *arguments)


def run(client: Any, solver: Any, rows: int, folder: str) -> dict[str, Any]:
    """One fit with faults against the same fit in memory."""
    from discreet import Ledger, LogisticRegression
    from discreet.data.distributed.dask_engine import DaskEngine

    ledger = Ledger(f"sqlite:///{folder}/{solver.name}.db", allow_seeded=True)
    ledger.open("table", epsilon=10.0, delta=1e-5)
    settings = {"solver": solver, "classes": [0, 1], "random_state": 0, "delta": 1e-6, "epsilon": 1.0}
    X, y = memory_table(rows)
    killer = Killer(client)

    def ask(engine: Any, *arguments: Any) -> Any:
        return killer(engine, *arguments)

    with warnings.catch_warnings(), mock.patch.object(DaskEngine, "_ask", ask):
        warnings.simplefilter("ignore")
        expected = LogisticRegression(**settings).fit(X, y)
        start = time.perf_counter()
        found = LogisticRegression(**settings, ledger=ledger, dataset="table").fit(dask_table(rows), "y")
        seconds = time.perf_counter() - start
    return {
        "rounds": killer.rounds,
        "kills": killer.kills,
        "seconds": seconds,
        "same_model": bool(np.array_equal(expected.coef_, found.coef_)),
        "entries": len(ledger.entries("table")),
        "spent": float(ledger.spent("table")),
    }


def measure(quick: bool = False) -> dict[str, Any]:
    """Faults of a fit by newton and of one by gd."""
    from discreet.data.distributed.cluster import connected
    from discreet.solvers import GradientDescent, Newton

    rows = QUICK_ROWS if quick else ROWS
    solvers = [Newton(), GradientDescent(steps=20 if quick else STEPS)]
    with connected("local:2") as client, tempfile.TemporaryDirectory() as folder:
        return {solver.name: run(client, solver, rows, folder) for solver in solvers}


if __name__ == "__main__":
    print(json.dumps(measure("quick" in sys.argv[1:])))
