"""The default fit of a large table in memory: against scikit-learn's L-BFGS, a copy of the table, and fewer threads."""

from __future__ import annotations

import json
import sys
import time
import warnings
from functools import partial
from typing import Any

import numpy as np
from framework.timing import in_new_process, minima, resident, seconds_to

from scale.bandwidth import bandwidth
from scale.tables import make_table

ROWS, COLUMNS, QUICK_ROWS = 4_000_000, 20, 400_000
SIGNALS = {"scores of deviation 1": 1.0, "random labels": 0.0}
REPEATS = 5


def fit(X: Any, y: Any, n_jobs: int | None = None) -> Any:
    from discreet import LogisticRegression

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return LogisticRegression(epsilon=1.0, classes=[0, 1], random_state=0, n_jobs=n_jobs).fit(X, y)


def measure(quick: bool = False) -> dict[str, Any]:
    """Seconds of a copy, of L-BFGS and of the fit with one thread and with all of them, in turns."""
    from sklearn.linear_model import LogisticRegression

    from discreet._common.threads import thread_count

    rows = QUICK_ROWS if quick else ROWS
    found: dict[str, Any] = {"rows": rows, "columns": COLUMNS, "threads": thread_count(None), "tables": {}}
    for name, signal in SIGNALS.items():
        X, y = make_table(rows, COLUMNS, signal)
        fit(X[:20_000], y[:20_000])  # compiles
        calls = {
            "copy": partial(np.copyto, np.ones_like(X), X),
            "lbfgs": partial(LogisticRegression().fit, X, y),
            "fit": partial(fit, X, y),
            "one_thread": partial(fit, X, y, 1),
        }
        seconds = minima({what: seconds_to(call) for what, call in calls.items()}, REPEATS)
        same = bool((fit(X, y).coef_ == fit(X, y, 1).coef_).all())
        found["tables"][name] = {**seconds, "same_bits": same}
    found["bandwidth"] = bandwidth(quick)
    found["passes"] = passes(*make_table(rows, COLUMNS, 1.0))
    found["peak"] = peak(rows)
    return found


def passes(X: Any, y: Any) -> dict[str, Any]:
    """Seconds and number of the passes of one fit, by what they compute."""
    from discreet.data import rows as rows_module

    seconds: dict[str, list[float]] = {}
    plain = rows_module.sum_over_blocks

    def timed(blocks: Any, part: Any, jobs: int = 1) -> Any:
        start = time.perf_counter()
        total = plain(blocks, part, jobs)
        seconds.setdefault(_name(part), []).append(time.perf_counter() - start)
        return total

    rows_module.sum_over_blocks = timed
    try:
        fit(X, y)
    finally:
        rows_module.sum_over_blocks = plain
    return {name: {"count": len(each), "seconds": float(np.median(each))} for name, each in seconds.items()}


def _name(part: Any) -> str:
    while hasattr(part, "part"):
        part = part.part
    inner = getattr(part, "keywords", {}).get("norms")
    name = str(getattr(getattr(part, "func", part), "__name__", part)).strip("_")
    return name if inner is None else f"{name} of {_name(inner)}"


def peak(rows: int) -> float:
    """Peak memory of a process that fits, over that of one that only makes the table; in tables."""
    table, whole = (in_new_process("scale.in_memory", what, str(rows)) for what in ("table", "peak"))
    return 1.0 + (whole - table) / (8.0 * rows * COLUMNS)


def peak_of(what: str, rows: int) -> int:
    """The peak memory of this process, in bytes, after a table has been made and, if asked for, a fit."""
    X, y = make_table(rows, COLUMNS, 1.0)
    fit(X[:20_000], y[:20_000])
    if what == "peak":
        fit(X, y)
    return resident("VmHWM")  # not getrusage: what it calls the peak outlives the start of a new program


if __name__ == "__main__":
    asked = sys.argv[1:]
    print(json.dumps(peak_of(asked[0], int(asked[1])) if len(asked) == 2 else measure("quick" in asked)))
