"""Orders of growth, without constants: what no private algorithm can beat, and what the best ones lose on new rows."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from discreet._common.checks import at_least_zero, number_in, one_of, whole
from discreet._common.types import FloatArray
from discreet.privacy.budget import Budget
from discreet.theory.bound import SMALL_EPSILON, Bound, epsilon_and_delta
from discreet.theory.steps import Numbers, per_coordinate

SUBSET = 75  # every subset of a 75th of the coordinates must carry its share of the squared Lipschitz constants
SHARE = 0.5  # of what it would carry if all constants were equal: the theorem asks for "a constant fraction"


def lower_bound(
    rows: int,
    columns: int,
    budget: Budget,
    *,
    lipschitz: float,
    radius: float | None = None,
    strong_convexity: float = 0.0,
) -> Bound:
    """Return the order below which no private algorithm's excess falls, on the worst table.

    Parameters
    ----------
    rows, columns : int
        Shape of the table.
    budget : Budget
        Epsilon of at most 1; delta is 0, or below 1/rows.
    lipschitz : float
        Largest norm of the gradient of a row's loss.
    radius : float, optional
        Radius of the set in which the optimum lies, for convex losses.
    strong_convexity : float, default=0
        If positive: the bound for strongly convex losses.

    Returns
    -------
    Bound

    Examples
    --------
    >>> from discreet import Budget
    >>> from discreet.theory import lower_bound
    >>> round(lower_bound(10_000, 10, Budget(1.0, 1e-6), lipschitz=1.0, radius=1.0).value, 7)
    0.0003162
    """
    rows, columns = whole("rows", rows, least=1), whole("columns", columns, least=1)
    lipschitz = at_least_zero("lipschitz", lipschitz)
    epsilon, delta = epsilon_and_delta(budget, SMALL_EPSILON)
    _check_delta(delta, rows)
    power = columns if delta == 0.0 else math.sqrt(columns)
    rate = min(1.0, power / (rows * epsilon))
    if strong_convexity > 0.0:
        value, kind = lipschitz**2 / strong_convexity * rate**2, "strongly convex"
    else:
        value, kind = lipschitz * _needed(radius) * rate, "convex"
    return _order(value, f"worst table, {kind} losses", "Bassily, Smith and Thakurta (2014), theorems 5.2 to 5.5")


def coordinate_lower_bound(
    rows: int,
    budget: Budget,
    *,
    lipschitz: Numbers,
    radius: float | None = None,
    strong_convexity: float = 0.0,
) -> Bound:
    """Return the order below which no private algorithm's excess falls, for losses with one constant per coordinate.

    Parameters
    ----------
    rows : int
        Number of rows.
    budget : Budget
        Epsilon and delta, which is above 0 and below 1/rows.
    lipschitz : sequence of float
        For each coordinate, the largest size of a row's partial derivative. Where few coordinates carry nearly all of
        the sum of squares, the bound is smaller by the ratio of the smallest to the largest (squared for strongly
        convex losses).
    radius : float, optional
        Norm of the optimum, for convex losses.
    strong_convexity : float, default=0
        If positive: the bound for strongly convex losses.

    Returns
    -------
    Bound
        `settings["evenness"]` is the factor that uneven constants cost; 1 where the condition of the theorem holds.

    Examples
    --------
    >>> from discreet import Budget
    >>> from discreet.theory import coordinate_lower_bound
    >>> bound = coordinate_lower_bound(10_000, Budget(1.0, 1e-6), lipschitz=[1.0, 2.0, 2.0], radius=1.0)
    >>> round(bound.value, 7), bound.settings["evenness"]
    (0.0002598, 0.5)
    """
    rows = whole("rows", rows, least=1)
    constants = per_coordinate("lipschitz", lipschitz)
    epsilon, delta = epsilon_and_delta(budget)
    if delta == 0.0:
        raise ValueError("this bound is for budgets with delta > 0; lower_bound covers delta = 0.")
    _check_delta(delta, rows)
    norm, rate = float(np.linalg.norm(constants)), math.sqrt(constants.size) / (rows * epsilon)
    even = is_even(constants)
    ratio = 1.0 if even else float(constants.min() / constants.max())
    if strong_convexity > 0.0:
        strong_convexity = number_in("strong_convexity", strong_convexity, 0.0)
        evenness = ratio**2
        value, kind = evenness * norm**2 / strong_convexity * min(1.0, rate**2), "strongly convex"
    else:
        evenness = ratio
        value, kind = evenness * norm * _needed(radius) * min(1.0, rate), "convex"
    source = "Mangold's thesis, theorem 4.4.1"
    return _order(value, f"worst table, {kind} losses, separable penalties", source, evenness=evenness)


def is_even(constants: FloatArray) -> bool:
    """Whether every subset of a 75th of the coordinates carries at least half of its share of the sum of squares."""
    squares = np.sort(np.square(constants))
    count = math.ceil(squares.size / SUBSET)
    return bool(squares[:count].sum() >= SHARE * count / squares.size * squares.sum())


def _needed(radius: float | None) -> float:
    if radius is None:
        raise ValueError("radius is needed for convex losses: without it the error has no bound.")
    return at_least_zero("radius", radius)


def _check_delta(delta: float, rows: int) -> None:
    if delta >= 1.0 / rows:
        raise ValueError(f"this bound is stated for delta below 1/rows = {1.0 / rows:g}; got {delta:g}.")


def _order(value: float, assumption: str, source: str, **settings: float) -> Bound:
    quantity = "expected excess of the objective of any private algorithm"
    return Bound(value, quantity, source, False, (assumption,), settings)


SOURCE = "Thakurta's chapter, section 6.5.2"


def population_bound(
    rows: int,
    columns: int,
    epsilon: float,
    delta: float,
    *,
    lipschitz: float = 1.0,
    diameter: float = 1.0,
    convexity: float | None = None,
    geometry: Literal["l2", "l1"] = "l2",
) -> Bound:
    """Show how the excess of the expected loss of a new row grows, for the best private methods.

    The first part is the price of a finite sample, the second that of privacy. Constants are unknown: the value bounds
    nothing.

    Parameters
    ----------
    rows, columns : int
    epsilon, delta : float
    lipschitz : float, default=1
        Bound on the norm of a row's gradient: the largest entry for "l1".
    diameter : float, default=1
        Of the set of weights, in the norm of the geometry.
    convexity : float, optional
        Strong convexity of the loss; only for "l2".
    geometry : {"l2", "l1"}
        Euclidean, or an L1 ball.

    Returns
    -------
    Bound
        Not proved: an order only.

    Examples
    --------
    >>> from discreet.theory import population_bound
    >>> print(population_bound(10_000, 10, 1.0, 1e-6))
    expected excess of the loss of a new row: order of 0.01118, constant unknown (Thakurta's chapter, section 6.5.2)
    """
    n, p = whole("rows", rows, least=1), whole("columns", columns, least=1)
    epsilon, delta = number_in("epsilon", epsilon, 0.0, above=True), number_in("delta", delta, 0.0, 0.5, above=True)
    size = number_in("lipschitz", lipschitz, 0.0) * number_in("diameter", diameter, 0.0)
    one_of("geometry", geometry, ("l2", "l1"))
    signal, tail = n * epsilon, math.log(1.0 / delta)
    if geometry == "l1":
        if convexity is not None:
            raise ValueError("no rate for strongly convex losses is known in the l1 geometry; leave convexity out.")
        log = math.log(max(p, 2))
        value = size * (math.sqrt(log / n) + math.sqrt(log * tail) / signal ** (2.0 / 3.0))
    elif convexity is None:
        value = size * (1.0 / math.sqrt(n) + math.sqrt(p * tail) / signal)
    else:
        value = lipschitz**2 / number_in("convexity", convexity, 0.0, above=True) * (1.0 / n + p * tail / signal**2)
    rules = ("the rows are drawn independently from one distribution", "the loss is convex and Lipschitz")
    return Bound(value, "expected excess of the loss of a new row", SOURCE, proved=False, assumptions=rules)
