"""Federated private ADMM beside federated averaging as Flower ships it, at the same guarantee.

Whole clients are protected in the central model unless said otherwise. ADMM runs with its defaults.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np
from federated.holders import EPSILON, HolderTable, Scores
from framework import Cell, Dataset, Experiment
from framework.markdown import table
from framework.registry import datasets, datasets_of, methods, methods_of

NAME = "federated"
ROUNDS, USUAL_ROUNDS, RUNS = (5, 10, 20, 40), 20, 5
YARDSTICKS = "yardsticks"


def sizes_of(dataset: Dataset) -> list[tuple[int, int]]:
    """Clients and rounds: every number of clients at the usual rounds, then the most clients at other rounds."""
    clients = dataset.facts["clients"]
    return [(c, USUAL_ROUNDS) for c in clients] + [(clients[-1], rounds) for rounds in ROUNDS if rounds != USUAL_ROUNDS]


def cells(quick: bool) -> Iterator[Cell]:
    for dataset in datasets_of(NAME)[1 if quick else 0 :]:
        yield Cell(NAME, dataset.name, YARDSTICKS)
        for clients, rounds in [(10, 2)] if quick else sizes_of(dataset):
            for method in methods_of(NAME):
                setting = {"clients": clients, "rounds": rounds, "runs": 1 if quick else RUNS}
                yield Cell(NAME, dataset.name, method.name, setting)


@lru_cache(maxsize=2)
def loaded(name: str) -> HolderTable:
    found: Any = datasets()[name].load()
    return found


def measure(cell: Cell) -> dict[str, Any]:
    holders = loaded(cell.dataset)
    if cell.method == YARDSTICKS:
        return {"without_privacy": holders.without_privacy, "constant": holders.constant}
    found = methods()[cell.method].run(holders, cell.setting, cell.seed)
    return {**found, "log_loss": float(np.mean([loss for loss, _ in found["scores"]]))}


def scores_of(results: Any, dataset: Dataset, method: str, clients: int, rounds: int) -> Scores | None:
    found = results.one(dataset=dataset.name, method=method, clients=clients, rounds=rounds)
    return None if found is None else found["scores"]


def written(scores: Scores | None) -> str:
    if scores is None:
        return ""
    losses, accuracies = np.array(scores).T
    return f"{losses.mean():.3f} ± {losses.std():.3f} ({losses.max():.3f}), {100 * accuracies.mean():.1f} %"


def page(results: Any, folder: Any) -> dict[str, str]:
    """For each table that is complete its section, and its picture."""
    sections = {}
    for dataset in datasets_of(NAME):
        if any(cell.dataset == dataset.name and results.of(cell) is None for cell in results.cells):
            continue
        if results.one(dataset=dataset.name) is None:
            continue
        shown = dict.fromkeys((c.setting["clients"], c.setting["rounds"]) for c in results.cells if c.setting)
        sizes = [size for size in sizes_of(dataset) if size in shown] or list(shown)
        sections[dataset.facts["place"]] = section(results, dataset, sizes)
        draw(results, dataset, folder / f"federated-{dataset.facts['place']}.png")
    return sections


def section(results: Any, dataset: Dataset, sizes: list[tuple[int, int]]) -> str:
    names = [one.name for one in methods_of(NAME)]
    rows = [[str(c), str(r), *(written(scores_of(results, dataset, m, c, r)) for m in names)] for c, r in sizes]
    known = results.one(dataset=dataset.name, method=YARDSTICKS)
    references = {"Without privacy": known["without_privacy"], "a constant": known["constant"]}
    told = "; ".join(f"{what} {loss:.3f}, {100 * hit:.1f} %" for what, (loss, hit) in references.items())
    return f"{table(['clients', 'rounds', *names], rows)}\n\n{told}."


def draw(results: Any, dataset: Dataset, path: Any) -> None:
    """Two panels: log-loss against rounds with the most clients, and against clients."""
    from discreet._common.plotting import pyplot

    plt = pyplot()
    known, clients = results.one(dataset=dataset.name, method=YARDSTICKS), dataset.facts["clients"]
    best, constant = known["without_privacy"][0], known["constant"][0]
    figure, axes = plt.subplots(1, 2, figsize=(9.5, 4.0), sharey=True, layout="constrained")
    panels = [
        ([(clients[-1], rounds) for rounds in ROUNDS], ROUNDS, f"rounds, {clients[-1]} clients"),
        ([(c, USUAL_ROUNDS) for c in clients], clients, f"clients, {USUAL_ROUNDS} rounds"),
    ]
    for axis, (sizes, places, label) in zip(axes, panels, strict=True):
        for method in methods_of(NAME):
            curve(axis, places, [scores_of(results, dataset, method.name, *size) for size in sizes], method)
        axis.axhline(best, color="black", lw=1, label="without privacy")
        axis.axhline(constant, color="#777777", lw=1, ls=":", label="a constant")
        axis.set(xscale="log", xlabel=label)
        axis.set_xticks(places, [f"{place:,}" for place in places])
        axis.minorticks_off()
        axis.set_ylim(best - 0.02, constant + 0.12)
    axes[0].set_ylabel("held-out log-loss")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=5, fontsize=8, frameon=False)
    title = f"{dataset.facts['title']}: epsilon {EPSILON:g}, whole clients, central (green: rows, local)"
    figure.suptitle(title, fontsize=10)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def curve(axis: Any, places: tuple[int, ...], scores: list[Scores | None], method: Any) -> None:
    """Means of the log-loss with a band of one deviation, where there are scores."""
    found = {place: np.array(some)[:, 0] for place, some in zip(places, scores, strict=True) if some is not None}
    means, spread = (np.array([of(losses) for losses in found.values()]) for of in (np.mean, np.std))
    axis.plot(list(found), means, ms=5, label=method.name, **method.style)
    axis.fill_between(list(found), means - spread, means + spread, color=method.style["color"], alpha=0.15, lw=0)


federated = Experiment(
    NAME,
    NAME,
    "federated ADMM against rounds and clients, beside federated averaging at the same guarantee",
    cells,
    measure,
    page,
    file="federated.md",
    stored=("acsincome_co", "electricity"),
)
