"""Group fairness notions: each is a constant plus a weighted sum of the shares of correct predictions in the cells.

Formulas and proofs: docs/guarantees/fairness.md, Theorem 4.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet._common.types import FloatArray
from discreet.fairness.cells import CellTable

EQUALISED_ODDS, EQUALITY_OF_OPPORTUNITY = "equalised odds", "equality of opportunity"
DEMOGRAPHIC_PARITY, ACCURACY_PARITY, ACCURACY = "demographic parity", "accuracy parity", "accuracy"


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


def equalised_odds(cells: CellTable, favourable: list[Any]) -> list[Quantity]:
    """P(correct | label, group) - P(correct | label), for each label and group."""
    return [_within_label(EQUALISED_ODDS, cells, i, k) for i in range(len(cells.labels)) for k in _groups(cells)]


def equality_of_opportunity(cells: CellTable, favourable: list[Any]) -> list[Quantity]:
    """P(correct | label, group) - P(correct | label), for the favourable labels and each group."""
    chosen = [i for i, label in enumerate(cells.labels.tolist()) if label in favourable]
    return [_within_label(EQUALITY_OF_OPPORTUNITY, cells, i, k) for i in chosen for k in _groups(cells)]


def demographic_parity(cells: CellTable, favourable: list[Any]) -> list[Quantity]:
    """P(prediction is favourable | group) - P(prediction is favourable), for each group; two labels only."""
    if len(cells.labels) != 2 or len(favourable) != 1:
        raise ValueError("demographic parity needs two labels, one of which is favourable.")
    chosen = cells.labels.tolist().index(favourable[0])
    sign = np.where(np.arange(2) == chosen, 1.0, -1.0)[:, None]
    within, overall = _shares_within_group(cells), cells.counts / cells.total
    made = []
    for k in _groups(cells):
        here = np.arange(len(cells.groups)) == k
        weights = sign * (np.where(here, within, 0.0) - overall)
        constant = float(within[1 - chosen, k] - overall[1 - chosen].sum())
        rows = float(cells.counts[:, k].sum())
        made.append(Quantity(DEMOGRAPHIC_PARITY, favourable[0], cells.groups.tolist()[k], rows, constant, weights))
    return made


def accuracy_parity(cells: CellTable, favourable: list[Any]) -> list[Quantity]:
    """P(correct | group) - P(correct), for each group."""
    within, overall = _shares_within_group(cells), cells.counts / cells.total
    made = []
    for k in _groups(cells):
        weights = np.where(np.arange(len(cells.groups)) == k, within, 0.0) - overall
        rows = float(cells.counts[:, k].sum())
        made.append(Quantity(ACCURACY_PARITY, None, cells.groups.tolist()[k], rows, 0.0, weights))
    return made


def accuracy(cells: CellTable, favourable: list[Any]) -> list[Quantity]:
    """P(correct): one number about all rows."""
    return [Quantity(ACCURACY, None, None, cells.total, 0.0, cells.counts / cells.total)]


NOTIONS: dict[str, Callable[[CellTable, list[Any]], list[Quantity]]] = {
    EQUALISED_ODDS: equalised_odds,
    EQUALITY_OF_OPPORTUNITY: equality_of_opportunity,
    DEMOGRAPHIC_PARITY: demographic_parity,
    ACCURACY_PARITY: accuracy_parity,
    ACCURACY: accuracy,
}


def spelled(notion: str) -> str:
    """The name of a notion as `NOTIONS` has it; American spelling is taken, too."""
    return EQUALISED_ODDS if notion == "equalized odds" else notion


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
        names = [name for name in NOTIONS if _why_not(name, cells, chosen) is None]
    else:
        asked = [notions] if isinstance(notions, str) else list(notions)
        names = [spelled(name) for name in asked]
    for name in names:
        if name not in NOTIONS:
            raise ValueError(f"notions must be among {', '.join(map(repr, NOTIONS))}; got {name!r}.")
        reason = _why_not(name, cells, chosen)
        if reason is not None:
            raise ValueError(f"{name} {reason}.")
    return [quantity for name in names for quantity in NOTIONS[name](cells, chosen)]


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


def _why_not(name: str, cells: CellTable, favourable: list[Any]) -> str | None:
    if name == DEMOGRAPHIC_PARITY and len(cells.labels) != 2:
        return "is a function of correct predictions for two labels only"
    if name == DEMOGRAPHIC_PARITY and len(favourable) != 1:
        return "needs exactly one favourable label"
    if name == EQUALITY_OF_OPPORTUNITY and not favourable:
        return "needs favourable=..., the label or labels that are a good outcome"
    return None


def _groups(cells: CellTable) -> range:
    return range(len(cells.groups))


def _within_label(notion: str, cells: CellTable, i: int, k: int) -> Quantity:
    rows, of_label = float(cells.counts[i, k]), float(cells.counts[i].sum())
    weights = np.zeros(np.shape(cells.counts))
    weights[i] = -cells.counts[i] / of_label if of_label > 0.0 else 0.0
    weights[i, k] += 1.0
    if rows <= 0.0:
        weights = np.full_like(weights, np.nan)
    return Quantity(notion, cells.labels.tolist()[i], cells.groups.tolist()[k], rows, 0.0, weights)


def _shares_within_group(cells: CellTable) -> FloatArray:
    """P(label | group); NaN for an empty group."""
    sums = cells.counts.sum(axis=0)
    return np.divide(cells.counts, sums, out=np.full(np.shape(cells.counts), np.nan), where=sums > 0.0)
