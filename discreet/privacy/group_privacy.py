"""What a promise for one row means for several rows, and under another neighbouring relation.

Theorems and proofs: docs/guarantees/conversions.md.
"""

from __future__ import annotations

import math

from discreet._common.checks import whole
from discreet._common.rounding import UP, product_above
from discreet.privacy.budget import Budget, Promise, Renyi
from discreet.privacy.relation import Relation, relation_from


def group(promise: Promise, rows: int) -> Promise:
    """Return what a promise for one row means for a person, or a household, with several rows.

    Guarantee: the returned promise holds for tables that differ in at most so many rows.

    Parameters
    ----------
    promise : Budget or Renyi
        What holds for tables that differ in one row.
    rows : int
        How many rows the group has.

    Returns
    -------
    Budget or Renyi
        In the same definition; of Renyi DP, at a smaller order.

    Examples
    --------
    >>> from discreet import Budget
    >>> from discreet.privacy.conversions import group
    >>> print(group(Budget(0.5, 1e-8), 4))
    (epsilon = 2, delta = 9.84869e-08)
    >>> print(group(Budget.gdp(0.2), 3))
    (mu = 0.6, Gaussian DP)
    """
    rows = whole("rows", rows, least=1)
    if rows == 1:
        return promise
    if isinstance(promise, Renyi):
        return _renyi_group(promise, rows)
    if promise.rho is not None:
        return Budget.zcdp(product_above(rows, rows, promise.rho))
    if promise.mu is not None:
        return Budget.gdp(product_above(rows, promise.mu))
    assert promise.epsilon is not None
    if not promise.delta:
        return Budget.pure(product_above(rows, promise.epsilon))
    return _approximate_group(promise.epsilon, promise.delta, rows)


def change_relation(promise: Promise, before: Relation | str, after: Relation | str) -> Promise:
    """Return what a promise under one neighbouring relation means under another one.

    To replace a row is to remove one and to add one, or to empty one and to fill it: a group of two. A plan made for
    the relation itself is never worse, and often better, since its sensitivity is known.

    Guarantee: the returned promise holds under `after`.

    Parameters
    ----------
    promise : Budget or Renyi
    before, after : Relation or str
        Only from "add_remove" or "zero_out" to "replace" does anything follow.

    Returns
    -------
    Budget or Renyi

    Examples
    --------
    >>> from discreet import Budget
    >>> from discreet.privacy.conversions import change_relation
    >>> print(change_relation(Budget(1.0, 1e-6), "add_remove", "replace"))
    (epsilon = 2, delta = 3.71828e-06)
    """
    first, second = relation_from(before), relation_from(after)
    if first is second:
        return promise
    if second is not Relation.REPLACE:
        raise ValueError(
            f"nothing follows from {first} for {second}: a promise under replace is about tables with equally many "
            "rows of people, and the number of rows, or a null row, may be public under one relation only."
        )
    return group(promise, 2)


def _approximate_group(epsilon: float, delta: float, rows: int) -> Budget:
    """The sum of delta e^(i epsilon), i from 0 to rows - 1; by logarithms, as e^(i epsilon) alone may be too large."""
    together = product_above(rows, epsilon)
    shrink = math.expm1(-together) / math.expm1(-epsilon)
    exponent = product_above(rows - 1, epsilon) + math.log(delta) + math.log(shrink)
    if exponent >= 0.0:
        raise ValueError(f"{Budget(epsilon, delta)} says nothing about {rows} rows: delta would be 1 or more.")
    return Budget(together, min(math.nextafter(math.exp(exponent) * UP, 1.0), math.nextafter(1.0, 0.0)))


def _renyi_group(promise: Renyi, rows: int) -> Renyi:
    """Mironov (2017), on group privacy: twice the rows for half the order and three times the divergence."""
    doublings = (rows - 1).bit_length()
    order = math.ldexp(promise.order, -doublings)
    if order < 2.0:
        raise ValueError(
            f"{promise} says nothing about {rows} rows: its order must be at least {2 ** (doublings + 1)}."
        )
    return Renyi(order, product_above(3**doublings, promise.epsilon))
