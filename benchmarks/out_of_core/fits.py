"""A fit on a Parquet file, block by block or in memory.

Run as a module it is the measured process: it prints peak memory, seconds and coefficients.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from out_of_core.table import COLUMNS

COMMAND = "discreet fit"
STEPS = 4  # of newton and gd in Python: their number changes how long they take, not what they hold


def estimator(solver: str) -> Any:
    """An estimator whose solver runs briefly."""
    from discreet import LogisticRegression, Ridge
    from discreet.solvers import GradientDescent, Newton

    if solver == "sufficient-statistics":
        return Ridge(solver=solver, random_state=0)
    brief = Newton(steps=STEPS) if solver == "newton" else GradientDescent(steps=STEPS)
    return LogisticRegression(solver=brief, classes=[0, 1], random_state=0)


def fitted(solver: str, path: str, form: str) -> dict[str, Any]:
    """In a process of its own: fit once, on stored rows or on rows in memory."""
    import warnings

    import numpy as np
    import pyarrow.dataset
    import pyarrow.parquet as pq
    from framework.timing import resident

    warnings.simplefilter("ignore")  # a seed is insecure, which is the point here
    start = time.perf_counter()
    if solver == COMMAND:
        with tempfile.TemporaryDirectory() as folder:
            coef = fit_by_command(path, Path(folder) / "model.json")
    elif form == "stored":
        coef = estimator(solver).fit(pyarrow.dataset.dataset(path), "y").coef_
    else:
        table = pq.read_table(path)
        X = np.column_stack([table[f"x{j}"].to_numpy() for j in range(COLUMNS)])
        coef = estimator(solver).fit(X, table["y"].to_numpy()).coef_
    seconds = time.perf_counter() - start
    return {"peak": resident("VmHWM"), "seconds": seconds, "coef": np.ravel(coef).tolist()}


def fit_by_command(path: str, out: Path) -> Any:
    """What a person would type; in this process, so that its memory is measured."""
    from discreet.cli.app import app

    model = ["--task", "regression", "--solver", "sufficient-statistics"]  # the one with the fewest passes
    options = ["--target", "y", *model, "--out-of-core", "--quiet", "--out", str(out)]
    try:
        app(["fit", path, *options])
    except SystemExit as end:
        if end.code:
            raise
    return json.loads(out.read_text())["coef"]


if __name__ == "__main__":
    print(json.dumps(fitted(*sys.argv[1:])))
