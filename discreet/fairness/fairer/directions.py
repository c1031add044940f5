"""Differences of mean rows between groups: the directions along which a fairer model's scores must not differ.

Behind private ones is one release: sums of rows and numbers of rows by group and label. Proof:
docs/guarantees/fair-models.md.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from discreet._common.callers import warn
from discreet._common.docstrings import with_options
from discreet._common.exceptions import UtilityWarning
from discreet._common.types import FloatArray, IndexArray
from discreet.data.public import Public, public_facts
from discreet.data.rows import Data, Limits, limits_between, moment_sums, on_term_grid
from discreet.data.validation import load_features
from discreet.fairness.notions import NOTIONS, notion_of
from discreet.preprocessing.base import Released, rows_and_facts
from discreet.privacy import mechanisms
from discreet.privacy.budget import Budget
from discreet.privacy.random.generator import RandomGenerator
from discreet.privacy.relation import Relation
from discreet.privacy.release import WHOLE, ReleasePlan


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


FLOOR_DEVIATIONS = 2.0  # of the noise of a count: a smaller count says only "few"
MOSTLY_NOISE = 0.5  # of a direction's squared length


@dataclass(frozen=True, eq=False)
class ReleasedDirections(Released):
    """Directions between groups that were released, with their guarantee.

    Attributes
    ----------
    values : ndarray of shape (n_directions, n_features)
        One direction per row, in the units of the columns.
    guarantee : Guarantee
        What is promised about them.
    weighted_ : bool
        Whether sample weights were given.
    names : tuple of str
        What each direction compares.
    noise_share : ndarray of shape (n_directions,)
        The part of each direction's squared length that noise alone would give: near 0 it can be relied on, near 1 it
        is noise.
    """

    names: tuple[str, ...] = ()
    noise_share: FloatArray | None = None


def mean_differences(
    X: Any,
    sensitive: Any,
    y: Any = None,
    *,
    groups: Any,
    notion: str = "demographic parity",
    favourable: Any = None,
    classes: Any = None,
    sample_weight: Any = None,
) -> FloatArray:
    """Return the differences of mean rows between groups of a public table. Not private: nothing is added.

    Parameters
    ----------
    X : array or table of shape (n_samples, n_features)
        Public rows.
    sensitive : array of shape (n_samples,)
        The group of each row.
    y : array of shape (n_samples,), optional
        Labels; demographic parity does not need them.
    groups, notion, favourable, classes
        As in `private_directions`.
    sample_weight : array of shape (n_samples,), optional
        Weights between 0 and 1.

    Returns
    -------
    ndarray of shape (n_directions, n_features)
        The directions.

    Examples
    --------
    >>> from discreet.fairness import mean_differences
    >>> mean_differences([[1.0, 5.0], [0.0, 7.0]], ["a", "b"], groups=["a", "b"])
    array([[ 1., -2.]])
    """
    cells = Cells.of(notion, groups, favourable, classes)
    data = load_features(X, sample_weight)
    cell = cells.numbers(sensitive, y, data.rows)
    entries = data.X.data if data.sparse else data.X
    largest = max(float(np.abs(entries).max(initial=0.0)), 1e-300)
    limits = limits_of(public_facts(data, bounds=(-largest, largest)))
    sums, counts = exact_sums(data, cell, cells.count, limits, rounded=False)
    if (counts == 0.0).any():
        raise ValueError("a declared group has no row (of a declared label) in this table.")
    return directions_between(cells, CellSums(sums, counts), limits.radius)[0]


@with_options
def private_directions(
    X: Any,
    y: Any,
    sensitive: Any,
    bounds: Any,
    epsilon: Any = 1.0,
    delta: float | None = None,
    *,
    groups: Any,
    notion: str = "demographic parity",
    favourable: Any = None,
    classes: Any = None,
    relation: Any = "replace",
    public_n: int | None = None,
    sample_weight: Any = None,
    ledger: Any = None,
    dataset: str | None = None,
    random_state: Any = None,
) -> ReleasedDirections:
    """Return the differences of mean rows between groups, with noise: directions for `FairFeatures`.

    Rows are clipped to public bounds; the sums and numbers of the rows of each group (and label) are released together,
    and divided. With two groups there is one direction per label, the first group minus the second; with more, there is
    one per group and label, that group minus the other declared groups together.

    Guarantee: the directions are differentially private as the result's `guarantee` states. Groups and labels are as
    private as the rest of a row.

    Parameters
    ----------
    X : array, sparse matrix or table of shape (n_samples, n_features)
        The private rows.
    y : array of shape (n_samples,) or None
        Labels; demographic parity does not need them.
    sensitive : array of shape (n_samples,)
        The group of each row. Rows of a group that is not declared count nowhere.
    bounds : tuple (low, high)
        Public limits of the columns, two numbers or two sequences with one number per column.
    epsilon : float or Budget, default=1.0
        Privacy budget.
    groups : sequence
        The groups to compare, from public knowledge; at least two.
    notion : {"demographic parity", "equality of opportunity", "equalised odds"}, default="demographic parity"
        Which rows are compared: all; those whose label is `favourable`; or those of each label of `classes` in turn.
    favourable : optional
        The label that people hope for, for equality of opportunity.
    classes : sequence, optional
        The labels of y, for equalised odds.

    Returns
    -------
    ReleasedDirections
        `values` has one direction per row, `guarantee` states the promise.

    Examples
    --------
    >>> import numpy as np
    >>> from discreet.fairness import private_directions
    >>> rng = np.random.default_rng(0)
    >>> group = rng.choice(["a", "b"], 20_000)
    >>> hours = rng.uniform(30.0, 40.0, (20_000, 1)) + 5.0 * (group == "a")[:, None]
    >>> found = private_directions(hours, None, group, bounds=(0.0, 60.0), groups=["a", "b"], random_state=0)
    >>> found.values.round(), found.names  # a seed, so that this example repeats; leave it out
    (array([[5.]]), ("'a' minus 'b'",))
    """
    cells = Cells.of(notion, groups, favourable, classes)
    promised = {"epsilon": epsilon, "delta": delta, "relation": relation, "public_n": public_n}
    table, public, budget = rows_and_facts(X, bounds, sample_weight, **promised)
    data: Any = table.rows
    cell = cells.numbers(sensitive, y, data.rows)
    plan = plan_cells(public, budget, cells)
    with plan.booked("private_directions", ledger, dataset, random_state) as booking:
        known = learn_cells(plan, data, cell, booking.rng)
    values, share = directions_between(cells, known, limits_of(public).radius)
    names = direction_names(cells)
    for name, part in zip(names, share, strict=True):
        if part > MOSTLY_NOISE:
            warn(
                f"of the direction {name} a part of {part:.0%} may be noise; spend a larger epsilon, or declare it.",
                UtilityWarning,
            )
    return ReleasedDirections(values, booking.guarantee, data.weight is not None, names, share)


def directions_between(cells: Cells, known: CellSums, radius: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The directions, and the part of their squared lengths that noise alone would give; post-processing."""
    size = len(cells.groups)
    compared = [0] if size == 2 else range(size)
    found = []
    for start in range(0, cells.count, size):
        for group in compared:
            others = [start + other for other in range(size) if other != group]
            found.append(_difference(known, [start + group], others, radius))
    values, variances = (np.array(part) for part in zip(*found, strict=True))
    squares = (values**2).sum(axis=1)
    share = np.divide(variances, squares, out=np.ones_like(squares), where=squares > 0.0)
    return values, np.minimum(share, 1.0) * (variances > 0.0)


def _difference(known: CellSums, cell: list[int], others: list[int], radius: FloatArray) -> tuple[FloatArray, float]:
    """The mean of one cell minus that of others together, and the squared length of the noise on it."""
    total, variance = np.zeros(radius.size), 0.0
    for sign, part in ((1.0, cell), (-1.0, others)):
        floor = max(FLOOR_DEVIATIONS * known.count_deviation, 1.0 if known.count_deviation > 0.0 else 0.0)
        count = max(float(known.counts[part].sum()), floor)
        mean = np.clip(known.sums[part].sum(axis=0) / count, -1.0, 1.0)
        total += sign * radius * mean
        noise = known.sum_deviation**2 + (known.count_deviation * mean) ** 2
        variance += len(part) * float(radius**2 @ noise) / count**2
    return total, variance


def direction_names(cells: Cells) -> tuple[str, ...]:
    """What each direction compares, in their order."""
    first, second = cells.groups[0], cells.groups[1]
    two = len(cells.groups) == 2
    pairs = [f"{first!r} minus {second!r}"] if two else [f"{group!r} minus the others" for group in cells.groups]
    return tuple(f"{pair} where y is {label!r}" for label in cells.labels for pair in pairs) or tuple(pairs)
