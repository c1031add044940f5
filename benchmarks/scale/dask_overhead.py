"""What Dask costs beside the sums themselves: processor time and milliseconds a round, against one process.

Rounds alternate in one run: gradient sums of 2,000,000 x 50 by two workers, by one process with one thread and by one
with two. Two cores share the memory's bandwidth, so that two threads already cost more processor time than one: what
Dask adds is the difference to two.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from functools import partial
from typing import Any

import numpy as np

ROWS, COLUMNS, PARTS, WORKERS = 2_000_000, 50, 20, 2
ROUNDS, BATCH, EMPTY_ROUNDS = 50, 5, 200  # rounds of each kind, so many of one kind in a row


def make_part(number: int, rows: int) -> Any:
    """A partition, the same wherever and whenever it is made."""
    import pandas as pd

    rng = np.random.default_rng(number)
    X = rng.standard_normal((rows, COLUMNS))
    table = pd.DataFrame(X, columns=[f"c{j}" for j in range(COLUMNS)])
    return table.assign(y=(X[:, 0] + rng.logistic(size=rows) > 0.0).astype(np.int64))


def dask_table(rows: int) -> Any:
    """The table as a Dask frame that workers make."""
    import dask.dataframe as dd

    return dd.from_map(partial(make_part, rows=rows // PARTS), range(PARTS), meta=make_part(0, 1).iloc[:0])


def memory_table(rows: int) -> tuple[Any, Any]:
    """The same rows in this process, as doubles and labels."""
    X, y = np.empty((rows, COLUMNS)), np.empty(rows, dtype=np.int64)
    size = rows // PARTS
    for number in range(PARTS):
        part = make_part(number, size)
        where = slice(number * size, (number + 1) * size)
        X[where], y[where] = part.iloc[:, :COLUMNS].to_numpy(), part["y"].to_numpy()
    return X, y


def nothing(block: Any) -> Any:
    """A part that computes nothing: what is left is the cost of asking."""
    return np.zeros(COLUMNS)


def processor_seconds() -> float:
    """Of this process and of all that it has started: scheduler and workers are among them."""
    import psutil

    own = psutil.Process()
    times = [process.cpu_times() for process in (own, *own.children(recursive=True))]
    return float(sum(each.user + each.system for each in times))


def timed(call: Any, rounds: int) -> tuple[list[float], float]:
    """Wall seconds of every round, and the processor seconds of all."""
    before, walls = processor_seconds(), []
    for _ in range(rounds):
        start = time.perf_counter()
        call()
        walls.append(time.perf_counter() - start)
    return walls, processor_seconds() - before


def problems(client: Any, rows: int) -> dict[str, Any]:
    """The same problem on the rows of this process, read by one thread or by several, and on those of the workers."""
    from discreet.data.distributed.dask_tables import table_of_dask
    from discreet.data.rows import Data
    from discreet.data.validation import encode_labels
    from discreet.problem import L2, Logistic, Problem
    from discreet.problem.column_scaling import identity_scaling
    from discreet.problem.scaled_problem import unscaled_problem

    problem, classes = Problem(Logistic(), L2(1e-5)), np.array([0, 1])
    table = table_of_dask(dask_table(rows), "y", classes)
    X, y = memory_table(rows)
    labels = encode_labels(y, classes)
    tables = {
        "one process": Data(X, labels),
        "threads": Data(X, labels, jobs=WORKERS),
        "dask": table.encoded(partial(encode_labels, classes=classes)),
    }
    return {name: unscaled_problem(problem, each, identity_scaling(COLUMNS), rows) for name, each in tables.items()}


def measure(quick: bool = False) -> dict[str, Any]:
    """Median seconds a round and processor seconds a round of both, and of rounds that compute nothing."""
    from discreet.data.distributed.cluster import connected
    from discreet.solvers._shared.full_batch import clipped_sum

    rows = ROWS // 20 if quick else ROWS
    with connected(f"local:{WORKERS}") as client:
        asked = problems(client, rows)
        rng = np.random.default_rng(0)

        def ask(problem: Any) -> Any:
            return problem.sum(partial(clipped_sum, w=rng.normal(size=COLUMNS + 1), clip=1.0, step=2.0**-24))

        w = np.zeros(COLUMNS + 1)
        same = partial(clipped_sum, w=w, clip=1.0, step=2.0**-24)
        equal = len({each.sum(same).tobytes() for each in asked.values()}) == 1  # and warms up all
        walls: dict[str, list[float]] = {name: [] for name in asked}
        spent = dict.fromkeys(walls, 0.0)
        for _ in range(2 if quick else ROUNDS // BATCH):
            for name, problem in asked.items():
                found, seconds = timed(partial(ask, problem), BATCH)
                walls[name] += found
                spent[name] += seconds
        empty, _ = timed(lambda: asked["dask"].source.sum(nothing), EMPTY_ROUNDS // (10 if quick else 1))
    rounds = len(walls["dask"])
    return {
        "rows": rows,
        "columns": COLUMNS,
        "workers": WORKERS,
        "rounds": rounds,
        "same_bits": equal,
        "wall": {name: statistics.median(each) for name, each in walls.items()},
        "processor": {name: seconds / rounds for name, seconds in spent.items()},
        "processor_ratio": spent["dask"] / spent["one process"],
        "over_threads": spent["dask"] / spent["threads"],
        "empty_round": statistics.median(empty),
    }


if __name__ == "__main__":
    print(json.dumps(measure("quick" in sys.argv[1:])))
