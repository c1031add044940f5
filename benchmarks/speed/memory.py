"""Peak memory of a fit, table included, in a fresh process.

Run as a module it is the measured process: it makes the table, fits, and prints sizes in bytes.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

from framework.timing import STATUS, Row, in_new_process, resident

ROWS, COLUMNS = 400_000, 50
FORMATS = {
    "C": "rows, float64",
    "F": "columns, float64",
    "float32": "rows, float32",
    "pandas": "pandas frame",
}
SOLVERS = ("newton", "cd", "gd", "sgd")
MOST = 2.2


def memory_rows(solver: str) -> list[Row]:
    """Peak over the size of the table, for several forms of it."""
    if not STATUS.exists():
        return [Row("peak memory", "", f"left out: this system has no {STATUS}", "")]
    found = {kind: in_new_process("speed.memory", solver, kind) for kind in FORMATS}
    ratios = {kind: run["peak"] / run["table"] for kind, run in found.items()}
    listed = ", ".join(f"{FORMATS[kind]} {ratio:.2f}" for kind, ratio in ratios.items())
    worst = max(ratios.values())
    what = f"peak memory of `{solver}`, {ROWS:,} x {COLUMNS}"
    return [Row(what, listed, "the table 1.00", f"{worst:.2f} times", f"at most {MOST}", worst <= MOST)]


def make_table(kind: str) -> Any:
    """Filled in place: making the table must not take more memory than the table."""
    import numpy as np

    dtype = np.float32 if kind == "float32" else np.float64
    X = np.empty((ROWS, COLUMNS), dtype=dtype, order="F" if kind == "F" else "C")
    np.random.default_rng(0).random(out=X.T if kind == "F" else X, dtype=dtype)
    if kind == "pandas":
        import pandas as pd

        return pd.DataFrame(X, copy=False)
    return X


def quick(solver: str) -> Any:
    """A solver of this name that runs briefly; how long it runs does not change what it keeps."""
    from discreet.solvers import CoordinateDescent, GradientDescent, Newton, StochasticGradientDescent

    brief = {
        "newton": Newton(steps=3),
        "cd": CoordinateDescent(passes=2),
        "gd": GradientDescent(steps=3),
        "sgd": StochasticGradientDescent(passes=1),
    }
    return brief[solver]


def measured_fit(X: Any, y: Any, solver: Any, **options: Any) -> dict[str, float]:
    """Seconds, and the peak above what the process held before the table came."""
    from discreet import LogisticRegression

    start = time.perf_counter()
    LogisticRegression(solver=solver, classes=[0, 1], **options).fit(X, y)
    return {"seconds": time.perf_counter() - start, "peak": resident("VmHWM")}


def measure(solver: str, kind: str) -> dict[str, float]:
    import numpy as np

    y = np.arange(ROWS) % 2
    small = np.random.default_rng(1).random((ROWS // 10, COLUMNS))
    measured_fit(small, y[: small.shape[0]], quick(solver))
    before = resident("VmRSS")
    X = make_table(kind)
    found = measured_fit(X, y, quick(solver))
    return {"peak": found["peak"] - before, "table": ROWS * COLUMNS * (4 if kind == "float32" else 8)}


if __name__ == "__main__":
    print(json.dumps(measure(*sys.argv[1:])))
