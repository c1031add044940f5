"""Summary numbers of a table of cells, as fairlearn computes them from the same predictions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from discreet._common.types import FloatArray
from discreet.fairness.cells import CellTable, favourable_labels


def demographic_parity_difference(cells: CellTable, favourable: Any = None) -> float:
    """Largest minus smallest share of favourable predictions in a group."""
    return _difference(_selection_rates(cells, favourable))


def demographic_parity_ratio(cells: CellTable, favourable: Any = None) -> float:
    """Smallest over largest share of favourable predictions in a group; NaN if there are none at all."""
    return _ratio(_selection_rates(cells, favourable))


def equalized_odds_difference(cells: CellTable, favourable: Any = None) -> float:
    """The larger one of the differences of true and of false positive rates between groups."""
    return max(_difference(rates) for rates in _positive_rates(cells, favourable))


def equalized_odds_ratio(cells: CellTable, favourable: Any = None) -> float:
    """The smaller one of the ratios of true and of false positive rates between groups; NaN if either is."""
    return float(np.min([_ratio(rates) for rates in _positive_rates(cells, favourable)]))


def accuracy_difference(cells: CellTable, favourable: Any = None) -> float:
    """Largest minus smallest accuracy of a group."""
    return _difference(_divide(cells.correct.sum(axis=0), cells.counts.sum(axis=0)))


METRICS: dict[str, Callable[..., float]] = {
    "demographic_parity_difference": demographic_parity_difference,
    "demographic_parity_ratio": demographic_parity_ratio,
    "equalized_odds_difference": equalized_odds_difference,
    "equalized_odds_ratio": equalized_odds_ratio,
    "accuracy_difference": accuracy_difference,
}


def _favourable_row(cells: CellTable, favourable: Any) -> int:
    chosen = favourable_labels(cells.labels, favourable)
    if len(cells.labels) != 2 or len(chosen) != 1:
        raise ValueError("rates of favourable predictions need two labels, one of which is favourable.")
    return int(cells.labels.tolist().index(chosen[0]))


def _selection_rates(cells: CellTable, favourable: Any) -> FloatArray:
    chosen = _favourable_row(cells, favourable)
    selected = cells.correct[chosen] + cells.counts[1 - chosen] - cells.correct[1 - chosen]
    return _divide(selected, cells.counts.sum(axis=0))


def _positive_rates(cells: CellTable, favourable: Any) -> tuple[FloatArray, FloatArray]:
    """True and false positive rates of the groups that have such rows."""
    chosen = _favourable_row(cells, favourable)
    wrong = cells.counts[1 - chosen] - cells.correct[1 - chosen]
    return _divide(cells.correct[chosen], cells.counts[chosen]), _divide(wrong, cells.counts[1 - chosen])


def _divide(part: FloatArray, whole: FloatArray) -> FloatArray:
    return part[whole > 0.0] / whole[whole > 0.0]


def _difference(rates: FloatArray) -> float:
    return float(rates.max() - rates.min()) if rates.size else float("nan")


def _ratio(rates: FloatArray) -> float:
    return float(rates.min() / rates.max()) if rates.size and rates.max() > 0.0 else float("nan")
