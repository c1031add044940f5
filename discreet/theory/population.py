"""How the excess on new rows grows with rows, columns and epsilon: rates, without constants."""

from __future__ import annotations

import math
from typing import Literal

from discreet._common.checks import number_in, one_of, whole
from discreet.theory.bound import Bound

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
