"""Group fairness notions, each declared once, and the numbers that they ask about.

Such a number is a constant plus a weighted sum of the shares of correct predictions in the cells. Formulas and proofs:
docs/guarantees/fairness.md, Theorem 4.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from discreet._common.types import FloatArray
from discreet.fairness.cells import CellTable


@dataclass(frozen=True)
class Notion:
    """How often an event holds among the rows of a group, less how often it holds among those of all groups.

    Attributes
    ----------
    name : str
    labels : {"each", "favourable", "together"}
        Which rows are compared with each other: those with the same label, for each label or for the favourable ones,
        or all rows together.
    event : {"correct", "favourable"}
        The event: that the prediction is correct, or that it is the one favourable label of two.
    groups : bool
        Whether groups are compared; if not, it is one number about all rows.
    spellings : tuple of str
        Other names that are taken.
    """

    name: str
    labels: Literal["each", "favourable", "together"]
    event: Literal["correct", "favourable"] = "correct"
    groups: bool = True
    spellings: tuple[str, ...] = ()

    @property
    def compares_predictions(self) -> bool:
        """Whether it compares predictions for people who are alike: all of them, or those of one label."""
        return self.event == "favourable" or self.labels != "together"

    def counts_wrong(self, label: Any, favourable: Sequence[Any]) -> bool:
        """Whether the event holds where the prediction for a row of this label is wrong: there are two labels."""
        return self.event == "favourable" and label not in favourable

    def why_not(self, labels: int, favourable: Sequence[Any]) -> str | None:
        """Why so many labels, some of them favourable, do not allow it; None if they do."""
        if self.event == "favourable" and labels != 2:
            return "is a function of correct predictions for two labels only"
        if self.event == "favourable" and len(favourable) != 1:
            return "needs exactly one favourable label"
        if self.labels == "favourable" and not favourable:
            return "needs favourable=..., the label or labels that are a good outcome"
        return None


NOTIONS = {
    notion.name: notion
    for notion in (
        Notion("equalised odds", labels="each", spellings=("equalized odds",)),
        Notion("equality of opportunity", labels="favourable"),
        Notion("demographic parity", labels="together", event="favourable"),
        Notion("accuracy parity", labels="together"),
        Notion("accuracy", labels="together", groups=False),
    )
}


def notion_of(name: str, among: Iterable[str] = NOTIONS, what: str = "notions must be among") -> Notion:
    """The notion of this name; one that is not among the names is refused."""
    names = list(among)
    for notion in map(NOTIONS.__getitem__, names):
        if name in (notion.name, *notion.spellings):
            return notion
    raise ValueError(f"{what} {', '.join(map(repr, names))}; got {name!r}.")


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
