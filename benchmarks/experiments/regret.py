"""Regret of DP-FTRL against the number of rows: each row's loss before it is learned from, against the best model.

Bounds are read from the table as if they were public.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from framework import Cell, Experiment, plots
from framework.markdown import spread, table
from framework.registry import datasets, datasets_of

from discreet import Budget, Problem
from discreet.data.public import Public
from discreet.data.rows import Data
from discreet.privacy.random.generator import seeded_generator
from discreet.problem.losses import Logistic
from discreet.problem.optimum import minimise
from discreet.problem.penalties import L2
from discreet.problem.scaled_problem import scale_problem
from discreet.scaling.learn import learn_scaling
from discreet.solvers import FTRL
from discreet.solvers.ftrl.solver import LeafLoop

NAME = "regret"
EPSILON, RUNS, LEAVES = 1.0, 5, 512
PROBLEM = Problem(Logistic(), L2(1e-5))
METHODS = {"no noise": ("tree", np.inf), "tree": ("tree", EPSILON), "square root": ("square-root", EPSILON)}
ROWS = (1_024, 2_048, 4_096, 8_192, 16_384, 32_768)


def cells(quick):
    for dataset in datasets_of(NAME):
        for rows in ROWS[:1] if quick else ROWS:
            for method in METHODS:
                yield Cell(NAME, dataset.name, method, {"rows": rows})


@lru_cache(maxsize=2)
def stream(name):
    """Rows in random order."""
    X, y = datasets()[name].load()
    order = np.random.default_rng(0).permutation(len(y))
    return X[order], y[order]


def measure(cell):
    X, y = (part[: cell.setting["rows"]] for part in stream(cell.dataset))
    kind, epsilon = METHODS[cell.method]
    solver = FTRL(LEAVES, 1, kind, shuffle=False, scale_share=0.0)
    best, budget = best_loss(X, y), Budget(epsilon, 1.0 / len(y) ** 2)
    sums = [losses_on_the_way(solver, X, y, budget, seed).sum() for seed in range(RUNS)]
    return {"regret": [(total - best) / len(y) for total in sums]}


def losses_on_the_way(solver, X, y, budget, seed):
    """The loss of every row at the weights that were there before its leaf."""
    n = len(y)
    public = Public(n, X.shape[1], low=X.min(axis=0), high=X.max(axis=0))
    plan = solver.plan(PROBLEM, public, budget)
    rng, data = seeded_generator(seed), Data(X, y)
    scaled = scale_problem(PROBLEM, data, learn_scaling(plan.scaling_plan, data, public, rng), n, "C")
    loop = LeafLoop(solver, plan, scaled, lambda _: rng)
    losses, w = np.empty(n), loop.leader.w
    for rows in solver.follow(loop, rng):
        losses[rows] = PROBLEM.loss.value(scaled.X[rows] @ w, y[rows])
        w = loop.leader.w
    return losses


def best_loss(X, y):
    """The sum of losses of the best fixed model. Not private."""
    best = minimise(PROBLEM, Data(X, y), 1e-6)
    return float(PROBLEM.loss.value(X @ best.coef + best.intercept, y).sum())


STYLES = {
    "no noise": {"color": "grey", "marker": "x", "label": "no noise"},
    "tree": {"color": "#d94801", "marker": "o", "label": "tree"},
    "square root": {"color": "#08306b", "marker": "s", "label": "square root"},
}


def page(results, folder):
    shown = datasets_of(NAME)
    with plots.figure(folder / "papers-regret.png", 1, len(shown), (4.2, 3.2)) as axes:
        for axis, dataset in zip(axes.flat, shown, strict=True):
            for method, style in STYLES.items():
                found = {c.setting["rows"]: n["regret"] for c, n in results.select(dataset=dataset.name, method=method)}
                if found:
                    plots.curve(axis, list(found), plots.band_of(list(found.values())), style)
            axis.set(xscale="log", yscale="log", xlabel="rows", ylabel="regret per row")
            axis.set_title(dataset.name, fontsize=10)
    rows = []
    for dataset in shown:
        for method in METHODS:
            found = [results.one(dataset=dataset.name, method=method, rows=n) for n in ROWS]
            rows.append([dataset.name, method, *("" if n is None else spread(n["regret"]) for n in found)])
    head = ["stream", "noise", *(f"{n:,} rows" for n in ROWS)]
    return "![Regret](papers-regret.png)\n\n" + table(head, rows)


regret = Experiment(
    NAME,
    "papers",
    "regret of DP-FTRL against the number of rows, with the tree and with the square root",
    cells,
    measure,
    page,
    file="papers-others.md",
    order=3,
    stored=("electricity", "adult"),
)
