"""The parts of the benchmark, table by table: rivals, private constants, our defaults, and tuned settings."""

from __future__ import annotations

import functools
import math
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from discreet import UtilityWarning
from generality import adassp, models
from generality.cells import Cell, cells_of
from generality.environments import ENVIRONMENTS, Rival
from generality.settings import RUNS, settings
from generality.tables import Table

OWN_SOLVERS = ("newton", "gd", "cd", "sgd")
CONSTANT_RUNS = 10  # of a private constant: all ratios are taken to its mean loss, so that its own luck must not count
Row = dict[str, Any]


def rivals(table: Table, sizes: Sequence[int], epsilons: Sequence[float]) -> list[Row]:
    """What others offer; the two without privacy are run once for all epsilons."""
    found = []
    for cell in cells_of(table, sizes):
        found.append(tried("constant without privacy", cell, None, lambda c, _: models.constant_without_privacy(c)))
        found.append(tried("without privacy", cell, None, lambda c, _: models.without_privacy(c)))
        for epsilon in epsilons:
            found.append(tried("AdaSSP", cell, epsilon, adassp.scores))
            boosted = functools.partial(adassp.scores, rounds=adassp.BOOSTING_ROUNDS)
            found.append(tried("BoostedAdaSSP", cell, epsilon, boosted))
            for environment in ENVIRONMENTS:
                if environment.ready:
                    found.append(tried(environment.name, cell, epsilon, process_of(environment.name).scores))
    return found


@functools.cache
def process_of(name: str) -> Rival:
    """One process for each library and worker."""
    return Rival(next(environment for environment in ENVIRONMENTS if environment.name == name))


def constants(table: Table, sizes: Sequence[int], epsilons: Sequence[float]) -> list[Row]:
    """Private constants, each with the mean loss of several draws of its noise."""
    return [
        averaged_constant(cell, epsilon, told)
        for cell in cells_of(table, sizes)
        for epsilon in epsilons
        for told in (False, True)
    ]


def averaged_constant(cell: Cell, epsilon: float, told: bool) -> Row:
    name, scores = f"private constant{', told' * told}", functools.partial(models.private_constant, told=told)
    rows = [tried(name, replace(cell, seed=cell.seed + run), epsilon, scores) for run in range(CONSTANT_RUNS)]
    losses = [math.inf if row["loss"] is None else row["loss"] for row in rows]
    return rows[0] | {"loss": json_number(float(np.mean(losses)))}


def auto(table: Table, sizes: Sequence[int], epsilons: Sequence[float]) -> list[Row]:
    """Our estimators with nothing passed but epsilon, and a second time with the true ranges as bounds."""
    return [
        tried(name, cell, epsilon, functools.partial(own, solver="auto", told=name != "auto"))
        for cell in cells_of(table, sizes)
        for epsilon in epsilons
        for name in ("auto", "auto, told")
    ]


def solvers(table: Table, sizes: Sequence[int], epsilons: Sequence[float]) -> list[Row]:
    """The same with a solver passed as well."""
    return [
        tried(solver, cell, epsilon, functools.partial(own, solver=solver))
        for cell in cells_of(table, sizes)
        for epsilon in epsilons
        for solver in OWN_SOLVERS
    ]


def own(cell: Cell, epsilon: float, **settings: Any) -> np.ndarray:
    return models.scores_of(models.fitted(cell, epsilon, **settings), cell)


def tuned(table: Table, sizes: Sequence[int], epsilons: Sequence[float]) -> list[Row]:
    """The setting of the grid with the least mean loss; its loss and that of `auto` in other runs."""
    found = []
    choices = settings()
    for cell in cells_of(table, sizes):
        best_known = tried("without privacy", cell, None, lambda c, _: models.without_privacy(c))
        constant = tried("constant without privacy", cell, None, lambda c, _: models.constant_without_privacy(c))
        for epsilon in epsilons:
            losses = [mean_loss(cell, epsilon, solver, extra, range(RUNS)) for _, solver, extra in choices]
            name, solver, extra = choices[int(np.argmin(losses))]
            again = range(RUNS, 2 * RUNS)  # other noise, so that a setting that was lucky is not rewarded
            best, own = (mean_loss(cell, epsilon, *one, again) for one in ((solver, extra), ("auto", {})))
            about = {"auto": json_number(own), "best": json_number(best), "setting": name}
            about |= {"without privacy": best_known["loss"], "constant": constant["loss"]}
            found.append(described(cell, epsilon) | about)
    return found


def mean_loss(cell: Cell, epsilon: float, solver: Any, extra: dict[str, Any], seeds: Iterable[int]) -> float:
    """Infinite where a solver refuses the problem or a run's loss is not finite."""
    losses = []
    for seed in seeds:
        row = tried("", cell, epsilon, functools.partial(own, solver=solver, seed=seed, **extra))
        if row["loss"] is None:
            return math.inf
        losses.append(row["loss"])
    return float(np.mean(losses))


def json_number(value: float) -> float | None:
    return value if math.isfinite(value) else None


def tried(name: str, cell: Cell, epsilon: float | None, scores: Callable[[Cell, Any], np.ndarray]) -> Row:
    """The row of one model: its figures, whether it warned of noise, and the error where it failed."""
    row, start = described(cell, epsilon) | {"model": name}, time.process_time()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            row |= models.judged(scores(cell, epsilon), cell)
        except Exception as error:  # a failure is a result
            row |= {"loss": None, "failed": f"{type(error).__name__}: {error}"[:200]}
    warned = any(issubclass(one.category, UtilityWarning) for one in caught)
    return row | {"warned": warned, "seconds": round(time.process_time() - start, 4)}


def described(cell: Cell, epsilon: float | None) -> Row:
    about = {"table": cell.name, "columns": cell.X.shape[1], "classes": cell.classes, "rows": cell.rows}
    return about | {"epsilon": epsilon}
