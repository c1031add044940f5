"""The default fit of a large table in memory: against scikit-learn's L-BFGS, a copy of the table, and fewer threads.

Run as a script with a number of threads it prints the peak memory of one fit.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from tables import make_table

ROWS, COLUMNS, QUICK_ROWS = 4_000_000, 20, 400_000
SIGNALS = {"scores of deviation 1": 1.0, "random labels": 0.0}


def best_of(call: Callable[[], Any], repeats: int = 3) -> float:
    """The shortest wall time in seconds."""
    found = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        found.append(time.perf_counter() - start)
    return min(found)


def fit(X: Any, y: Any, n_jobs: int | None = None) -> Any:
    from discreet import LogisticRegression

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return LogisticRegression(epsilon=1.0, classes=[0, 1], random_state=0, n_jobs=n_jobs).fit(X, y)


def measure(quick: bool = False) -> dict[str, Any]:
    """Seconds of a copy, of L-BFGS and of the fit with one thread and with all of them."""
    from sklearn.linear_model import LogisticRegression

    from discreet._common.threads import thread_count

    rows = QUICK_ROWS if quick else ROWS
    found: dict[str, Any] = {"rows": rows, "columns": COLUMNS, "threads": thread_count(None), "tables": {}}
    for name, signal in SIGNALS.items():
        X, y = make_table(rows, COLUMNS, signal)
        fit(X[:20_000], y[:20_000])  # compiles
        other = np.empty_like(X)
        copy = best_of(lambda X=X, other=other: np.copyto(other, X))
        del other
        peer = best_of(lambda X=X, y=y: LogisticRegression().fit(X, y))
        ours = best_of(lambda X=X, y=y: fit(X, y))
        one = best_of(lambda X=X, y=y: fit(X, y, 1), 1)
        same = bool((fit(X, y).coef_ == fit(X, y, 1).coef_).all())
        found["tables"][name] = {"copy": copy, "lbfgs": peer, "fit": ours, "one_thread": one, "same_bits": same}
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
    sizes = {
        what: json.loads(
            subprocess.run([sys.executable, __file__, what, str(rows)], check=True, capture_output=True).stdout
        )
        for what in ("table", "fit")
    }
    return 1.0 + (sizes["fit"] - sizes["table"]) / (8.0 * rows * COLUMNS)


if __name__ == "__main__":
    X, y = make_table(int(sys.argv[2]), COLUMNS, 1.0)
    fit(X[:20_000], y[:20_000])
    if sys.argv[1] == "fit":
        fit(X, y)
    # Not getrusage: what it calls the peak outlives the start of a new program.
    status = Path("/proc/self/status").read_text().splitlines()
    print(json.dumps(next(1024 * int(line.split()[1]) for line in status if line.startswith("VmHWM"))))
