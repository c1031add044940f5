"""Differences of mean rows between groups: the directions along which a fairer model's scores must not differ."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet._common.docstrings import with_options
from discreet._common.exceptions import UtilityWarning
from discreet._common.types import FloatArray
from discreet.data.public import public_facts
from discreet.data.validation import load_features
from discreet.fairness.fairer.cell_sums import Cells, CellSums, exact_sums, learn_cells, limits_of, plan_cells
from discreet.preprocessing.base import Released, rows_and_facts

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
    data, public, budget = rows_and_facts(X, bounds, sample_weight, **promised)
    cell = cells.numbers(sensitive, y, data.rows)
    plan = plan_cells(public, budget, cells)
    with plan.booked("private_directions", ledger, dataset, random_state) as booking:
        known = learn_cells(plan, data, cell, booking.rng)
    values, share = directions_between(cells, known, limits_of(public).radius)
    names = direction_names(cells)
    for name, part in zip(names, share, strict=True):
        if part > MOSTLY_NOISE:
            warnings.warn(
                f"of the direction {name} a part of {part:.0%} may be noise; spend a larger epsilon, or declare it.",
                UtilityWarning,
                stacklevel=2,
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
