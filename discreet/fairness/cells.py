"""Rows counted by label and group: what every group fairness notion of a classifier is a function of."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from discreet._common.types import FloatArray, IndexArray


@dataclass(frozen=True, eq=False)
class CellTable:
    """How many rows there are with each label in each group, and how many of them are predicted correctly.

    A pair (label, group) is called a cell. Counts may be estimates, such as noisy counts.

    Attributes
    ----------
    labels, groups : arrays
        The values that index the rows and the columns of the counts.
    counts, correct : arrays of shape (labels, groups)

    Examples
    --------
    >>> from discreet.fairness.cells import CellTable
    >>> table = CellTable.from_predictions([0, 0, 1, 1], [0, 1, 1, 1], ["a", "b", "a", "b"])
    >>> table.counts.tolist(), table.correct.tolist()
    ([[1.0, 1.0], [1.0, 1.0]], [[1.0, 0.0], [1.0, 1.0]])
    """

    labels: npt.NDArray[Any]
    groups: npt.NDArray[Any]
    counts: FloatArray
    correct: FloatArray

    def __post_init__(self) -> None:
        shape = (len(self.labels), len(self.groups))
        if np.shape(self.counts) != shape or np.shape(self.correct) != shape:
            raise ValueError(f"counts and correct must have the shape {shape} of labels and groups.")

    @classmethod
    def from_predictions(
        cls, y: Any, predicted: Any, sensitive: Any, *, labels: Any = None, groups: Any = None
    ) -> Self:
        """Count rows by their label and group, and those whose prediction is their label."""
        rows = row_cells(y, sensitive, labels, groups)
        right = np.asarray(predicted) == np.asarray(y)
        if np.shape(right) != rows.label.shape:
            raise ValueError("predicted must hold one prediction per row of y.")
        return cls(rows.labels, rows.groups, rows.counts, rows.sums(right))

    @property
    def total(self) -> float:
        """Number of rows."""
        return float(self.counts.sum())

    @property
    def rates(self) -> FloatArray:
        """Share of correct predictions in each cell; NaN in an empty one."""
        return np.divide(self.correct, self.counts, out=np.full(np.shape(self.counts), np.nan), where=self.counts > 0.0)


@dataclass(frozen=True, eq=False)
class RowCells:
    """The cell of each row, by the indices of its label and of its group."""

    labels: npt.NDArray[Any]
    groups: npt.NDArray[Any]
    label: IndexArray
    group: IndexArray

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.labels), len(self.groups)

    @cached_property
    def cell(self) -> IndexArray:
        """One number per row: its place in a flattened table of cells."""
        return self.label * len(self.groups) + self.group

    @cached_property
    def counts(self) -> FloatArray:
        """Number of rows in each cell."""
        return self.sums(np.ones(self.label.size))

    def sums(self, values: Any) -> FloatArray:
        """Sum of one value per row in each cell."""
        weights = np.asarray(values, dtype=np.float64)
        flat = np.bincount(self.cell, weights=weights, minlength=self.shape[0] * self.shape[1])
        return flat.astype(np.float64, copy=False).reshape(self.shape)

    def means(self, values: Any) -> FloatArray:
        """Mean of one value per row in each cell; 0 in an empty one."""
        return np.divide(self.sums(values), self.counts, out=np.zeros(self.shape), where=self.counts > 0.0)

    def table(self, correct: Any) -> CellTable:
        """The counts, given which rows are predicted correctly."""
        return CellTable(self.labels, self.groups, self.counts, self.sums(correct))


def row_cells(y: Any, sensitive: Any, labels: Any = None, groups: Any = None) -> RowCells:
    """Find the cell of each row.

    Parameters
    ----------
    y, sensitive : array-like of shape (rows,)
        The label and the group of each row.
    labels, groups : array-like, optional
        All values that may occur; None takes those that do occur, sorted.
    """
    label_values, label = _codes("y", y, labels)
    group_values, group = _codes("sensitive", sensitive, groups)
    if label.size != group.size:
        raise ValueError(f"y has {label.size} values and sensitive has {group.size}; pass one of each per row.")
    if label.size == 0:
        raise ValueError("there are no rows.")
    return RowCells(label_values, group_values, label, group)


def _codes(name: str, values: Any, known: Any) -> tuple[npt.NDArray[Any], IndexArray]:
    found = np.asarray(values)
    if found.ndim != 1:
        raise ValueError(f"{name} must have one value per row; got an array of shape {found.shape}.")
    if any(value is None or (isinstance(value, float) and math.isnan(value)) for value in found.tolist()):
        raise ValueError(f"{name} has missing values; give them a value of their own, or leave those rows out.")
    if known is None:
        distinct, codes = np.unique(found, return_inverse=True)
        return distinct, codes.astype(np.int64)
    listed = np.asarray(known)
    place = {value: index for index, value in enumerate(listed.tolist())}
    if len(place) != listed.size:
        raise ValueError(f"the known values of {name} must differ from each other.")
    distinct, codes = np.unique(found, return_inverse=True)
    strangers = [value for value in distinct.tolist() if value not in place]
    if strangers:
        raise ValueError(f"{name} has the value {strangers[0]!r}, which is none of {listed.tolist()}.")
    return listed, np.array([place[value] for value in distinct.tolist()], dtype=np.int64)[codes]
