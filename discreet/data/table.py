"""A table in memory that has left its file: numbers and the names of their columns, already validated."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from discreet._common.types import FloatArray


@dataclass(frozen=True, eq=False)
class Table:
    """The rows of a file as numbers: features, their names, and the target (None if it was not asked for).

    Estimators take it as X, and learn the names of the features from it.
    """

    X: FloatArray
    names: list[str]
    y: Any = None

    @property
    def rows(self) -> int:
        return int(self.X.shape[0])

    def map_target(self, convert: Callable[[Any], Any]) -> Table:
        """The same table with another target, value by value."""
        return replace(self, y=convert(self.y))

    def sum_of_targets(self, part: Callable[[Any], FloatArray]) -> FloatArray:
        """What the part gives for the target."""
        return part(self.y)

    def check(self) -> None:
        """Nothing to do: the file was checked when it was read."""
