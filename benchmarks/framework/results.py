"""The numbers of an experiment, as its page asks for them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from framework import registry
from framework.cells import Cell, Numbers
from framework.kinds import Experiment
from framework.store import Store


class Results:
    """Cells of an experiment with their numbers."""

    def __init__(self, experiment: Experiment, store: Store, quick: bool = False) -> None:
        self.experiment = experiment
        self.cells = list(experiment.cells(quick))
        self._store = store

    def of(self, cell: Cell) -> Numbers | None:
        """The numbers of a cell; None where they are missing or the cell failed."""
        numbers = self._store.get(registry.key_of(cell))
        return None if numbers is None or "failed" in numbers else numbers

    def select(self, **wanted: Any) -> Iterator[tuple[Cell, Numbers]]:
        """Cells whose fields and settings are the wanted ones, with their numbers, those that have any."""
        for cell in self.cells:
            fields = {"dataset": cell.dataset, "method": cell.method, "seed": cell.seed, **cell.setting}
            if all(fields.get(name) == value for name, value in wanted.items()):
                numbers = self.of(cell)
                if numbers is not None:
                    yield cell, numbers

    def one(self, **wanted: Any) -> Numbers | None:
        """The numbers of the first such cell."""
        return next((numbers for _, numbers in self.select(**wanted)), None)

    def beside(self, experiment: str) -> Results:
        """Those of another experiment of the same store."""
        return Results(registry.experiments()[experiment], self._store)

    @property
    def failures(self) -> list[tuple[Cell, str]]:
        found = [(cell, self._store.get(registry.key_of(cell)) or {}) for cell in self.cells]
        return [(cell, numbers["failed"]) for cell, numbers in found if "failed" in numbers]

    @property
    def missing(self) -> list[Cell]:
        return [cell for cell in self.cells if registry.key_of(cell) not in self._store]

    def summary(self) -> str:
        """The table of the page, where it takes no plots; else a line for each cell: numbers, or why there are none."""
        failed = [f"{_told(cell)}: failed: {why}" for cell, why in self.failures]
        if self.experiment.page is not None and not self.experiment.file and not self.missing:
            return "\n\n".join([self.experiment.page(self, None), *failed])
        lines = list(failed)
        for cell, numbers in self.select():
            short = {name: text for name, value in numbers.items() if (text := _short(value))}
            lines.append(f"{_told(cell)}: " + ", ".join(f"{name} {text}" for name, text in short.items()))
        return "\n".join(lines + [f"{_told(cell)}: missing" for cell in self.missing])


def _told(cell: Cell) -> str:
    """The cell for a line of results; one of a stand-in says so."""
    dataset = registry.datasets().get(cell.dataset)
    return cell.describe() + (" (STAND-IN)" if dataset is not None and dataset.is_stand_in else "")


def _short(value: Any) -> str:
    """A number, the mean of the numbers of several runs, or why there are none; empty for all else."""
    if isinstance(value, str):
        return value
    if isinstance(value, (int, float)):
        return f"{value:.4g}"
    if isinstance(value, list) and value and all(isinstance(one, (int, float)) for one in value):
        return f"{sum(value) / len(value):.4g}"
    return ""
