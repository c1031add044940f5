"""Rows counted by label and group: what every group fairness notion of a classifier is a function of.

The numbers that notions ask about are a constant plus a weighted sum of the shares of correct predictions in the cells.
Formulas and proofs: docs/guarantees/fairness.md, Theorem 4.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from discreet._common.types import FloatArray, IndexArray
from discreet.fairness.notions import NOTIONS, Notion, notion_of


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
    distinct, codes = np.unique(found, return_inverse=True)
    if known is None:
        return distinct, codes.astype(np.int64)
    listed = np.asarray(known)
    place = {value: index for index, value in enumerate(listed.tolist())}
    if len(place) != listed.size:
        raise ValueError(f"the known values of {name} must differ from each other.")
    if not place.keys() >= set(distinct.tolist()):
        raise ValueError(f"{name} has a value that is none of {listed.tolist()}.")
    return listed, np.array([place[value] for value in distinct.tolist()], dtype=np.int64)[codes]


@dataclass(frozen=True, eq=False)
class Quantity:
    """One number that a notion asks about: F = constant + sum of weights * P(correct | cell).

    Attributes
    ----------
    notion : str
    label, group : object or None
        Which label and group it is about; None where it is about all of them.
    rows : float
        Number of rows with that label in that group.
    constant : float
    weights : array of shape (labels, groups)
        0 in empty cells; NaN everywhere if the quantity is not defined because there are no such rows.
    """

    notion: str
    label: Any
    group: Any
    rows: float
    constant: float
    weights: FloatArray

    @property
    def within_label(self) -> bool:
        """Whether it is about rows of its label alone."""
        return NOTIONS[self.notion].labels != "together"

    @property
    def defined(self) -> bool:
        """Whether there are rows that it is about."""
        return bool(self.rows > 0.0)

    def value(self, cells: CellTable) -> float:
        """F for the correct predictions of a table; NaN if it is not defined."""
        return self.constant + float((self.weights * np.nan_to_num(cells.rates)).sum())

    def change_within(self, loss: FloatArray, gain: FloatArray) -> tuple[float, float]:
        """The least and the largest change of F if P(correct | cell) moves from -loss to +gain in each cell."""
        plus, minus = np.maximum(self.weights, 0.0), np.maximum(-self.weights, 0.0)
        # 0.0 - 0.0 instead of -0.0, which would be printed with its sign
        return 0.0 - float((plus * loss + minus * gain).sum()), float((plus * gain + minus * loss).sum())

    def absolute_change(self, bound: FloatArray) -> float:
        """How far F can move if P(correct | cell) moves by at most the bound, either way."""
        return float((np.abs(self.weights) * bound).sum())


def quantities(cells: CellTable, notions: Iterable[str] | str | None = None, favourable: Any = None) -> list[Quantity]:
    """Return everything that the named notions ask about a table.

    Parameters
    ----------
    cells : CellTable
    notions : list of str, optional
        Names from `NOTIONS`; None takes all that the labels allow.
    favourable : label or list of labels, optional
        The favourable outcome of equality of opportunity and demographic parity. None is the larger one of two
        labels; with more labels the two notions need it to be named.
    """
    chosen = favourable_labels(cells.labels, favourable)
    if notions is None:
        asked = [notion for notion in NOTIONS.values() if notion.why_not(len(cells.labels), chosen) is None]
    else:
        asked = [notion_of(name) for name in ([notions] if isinstance(notions, str) else notions)]
    for notion in asked:
        reason = notion.why_not(len(cells.labels), chosen)
        if reason is not None:
            raise ValueError(f"{notion.name} {reason}.")
    return [quantity for notion in asked for quantity in _asked_by(notion, cells, chosen)]


def favourable_labels(labels: Any, favourable: Any) -> list[Any]:
    """The favourable labels as a list; empty if none was named and there are more than two labels."""
    known = np.asarray(labels).tolist()
    if favourable is None:
        return [known[-1]] if len(known) == 2 else []
    named = np.asarray(favourable).tolist()
    named = named if isinstance(named, list) else [named]
    for label in named:
        if label not in known:
            raise ValueError(f"favourable must be among the labels {known}; got {label!r}.")
    return named


def _asked_by(notion: Notion, cells: CellTable, favourable: list[Any]) -> list[Quantity]:
    """Everything that one notion asks: label by label where it compares within labels, and group by group."""
    listed = range(len(cells.labels))
    labels: list[int | None] = {
        "each": [*listed],
        "favourable": [i for i in listed if cells.labels.tolist()[i] in favourable],
        "together": [None],
    }[notion.labels]
    groups = range(len(cells.groups)) if notion.groups else [None]
    return [_quantity(notion, cells, favourable, i, k) for i in labels for k in groups]


def _quantity(notion: Notion, cells: CellTable, favourable: list[Any], i: int | None, k: int | None) -> Quantity:
    """P(event | label i, group k) - P(event | label i); None stands for all labels, or for no group to compare."""
    labels, shape = cells.labels.tolist(), np.shape(cells.counts)
    own, whole = np.zeros(shape, dtype=bool), np.zeros(shape, dtype=bool)
    rows = slice(None) if i is None else i
    whole[rows], own[rows, slice(None) if k is None else k] = True, True
    share = _shares(cells.counts, own)
    of_all = np.zeros(shape) if k is None else _shares(cells.counts, whole)
    wrong = [notion.counts_wrong(label, favourable) for label in labels]
    weights = share - of_all
    weights[wrong] *= -1.0
    label = favourable[0] if notion.event == "favourable" else None if i is None else labels[i]
    group = None if k is None else cells.groups.tolist()[k]
    constant = float(share[wrong].sum() - of_all[wrong].sum())
    return Quantity(notion.name, label, group, float(cells.counts[own].sum()), constant, weights)


def _shares(counts: FloatArray, rows: npt.NDArray[np.bool_]) -> FloatArray:
    """The share of each cell in these rows; NaN if there are none."""
    total = counts[rows].sum()
    return np.where(rows, counts / total, 0.0) if total > 0.0 else np.full(np.shape(counts), np.nan)
