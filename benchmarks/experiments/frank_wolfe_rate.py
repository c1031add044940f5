"""The rate of Frank-Wolfe on the LASSO of the book chapter, against rows and columns, at (1, 1/n^2).

Rows in [-1, 1]^p, targets in [-1, 1], the unit L1 ball: L1 <= 2 and curvature <= 4, as in its section 6.4.3.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from framework import Cell, Experiment, plots
from framework.markdown import number, spread, table
from framework.private_runs import fit
from framework.problems import PaperProblem

from discreet import Problem
from discreet.problem.constraints import L1Ball
from discreet.problem.losses import Squared
from discreet.solvers import FrankWolfe

NAME = "frank-wolfe"
ROWS, COLUMNS = (500, 2_000, 8_000, 32_000), (50, 200, 1_000, 3_000)
FIXED_ROWS, FIXED_COLUMNS = 2_000, 200
RUNS = 10
LIPSCHITZ = 2.0  # of the loss, in the norm of the gradient's largest entry
CLIPS = {"certified": LIPSCHITZ, "certified, clipped": None, "claimed": LIPSCHITZ}  # None: the solver's default
EXACT = "exact, step 1/(T+2)"


def cells(quick):
    by_rows = [(n, FIXED_COLUMNS) for n in (ROWS[:2] if quick else ROWS)]
    by_columns = [(FIXED_ROWS, p) for p in (COLUMNS[:1] if quick else COLUMNS)]
    for n, p in dict.fromkeys(by_rows + by_columns):
        for method in (*CLIPS, EXACT):
            yield Cell(NAME, "lasso", method, {"rows": n, "columns": p})


@lru_cache(maxsize=1)
def lasso(rows, columns, seed=0):
    """Five active columns; their weights sum up to 1, so that the optimum is near the border of the ball."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, (rows, columns))
    weights = np.zeros(columns)
    weights[:5] = np.array([0.4, -0.3, 0.2, -0.1, 0.1]) / 1.1
    y = np.clip(X @ weights + 0.2 * rng.standard_normal(rows), -1.0, 1.0)
    problem = Problem(Squared(), constraint=L1Ball(1.0), fit_intercept=False)
    return PaperProblem("lasso", X, y, problem)


def measure(cell):
    problem = lasso(cell.setting["rows"], cell.setting["columns"])
    if cell.method == EXACT:
        steps = round((4.0 * problem.rows / LIPSCHITZ) ** (2.0 / 3.0))  # the book's T: (curvature n epsilon / L1)^(2/3)
        return {"excess": [exact_excess(problem, steps)], "steps": steps}
    calibration = "paper" if cell.method == "claimed" else "certified"
    solver = FrankWolfe(clip=CLIPS[cell.method], scale_share=0.0)
    declared = {"bounds": (-1.0, 1.0), "y_bounds": (-1.0, 1.0), "relation": "zero_out", "calibration": calibration}
    found = [fit(problem, solver, seed, **declared) for seed in range(RUNS)]
    values = [problem.problem.objective(problem.X, problem.y, one.w) - problem.best.value for one in found]
    return {"excess": values, "steps": found[0].iterations}


def exact_excess(problem, steps):
    """Without noise, with the printed constant step: a share of (1 - 1/(T+2))^(T-1), about 1/e, stays at the start.

    Starts at a corner of the ball, as the algorithm may.
    """
    X, y, n = problem.X, problem.y, problem.rows
    gram, cross = X.T @ X / n, X.T @ y / n
    w = np.zeros(problem.columns)
    w[-1] = 1.0
    for _ in range(steps - 1):
        gradient = gram @ w - cross
        j = int(np.argmax(np.abs(gradient)))
        w *= 1.0 - 1.0 / (steps + 2.0)
        w[j] -= math.copysign(1.0 / (steps + 2.0), gradient[j])
    return float(problem.problem.objective(X, y, w) - problem.best.value)


STYLES = {
    "certified": {"color": "#54278f", "marker": "o", "label": "certified, no clipping"},
    "certified, clipped": {"color": "#9e6fd0", "marker": "s", "label": "certified, gradients clipped (default)"},
    "claimed": {"color": "#54278f", "marker": "o", "ls": ":", "mfc": "none", "label": "claimed, not certified"},
    EXACT: {"color": "grey", "marker": "x", "label": "no noise, the printed step 1/(T+2)"},
}


def page(results, folder):
    """Excess of the mean loss against rows and columns, and the slopes between the first and the last."""
    with plots.figure(folder / "papers-frank-wolfe.png", 1, 2, (4.2, 3.4)) as axes:
        draw(axes[0, 0], results, "rows", {"columns": FIXED_COLUMNS}, f"{FIXED_COLUMNS} columns")
        draw(axes[0, 1], results, "columns", {"rows": FIXED_ROWS}, f"{FIXED_ROWS:,} rows")
        reference = [0.5 * n ** (-2.0 / 3.0) for n in ROWS]
        axes[0, 0].plot(ROWS, reference, color="black", lw=0.8, ls="--", label="n^(-2/3)")
        axes[0, 0].set_ylabel("excess of the mean loss")
    shapes = [(n, FIXED_COLUMNS) for n in ROWS] + [(FIXED_ROWS, p) for p in COLUMNS if p != FIXED_COLUMNS]
    rows = []
    for method in STYLES:
        found = {s: results.one(method=method, rows=s[0], columns=s[1]) for s in shapes}
        ends = [found[n, FIXED_COLUMNS] for n in (ROWS[0], ROWS[-1])]
        slope = ""
        if all(ends):
            first, last = (float(np.mean(n["excess"])) for n in ends)
            slope = number(math.log(last / first) / math.log(ROWS[-1] / ROWS[0]))
        fields = ["" if n is None else spread(n["excess"]) for n in found.values()]
        rows.append([STYLES[method]["label"], *fields, slope])
    head = ["", *(f"{n:,} x {p:,}" for n, p in shapes), "slope in n"]
    return "![Frank-Wolfe](papers-frank-wolfe.png)\n\n" + table(head, rows)


def draw(axis, results, along, fixed, title):
    for method, style in STYLES.items():
        found = sorted((c.setting[along], n["excess"]) for c, n in results.select(method=method, **fixed))
        if found:
            plots.curve(axis, [x for x, _ in found], plots.band_of([e for _, e in found]), style)
    axis.set(xscale="log", yscale="log", xlabel=along)
    axis.set_title(title, fontsize=10)


frank_wolfe = Experiment(
    NAME,
    "papers",
    "Frank-Wolfe on LASSO against rows and columns: the rate",
    cells,
    measure,
    page,
    file="papers-others.md",
    order=2,
)
