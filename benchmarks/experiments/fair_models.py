"""Private and fairer models of incomes: accuracy and differences between men and women, for several strengths.

The column of the sex is not a feature. Differences of rates are between men and women, on held-out rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from fair_models.models import EPSILON, OPPORTUNITY, PARITY, exact_scores, paid_directions, private_scores
from fair_models.split import MEASURES, FloatArray, Split, split
from framework import Cell, Dataset, Experiment
from framework.markdown import table
from framework.registry import datasets, datasets_of
from sklearn import linear_model
from sklearn.metrics import roc_auc_score

NAME = "fair-models"
STRENGTHS = ("0", "1", "10", "100", "1000", "inf")
EXACT, SOLVERS, DIRECTIONS = "without privacy", ("newton", "cd", "gd"), "directions"
SEEDS = 10
Line = tuple[str, str, str]  # strength, which rows are compared, solver


def lines(quick: bool = False) -> list[Line]:
    """The lines of a table."""
    if quick:
        return [("inf", PARITY, EXACT), ("inf", PARITY, "newton")]
    found = [(strength, PARITY, solver) for strength in STRENGTHS for solver in (EXACT, *SOLVERS)]
    return found + [("inf", OPPORTUNITY, solver) for solver in (EXACT, SOLVERS[0])]


def cells(quick: bool) -> Iterator[Cell]:
    for dataset in datasets_of(NAME)[-1 if quick else 0 :]:
        for seed in range(1 if quick else SEEDS):
            yield Cell(NAME, dataset.name, DIRECTIONS, {}, seed)
            for strength, notion, solver in lines(quick):
                yield Cell(NAME, dataset.name, solver, {"strength": strength, "notion": notion}, seed)


@lru_cache(maxsize=1)
def loaded(name: str, seed: int) -> Split:
    rows: Any = datasets()[name].load()
    return split(*rows, seed)


def measure(cell: Cell) -> dict[str, Any]:
    """The measures of one model, for one split and one seed of the noise."""
    rows = loaded(cell.dataset, cell.seed)
    if cell.method == DIRECTIONS:
        return about_directions(rows, cell.seed)
    strength, notion = float(cell.setting["strength"]), cell.setting["notion"]
    if cell.method == EXACT:
        scores = exact_scores(rows, strength, notion)
    else:
        scores = private_scores(rows, strength, notion, cell.method, cell.seed)
    return dict(zip(MEASURES, map(float, rows.judge(scores)), strict=True))


def about_directions(rows: Split, seed: int) -> dict[str, float]:
    """How noisy the directions are, and how well the columns that are left tell the sex. Not private."""
    sex = linear_model.LogisticRegression(solver="newton-cholesky").fit(rows.X, rows.men)
    shares = {
        notion: float(np.mean(paid_directions(rows, notion, seed).noise_share)) for notion in (PARITY, OPPORTUNITY)
    }
    return {**shares, "area": float(roc_auc_score(rows.held_out_men, sex.decision_function(rows.held_out)))}


def values_of(results: Any, dataset: Dataset, line: Line) -> FloatArray:
    """The measures of a line, one row for each seed."""
    strength, notion, solver = line
    found = results.select(dataset=dataset.name, method=solver, strength=strength, notion=notion)
    return np.array([[numbers[name] for name in MEASURES] for _, numbers in found])


def page(results: Any, folder: Any) -> dict[str, str]:
    """For each table that is complete its section; the picture has those."""
    complete = []
    for dataset in datasets_of(NAME):
        own = [cell for cell in results.cells if cell.dataset == dataset.name]
        if own and all(results.of(cell) is not None for cell in own):
            complete.append(dataset)
    if complete:
        draw(results, complete, folder.parent / "fair-models.png")
    return {one.facts["place"]: f"{table_of(results, one)}\n\n{remark(results, one)}" for one in complete}


def table_of(results: Any, dataset: Dataset) -> str:
    """Means over the seeds, and the worst in brackets: the lowest accuracy, the largest loss and differences."""
    worst: list[Callable[[FloatArray], FloatArray]] = [np.min, np.max, largest, largest]
    rows = []
    for line in lines():
        found = values_of(results, dataset, line)
        if found.size:
            fields = [f"{column.mean():.3f} ({far(column):.3f})" for column, far in zip(found.T, worst, strict=True)]
            rows.append([line[0] + ", among y = 1" * (line[1] == OPPORTUNITY), line[2], *fields])
    return table(["strength", "solver", *MEASURES], rows)


def largest(column: FloatArray) -> FloatArray:
    """The entry of largest absolute value, with its sign."""
    return column[np.abs(column).argmax()]


def remark(results: Any, dataset: Dataset) -> str:
    found = [numbers for _, numbers in results.select(dataset=dataset.name, method=DIRECTIONS)]
    shares = {notion: np.mean([numbers[notion] for numbers in found]) for notion in (PARITY, OPPORTUNITY)}
    return (
        f"Part of the direction's squared length that may be noise: {shares[PARITY]:.2f} of all people, "
        f"{shares[OPPORTUNITY]:.2f} among y = 1. The other columns tell the sex with an area under the curve of "
        f"{found[0]['area']:.2f}."
    )


def draw(results: Any, shown: list[Dataset], path: Path) -> None:
    from discreet._common.plotting import pyplot

    plt = pyplot()
    figure, panels = plt.subplots(1, len(shown), figsize=(10.0, 4.0), layout="constrained", squeeze=False)
    for axes, dataset in zip(panels[0], shown, strict=True):
        for colour, solver in enumerate((EXACT, *SOLVERS)):
            found = [values_of(results, dataset, (strength, PARITY, solver)) for strength in STRENGTHS]
            means = np.array([one.mean(axis=0) if one.size else [math.nan] * len(MEASURES) for one in found])
            parity, accuracy = means[:, 2], means[:, 0]
            axes.plot(parity, accuracy, marker="o", color=f"C{colour}", label=solver)
            for at in (0, -1):
                if np.isfinite(parity[at]):
                    where = {"xytext": (4, 4), "textcoords": "offset points"}
                    axes.annotate(STRENGTHS[at], (parity[at], accuracy[at]), fontsize=8, **where)
        title = f"{dataset.facts['place']}, epsilon {EPSILON:g}"
        axes.set(xlabel="demographic parity difference", ylabel="accuracy", title=title)
        axes.legend(fontsize=8)
    figure.savefig(path, dpi=100)
    plt.close(figure)


fair_models = Experiment(
    NAME,
    NAME,
    "private and fairer models of incomes: accuracy against differences between men and women",
    cells,
    measure,
    page,
    file="../fair_models.md",
    stored=("acsincome_co", "acsincome_ne"),
)
