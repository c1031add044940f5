"""Regret of private streams: the losses on the way, each row before it is learned from, against the best fixed model.

Run: make bench-streams. Bounds are read from the table as if they were public.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from stored_tables import command, labelled, load_benchmark

from discreet import Budget, LogisticRegression, Problem
from discreet.data.public import Public
from discreet.data.rows import Data
from discreet.privacy.random.generator import secure_generator
from discreet.problem.losses import Logistic
from discreet.problem.optimum import minimise
from discreet.problem.penalties import L2
from discreet.problem.scaled_problem import scale_problem
from discreet.scaling.learn import learn_scaling
from discreet.solvers import FTRL
from discreet.solvers.ftrl.leaf_loop import LeafLoop

EPSILON = 1.0
RUNS = 3
LEAVES = 512
TABLES = ("adult", "acsincome_co", "acsincome_ne", "electricity")
PROBLEM = Problem(Logistic(), L2(1e-5))


def table(name: str) -> tuple[str, Any, Any]:
    """Rows in random order, labels -1 and +1."""
    X, y = load_benchmark(name)
    order = np.random.default_rng(0).permutation(len(y))
    return labelled(name), X[order], 2.0 * y[order] - 1.0


def losses_on_the_way(solver: FTRL, X: Any, y: Any, budget: Budget) -> Any:
    """The loss of every row at the weights that were there before its leaf."""
    n = len(y)
    public = Public(n, X.shape[1], low=X.min(axis=0), high=X.max(axis=0))
    plan = solver.plan(PROBLEM, public, budget)
    rng = secure_generator()
    data = Data(X, y)
    scaling = learn_scaling(plan.scaling_plan, data, public, rng)
    scaled = scale_problem(PROBLEM, data, scaling, n, "C")
    loop = LeafLoop(solver, plan, scaled, lambda _: rng)
    losses, w = np.empty(n), loop.leader.w
    for rows in solver.follow(loop, rng):
        losses[rows] = PROBLEM.loss.value(scaled.X[rows] @ w, y[rows])
        w = loop.leader.w
    return losses


def best_losses(X: Any, y: Any, marks: list[int]) -> list[float]:
    """Sums of losses of the best fixed model of the first rows, for several numbers of rows. Not private."""
    sums = []
    for n in marks:
        best = minimise(PROBLEM, Data(X[:n], y[:n]), 1e-6)
        margins = X[:n] @ best.coef + best.intercept
        sums.append(float(PROBLEM.loss.value(margins, y[:n]).sum()))
    return sums


def regret_rows(X: Any, y: Any) -> list[str]:
    n = len(y)
    marks = [n // 16, n // 4, n]
    best = best_losses(X, y, marks)
    lines = []
    for label, kind, epsilon in (
        ("no noise", "tree", np.inf),
        ("tree", "tree", EPSILON),
        ("square root", "square-root", EPSILON),
    ):
        solver = FTRL(LEAVES, 1, kind, shuffle=False, scale_share=0.0)  # type: ignore[arg-type]
        found = []
        for _ in range(RUNS):
            losses = losses_on_the_way(solver, X, y, Budget(epsilon, 1.0 / n**2))
            found.append([(losses[:m].sum() - b) / m for m, b in zip(marks, best, strict=True)])
        cells = " | ".join(f"{value:.4f}" for value in np.mean(found, axis=0))
        lines.append(f"| regret per row, {label} | {cells} |")
    return [f"| | {' | '.join(f'{m:,} rows' for m in marks)} |", "|---|---|---|---|", *lines]


def accuracy_rows(X: Any, y: Any) -> list[str]:
    """Accuracy on the last 30 % of the rows after a stream, or a fit, of the others."""
    cut = int(0.7 * len(y))
    shared = {"epsilon": EPSILON, "classes": [-1, 1], "bounds": (X.min(axis=0), X.max(axis=0))}
    lines = ["| | accuracy |", "|---|---|"]
    for label, options in (
        ("stream, length declared", {"public_n": cut}),
        ("stream, length unknown", {"delta": 1.0 / cut**2}),
        ("fit, ftrl", {"solver": "ftrl"}),
        ("fit, sgd", {"solver": "sgd"}),
        ("fit, cd", {"solver": "cd"}),
    ):
        scores = []
        for _ in range(RUNS):
            model = LogisticRegression(**shared, **options)
            if "solver" in options:
                model.fit(X[:cut], y[:cut])
            else:
                for start in range(0, cut, 1_000):
                    model.partial_fit(X[start : min(cut, start + 1_000)], y[start : min(cut, start + 1_000)])
            scores.append(model.score(X[cut:], y[cut:]))
        lines.append(f"| {label} | {np.mean(scores):.3f} |")
    return lines


def main() -> None:
    parser = command(__doc__, *TABLES)
    parser.add_argument("table", nargs="?", default="adult", choices=TABLES)
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    name, X, y = table(chosen.table)
    print(f"{name}, {X.shape[0]:,} x {X.shape[1]}, epsilon {EPSILON:g}, mean of {RUNS} runs\n")
    print("\n".join([*regret_rows(X, y), "", *accuracy_rows(X, y)]))


if __name__ == "__main__":
    main()
