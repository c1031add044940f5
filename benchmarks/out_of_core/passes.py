"""How long a pass over a Parquet file takes; run as a module, the measured process: prints seconds."""

from __future__ import annotations

import json
import sys
import time
from typing import Any
from unittest import mock

from out_of_core.table import COLUMNS

REPEATS = 7


def pass_times(path: str) -> list[list[Any]]:
    """In a process of its own: seconds and processor seconds of a pass, the best of several; more and more is done."""
    import subprocess

    import numpy as np
    import pyarrow.dataset
    import pyarrow.parquet as pq

    from discreet.data.stored_table import table_of_dataset
    from discreet.kernels.gradient import clipped_gradient_sum, row_norms

    stored = table_of_dataset(pyarrow.dataset.dataset(path), "y", [0, 1]).encoded(np.asarray)
    w = np.linspace(-1.0, 1.0, COLUMNS)

    def gradient(block: Any) -> Any:
        return clipped_gradient_sum(block.X, np.tanh(block.X @ w) - block.y, row_norms(block.X), 1.0, None, 2.0**-30)

    work = {
        "`cat file > /dev/null`, from the page cache": lambda: subprocess.run(
            f"cat '{path}' > /dev/null", shell=True, check=True
        ),
        "Arrow decodes all columns (`iter_batches`)": lambda: [None for _ in pq.ParquetFile(path).iter_batches()],
        "blocks of checked doubles": lambda: [None for _ in stored.blocks()],
        "sum of clipped gradients": lambda: stored.sum(gradient),
        "the same without reading ahead": lambda: without_reading_ahead(stored.sum, gradient),
    }
    for run in work.values():
        run()  # compiles, and fills the page cache
    best = {name: (float("inf"), 0.0) for name in work}
    for _ in range(REPEATS):  # in turns, since other work on the machine comes and goes
        for name, run in work.items():
            wall, own = time.perf_counter(), time.process_time()
            run()
            best[name] = min(best[name], (time.perf_counter() - wall, time.process_time() - own))
    return [[name, *times] for name, times in best.items()]


def without_reading_ahead(call: Any, *arguments: Any) -> Any:
    """The same call by one thread; Arrow's own threads decode the columns side by side in both."""
    from discreet.data import stored_table

    with mock.patch.object(stored_table, "read_ahead", lambda items, ahead=0: items):
        return call(*arguments)


if __name__ == "__main__":
    print(json.dumps(pass_times(sys.argv[1])))
