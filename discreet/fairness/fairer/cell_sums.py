"""Sums of rows and counts of rows by group and label: the one release behind private directions.

Proof: docs/guarantees/fair-models.md.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet._common.types import FloatArray, IndexArray
from discreet.data.rows import Limits, limits_between, moment_sums, on_term_grid
from discreet.fairness.notions import NOTIONS, notion_of
from discreet.privacy import mechanisms
from discreet.privacy.relation import Relation
from discreet.privacy.release import WHOLE, ReleasePlan

if TYPE_CHECKING:
    from discreet.data.public import Public
    from discreet.data.rows import Data
    from discreet.privacy.budget import Budget
    from discreet.privacy.random.generator import RandomGenerator


@dataclass(frozen=True)
class Cells:
    """The declared groups, each whole (`labels` is empty) or cut by the declared labels."""

    groups: tuple[Hashable, ...]
    labels: tuple[Hashable, ...] = ()

    @classmethod
    def of(cls, notion: str, groups: Any, favourable: Any, classes: Any) -> Cells:
        """The cells whose mean rows a notion of fairness compares."""
        comparing = [name for name, each in NOTIONS.items() if each.compares_predictions]
        known = notion_of(notion, comparing, "notion must be one of")
        declared = _declared("groups", groups)
        if known.labels == "together":
            return cls(declared)
        if known.labels == "each":
            return cls(declared, _declared("classes", classes))
        if favourable is None or not _can_be_met(favourable):
            raise ValueError(f"{known.name} needs favourable=, the label that people hope for; got {favourable!r}.")
        return cls(declared, (favourable,))

    @property
    def count(self) -> int:
        return len(self.groups) * max(1, len(self.labels))

    def numbers(self, sensitive: Any, y: Any, rows: int) -> IndexArray:
        """The number of each row's cell, label by label; -1 for a row whose group or label was not declared.

        Guarantee: the number of a row depends on its own group and label alone.
        """
        group = _places("sensitive", sensitive, self.groups, rows)
        if not self.labels:
            return group
        if y is None:
            raise ValueError("y is missing: this notion compares the rows of one label.")
        label = _places("y", y, self.labels, rows)
        return np.where((group < 0) | (label < 0), -1, label * len(self.groups) + group)


@dataclass(frozen=True, eq=False)
class CellSums:
    """What is known of the cells: sums of rows in units of the ranges' radii, numbers of rows, and their noise."""

    sums: FloatArray
    counts: FloatArray
    sum_deviation: float = 0.0
    count_deviation: float = 0.0


def plan_cells(public: Public, budget: Budget, cells: Cells) -> ReleasePlan:
    """One joint release of the sums and the counts of all cells."""
    return ReleasePlan("cells", public, budget, {"mechanism": mechanisms.additive(budget, WHOLE)}, {"cells": cells})


def learn_cells(plan: ReleasePlan, data: Data, cell: IndexArray, rng: RandomGenerator) -> CellSums:
    """The sums and counts with noise.

    Guarantee: costs exactly the event of the plan.
    """
    public, noise = plan.public, plan.mechanism
    weight = count_weight(public.relation, public.columns, isinstance(noise, mechanisms.Laplace))
    sensitivity = mechanisms.grouped_sums(public.relation, public.columns, weight)
    sums, counts = exact_sums(data, cell, plan.cells.count, limits_of(public), noise.multiplier > 0.0)
    found = noise.release(rng, np.column_stack([sums, weight * counts]), sensitivity)
    deviation = noise.deviation(sensitivity)
    return CellSums(found[:, :-1], found[:, -1] / weight, deviation, deviation / weight)


def count_weight(relation: Relation, columns: int, pure: bool) -> float:
    """By what counts are multiplied before noise is added: a power of two, so that the product is exact."""
    power = 1 / 3 if pure else 1 / 2 if relation is Relation.REPLACE else 1 / 4
    return 2.0 ** math.floor(power * math.log2(columns))


def limits_of(public: Public) -> Limits:
    return limits_between(*public.complete_bounds(), public.sparse)


def exact_sums(
    data: Data, cell: IndexArray, count: int, limits: Limits, rounded: bool
) -> tuple[FloatArray, FloatArray]:
    """The sums of the rows of each cell, in units of the radii, and the weights of these rows. Not private."""
    weight = np.ones(data.rows) if data.weight is None else data.weight
    on_grid = on_term_grid if rounded else np.asarray
    columns = slice(0, data.columns)
    sums, counts = [], []
    for number in range(count):
        inside = np.where(cell == number, weight, 0.0)
        sums.append(moment_sums(replace(data, weight=inside), limits, columns, rounded=rounded)[0])
        counts.append(on_grid(inside).sum())
    return np.array(sums), np.array(counts)


def _declared(name: str, values: Any) -> tuple[Hashable, ...]:
    """At least two different values, as a tuple of plain Python values."""
    listed = values.tolist() if hasattr(values, "tolist") else values
    usable = isinstance(listed, Sequence) and not isinstance(listed, str | bytes) and all(map(_can_be_met, listed))
    found = tuple(dict.fromkeys(listed)) if usable else ()
    if len(found) < 2 or len(found) != len(listed):
        raise ValueError(f"{name} must list at least two different values, from public knowledge; got {values!r}.")
    return found


def _can_be_met(value: Any) -> bool:
    """Whether a row's value can be equal to this one: NaN equals nothing, and lists are no labels."""
    return _has_hash(value) and not (isinstance(value, float) and math.isnan(value))


def _has_hash(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


def _places(name: str, values: Any, declared: tuple[Hashable, ...], rows: int) -> IndexArray:
    """The place of each value in the list, -1 where it is not there."""
    listed = values.tolist() if hasattr(values, "tolist") else list(values)
    if len(listed) != rows or all(isinstance(value, list) for value in listed):
        raise ValueError(f"{name} must have one value for each of the {rows} rows of X.")
    place = {value: number for number, value in enumerate(declared)}
    # A value that cannot be looked up counts nowhere, too: an error would tell of that one row.
    found = [place.get(value, -1) if _has_hash(value) else -1 for value in listed]
    return np.array(found, dtype=np.int64)
