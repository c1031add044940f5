"""Which two tables count as neighbours, part of every privacy claim, and how far releases can move between them.

Only here is the factor 2 of replacement applied. Proofs: docs/guarantees/mechanisms.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Literal

Unit = Literal["row", "person"]  # what neighbouring tables differ in: one row, or a person with all of their rows
UNITS: tuple[Unit, ...] = ("row", "person")


def relation_for(relation: Relation | str, unit: str) -> str:
    """The relation, and the unit if it is not the row."""
    return f"{relation}, for whole persons" if unit == "person" else str(relation)


class Relation(StrEnum):
    """A neighbouring relation between tables.

    Attributes
    ----------
    REPLACE
        Same number of rows, one row changed arbitrarily; the number of rows is public.
    ZERO_OUT
        Same number of rows, one row turned into a null row that contributes nothing; the number of rows is public.
    ADD_REMOVE
        One row more or less; the number of rows is private, and the caller supplies a public one to divide by.

    Examples
    --------
    >>> from discreet import Relation
    >>> Relation("replace").factor, Relation("zero_out").factor
    (2, 1)
    """

    REPLACE = "replace"
    ZERO_OUT = "zero_out"
    ADD_REMOVE = "add_remove"

    @property
    def factor(self) -> int:
        """How far a sum of vectors of norm at most 1 can move: 2 when a row is replaced, else 1."""
        return 2 if self is Relation.REPLACE else 1

    @property
    def explanation(self) -> str:
        """One sentence for people who read privacy statements."""
        return _EXPLANATIONS[self]

    def explanation_for(self, unit: Unit) -> str:
        """The same sentence where neighbours differ in this unit."""
        return _EXPLANATIONS[self] if unit == "row" else _PERSON_EXPLANATIONS[self]


_EXPLANATIONS = {
    Relation.REPLACE: "two tables are neighbours if they have the same number of rows and differ in one row",
    Relation.ZERO_OUT: "two tables are neighbours if one row of one is a null row, which contributes nothing,"
    " in the other",
    Relation.ADD_REMOVE: "two tables are neighbours if one has exactly one row more than the other",
}
_PERSON_EXPLANATIONS = {
    Relation.REPLACE: "two tables are neighbours if they have the same number of persons and differ in one person, that"
    " is in any number of rows that have this person's id",
    Relation.ZERO_OUT: "two tables are neighbours if all rows of one person in one of them are null rows, which"
    " contribute nothing, in the other",
    Relation.ADD_REMOVE: "two tables are neighbours if one has exactly one person more than the other, with all rows of"
    " this person",
}


def unit_from(unit: Any) -> Unit:
    """Return the unit of this name, or a ValueError that lists the names."""
    for known in UNITS:
        if unit == known:
            return known
    raise ValueError(f"unit must be 'row' or 'person'; got {unit!r}.")


def relation_from(relation: Any) -> Relation:
    """Return the relation of this name, or a ValueError that lists the names."""
    try:
        return Relation(relation)
    except ValueError:
        allowed = ", ".join(repr(str(r)) for r in Relation)
        raise ValueError(f"relation must be one of {allowed}; got {relation!r}.") from None


@dataclass(frozen=True)
class Sensitivity:
    """How far a vector can move between neighbouring tables, in the Euclidean and in the L1 norm."""

    l2: float
    l1: float

    def __mul__(self, factor: float) -> Sensitivity:
        return Sensitivity(self.l2 * factor, self.l1 * factor)

    def rounded(self, step: float, entries: int) -> Sensitivity:
        """How far the vector, or a sum of vectors, moves when its entries are rounded to multiples of the step.

        Guarantee: rounding moves either end by at most half a step in every entry.
        """
        return Sensitivity(self.l2 + step * math.sqrt(entries), self.l1 + step * entries)


def clipped_sum(relation: Relation, dimension: int = 1) -> Sensitivity:
    """Sum over the rows of vectors clipped to Euclidean norm 1.

    Guarantee: a replaced row moves the sum by at most 2, a removed or null row by at most 1; in L1 by at
    most sqrt(dimension) times that (Cauchy-Schwarz).
    """
    return Sensitivity(float(relation.factor), relation.factor * math.sqrt(dimension))


def one_hot_counts(relation: Relation, columns: int) -> Sensitivity:
    """Histograms of several columns; each row puts one count (at most 1) into one bin of each column.

    Guarantee: replacing a row takes one count from a bin and adds one to another in every column, so the
    vector of counts moves by at most sqrt(2 columns); a removed row moves it by sqrt(columns).
    """
    return Sensitivity(math.sqrt(relation.factor * columns), float(relation.factor * columns))


def counted_rows() -> Sensitivity:
    """The number of rows with some property.

    Guarantee: one row, replaced, removed or null, changes a count by at most 1.
    """
    return Sensitivity(1.0, 1.0)


def bounded_moments(relation: Relation, columns: int) -> Sensitivity:
    """Sums of x and of x^2 for several columns with |x| <= 1, released together.

    Guarantee: with d = a - b and s = a + b, |d| + |s| <= 2, the squared move of one column is
    d^2 (1 + s^2) <= 4 and the L1 move |d| (1 + |s|) <= 9/4. Under replacement the sums of x alone move
    by as much in L2: adding x^2 does not raise the L2 sensitivity. A removed row moves each column by (1, 1) at most.
    """
    if relation is Relation.REPLACE:
        return Sensitivity(2.0 * math.sqrt(columns), 2.25 * columns)
    return Sensitivity(math.sqrt(2.0 * columns), 2.0 * columns)


def bounded_values(relation: Relation, columns: int) -> Sensitivity:
    """Sums of several columns with |x| <= 1.

    Guarantee: a replaced row moves each sum by at most 2, a removed or null row by at most 1.
    """
    return Sensitivity(relation.factor * math.sqrt(columns), float(relation.factor * columns))


def counted_values(relation: Relation, columns: int) -> Sensitivity:
    """Sums of several columns with |x| <= 1 over the rows that have a value, and the numbers of these rows.

    Guarantee: a row adds (v x, v) or (0, 0) to each column: a point of the triangle |first| <= second <= 1, in which
    two points are at most 2 apart, in L2 and in L1, and no point is farther than sqrt(2), in L1 than 2, from (0, 0).
    """
    l2 = 2.0 if relation is Relation.REPLACE else math.sqrt(2.0)
    return Sensitivity(l2 * math.sqrt(columns), 2.0 * columns)


def bounded_between(relation: Relation, low: float, high: float) -> Sensitivity:
    """The sum of one column with low <= x <= high, low <= 0 <= high.

    Guarantee: a replaced row moves the sum by at most high - low, a removed or null row by the larger of the two ends.
    """
    move = high - low if relation is Relation.REPLACE else max(high, -low)
    return Sensitivity(move, move)


def bounded_fractions(columns: int) -> Sensitivity:
    """Sums of several columns with 0 <= x <= 1.

    Guarantee: one row, replaced, removed or null, moves each sum by at most 1: no factor 2.
    """
    return Sensitivity(math.sqrt(columns), float(columns))


def histograms_and_fractions(
    relation: Relation, histograms: Sequence[float], fractions: Sequence[float]
) -> Sensitivity:
    """Histograms, and sums of columns with 0 <= x <= 1, each times a weight of its own, released together.

    Guarantee: a row adds at most 1 to one bin of each histogram, and a number in [0, 1] to each column. Replaced it
    moves a histogram of weight w by at most sqrt(2) w and a column by at most w; removed or null, both by at most w.
    """
    l2 = relation.factor * sum(w**2 for w in histograms) + sum(w**2 for w in fractions)
    return Sensitivity(math.sqrt(l2), float(relation.factor * sum(histograms) + sum(fractions)))


def grouped_sums(relation: Relation, columns: int, count_weight: float) -> Sensitivity:
    """Sums of several columns with |x| <= 1 and `count_weight` times the number of rows, group by group.

    Guarantee: a row is in at most one group and adds (v x, count_weight v) to its sums. Removed or null, it moves them
    by sqrt(columns + count_weight^2) at most. Replaced within a group it moves the columns by 2 each or the count by
    count_weight, never both; replaced by a row of another group it moves both groups: docs/guarantees/fair-models.md.
    """
    l2, l1 = columns + count_weight**2, columns + count_weight
    if relation is Relation.REPLACE:
        return Sensitivity(math.sqrt(max(4.0 * columns, 2.0 * l2)), 2.0 * l1)
    return Sensitivity(math.sqrt(l2), float(l1))


def rank_error(relation: Relation, quantile: float) -> Sensitivity:
    """How far (weight below x) - quantile * (all weight) can move, at any x.

    Guarantee: a removed or null row takes away at most 1 - quantile (if below x) or quantile (else); a replaced
    row may go from one to the other, which is at most 1. The number of rows need not be known.
    """
    move = 1.0 if relation is Relation.REPLACE else max(quantile, 1.0 - quantile)
    return Sensitivity(move, move)


def concordant_pairs(relation: Relation) -> Sensitivity:
    """Concordant less discordant pairs of rows in a column, over the number of rows; the largest of several such.

    Guarantee: a row is in n - 1 pairs, each of which adds a number in [-1, 1] before the division by n. Replaced it
    moves the score by at most 2 (n - 1) / n, null by (n - 1) / n; added or removed, where n itself changes, by at most
    3/2: docs/guarantees/screened.md.
    """
    move = {Relation.REPLACE: 2.0, Relation.ZERO_OUT: 1.0, Relation.ADD_REMOVE: 1.5}[relation]
    return Sensitivity(move, move)


def outer_products(relation: Relation, columns: int) -> Sensitivity:
    """Sum of x x' over rows of Euclidean norm at most 1, as a symmetric matrix in the Frobenius norm.

    Guarantee: |x x' - y y'|^2 = |x|^4 + |y|^4 - 2 (x . y)^2 <= 2 when a row is replaced; a removed or null row
    moves the sum by |x|^2 <= 1. Noise for it must be symmetric: docs/guarantees/newton.md.
    """
    l2 = math.sqrt(relation.factor)
    return Sensitivity(l2, l2 * math.sqrt(columns * (columns + 1) / 2))
