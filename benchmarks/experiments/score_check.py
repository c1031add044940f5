"""newton with and without the counts of its scores by label: where they help, and where they cost.

The mean log-loss on held-out rows at epsilon 1, over that of a constant without privacy, and the worst draw. "Without"
plans no check, and spends its share on the steps. About half a minute.
"""

from __future__ import annotations

import math
from contextlib import contextmanager

import numpy as np
from framework import Cell, Experiment
from framework.markdown import table
from framework.registry import datasets, datasets_of

from discreet import LogisticRegression
from discreet.solvers.newton import solver

NAME = "score_check"
DRAWS = 20
WITHOUT, WITH = "without", "with"


def cells(quick):
    for dataset in datasets_of(NAME)[: 1 if quick else None]:
        for method in (WITHOUT, WITH):
            yield Cell(NAME, dataset.name, method, {"epsilon": 1.0, "draws": 2 if quick else DRAWS})


def measure(cell):
    """The log-loss of each draw, in units of that of even labels; tables are drawn one after the other."""
    dataset, rng, found = datasets()[cell.dataset], np.random.default_rng(3), []
    rows = dataset.facts["rows"]
    with planned(cell.method == WITH):
        for seed in range(cell.setting["draws"]):
            X, y = dataset.load(rng)
            model = LogisticRegression(
                epsilon=cell.setting["epsilon"], solver="newton", classes=[0, 1], random_state=seed
            )
            scores = model.fit(X[:rows], y[:rows]).decision_function(X[rows:])
            found.append(float(np.logaddexp(0.0, -(2.0 * y[rows:] - 1.0) * scores).mean()) / math.log(2.0))
    return {"mean": float(np.mean(found)), "worst": max(found)}


@contextmanager
def planned(check):
    """Plans of newton with or without the check."""
    share = solver.check_share
    if not check:
        solver.check_share = lambda public, budget: 0.0
    try:
        yield
    finally:
        solver.check_share = share


def page(results, folder):
    rows = []
    for dataset in datasets_of(NAME):
        found = [results.one(dataset=dataset.name, method=method) for method in (WITHOUT, WITH)]
        if all(found):
            rows.append([dataset.name, *(f"{n[what]:.3f}" for n in found for what in ("mean", "worst"))])
    return table(["table", "without: mean", "worst", "with: mean", "worst"], rows)


score_check = Experiment(
    NAME,
    "score_check",
    "newton with and without the counts of its scores by label: log-loss over that of a constant",
    cells,
    measure,
    page,
)
