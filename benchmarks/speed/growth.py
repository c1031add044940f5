"""How the cost of coordinate descent grows, and what a wide sparse table takes.

A pass over a dense table should cost rows x columns, over a sparse one its non-zeros. Run as a module it is
the measured process of the sparse fit: it prints seconds and bytes.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any

from framework.timing import STATUS, Row, alternate, in_new_process, milliseconds
from stored_tables import labelled, load_benchmark

PASSES = 20
LONG, SHORT = (8_000, 16_000, 32_000, 64_000), (25, 50, 100, 200)
TOLERANCE = 0.25
KINDS = ("rows, dense", "columns, dense", "non-zeros, sparse")


def measure_sparse_fit() -> dict[str, Any]:
    """A fit in this process, after a small one; the peak counts from before the table is read."""
    import numpy as np
    from framework.timing import resident
    from stand_ins import sparse_ones

    from discreet.solvers import CoordinateDescent
    from speed.memory import measured_fit

    solver = CoordinateDescent(passes=PASSES)
    measured_fit(sparse_ones(100, 50, 500, np.random.default_rng(0)), np.arange(100) % 2, solver, bounds=(0.0, 1.0))
    before = resident("VmRSS")
    X, y = load_benchmark("dorothea")
    found = measured_fit(X, (y > 0).astype(int), solver, bounds=(0.0, 1.0))
    stored = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
    dense = 8 * X.shape[0] * X.shape[1]
    shape = f"{X.shape[0]:,} x {X.shape[1]:,}"
    return {
        **found,
        "peak": found["peak"] - before,
        "stored": stored,
        "dense": dense,
        "name": f"{labelled('dorothea')}, {shape}",
    }


def sparse_rows() -> list[Row]:
    if not STATUS.exists():
        return [Row("sparse `cd`", "", f"left out: this system has no {STATUS}", "")]
    run = in_new_process("speed.growth")
    what = f"sparse `cd`, {run['name']}, {PASSES} passes"
    ours = f"{milliseconds(run['seconds'])}, peak {run['peak'] / 1e6:.0f} MB (table {run['stored'] / 1e6:.0f} MB)"
    share = run["peak"] / run["dense"]
    dense = f"as a dense array {run['dense'] / 1e6:.0f} MB"
    return [Row(what, ours, dense, f"{share:.2f} of it", "below 0.25", share < 0.25)]


def growth_rows(kind: str) -> list[Row]:
    """The exponent fitted to the time of a pass on tables of growing size; theory says 1."""
    sizes: dict[str, dict[int, Callable[[], Callable[[], Any]]]] = {
        "rows, dense": {n: partial(_dense, n, 50) for n in LONG},
        "columns, dense": {p: partial(_dense, 5_000, p) for p in SHORT},
        "non-zeros, sparse": {n: partial(_sparse, n, 2_000) for n in LONG},
    }
    return [_growth(kind, sizes[kind])]


def _growth(what: str, passes: dict[int, Callable[[], Callable[[], Any]]]) -> Row:
    import numpy as np

    sizes = list(passes)
    times = alternate({str(size): make() for size, make in passes.items()})
    seconds = [times[str(size)] for size in sizes]
    exponent = float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])
    listed = ", ".join(milliseconds(value) for value in seconds)
    return Row(
        f"ten passes of `cd` as the {what} double",
        listed,
        "theory 1",
        f"exponent {exponent:.2f}",
        f"1 +- {TOLERANCE}",
        abs(exponent - 1.0) <= TOLERANCE,
    )


def _dense(rows: int, columns: int) -> Callable[[], Any]:
    from speed.races import table

    return _ten_passes(*table(rows, columns))


def _sparse(rows: int, columns: int) -> Callable[[], Any]:
    """Ten non-zeros in a row, whatever the number of rows."""
    import numpy as np
    from stand_ins import sparse_ones

    X = sparse_ones(rows, columns, 10 * rows, np.random.default_rng(0))
    return _ten_passes(X, np.where(np.arange(rows) % 2, 1.0, -1.0))


def _ten_passes(X: Any, y: Any) -> Callable[[], Any]:
    """Coordinate descent alone: the table is already in the solver's columns."""
    import numpy as np

    from discreet import Problem
    from discreet.data.validation import array_rows
    from discreet.problem.column_scaling import identity_scaling
    from discreet.problem.coordinate_state import CoordinateState
    from discreet.problem.losses import Logistic
    from discreet.problem.scaled_problem import scale_problem

    columns = X.shape[1]
    problem = Problem(Logistic(), fit_intercept=False)
    scaled = scale_problem(problem, array_rows(X, y), identity_scaling(columns), X.shape[0], "F")
    state = CoordinateState(scaled, np.full(columns, 0.1), np.ones(columns))
    order, noise = np.arange(columns), np.zeros(columns)

    def run() -> None:
        for _ in range(10):
            state.run(order, noise)

    return run


if __name__ == "__main__":
    print(json.dumps(measure_sparse_fit()))
