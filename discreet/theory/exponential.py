"""How good a draw from the exponential mechanism is: on a convex set, or among finitely many candidates.

Theorem and proof: docs/guarantees/utility.md, Theorem S8.
"""

from __future__ import annotations

import math
from typing import Literal

from discreet._common.checks import number_in, one_of, whole
from discreet.theory.bound import Bound
from discreet.theory.selection_error import SelectionError

SOURCE = "docs/guarantees/utility.md, Theorem S8; Thakurta's chapter, (6.15), has a larger constant"


def exponential_bound(
    rate: float,
    *,
    columns: int | None = None,
    candidates: int | None = None,
    covering: float = 0.0,
    objective: Literal["mean", "sum"] = "sum",
    failure: float | None = None,
) -> Bound:
    """Bound the excess of the loss of one draw with probability proportional to exp(-rate * loss).

    Parameters
    ----------
    rate : float
        c, what the loss is multiplied by.
    columns : int, optional
        For a density on a convex, bounded set of this dimension and a convex loss.
    candidates : int, optional
        For a draw from this many candidates, any loss. Give one of the two.
    covering : float, default=0
        With candidates: by how much the best of them may exceed the optimum, n L h for a sum of n losses with Lipschitz
        constant L and candidates within distance h of every point.
    objective : {"sum", "mean"}
        Which loss the rate multiplies and the bound is about.
    failure : float, optional
        Bound what is exceeded with at most this probability, instead of the expectation.

    Returns
    -------
    Bound
        For a convex set, `settings["printed"]` is the larger bound of the literature, (4/c)((p+1) ln 3 + t) with
        t = ln(1/failure).

    Examples
    --------
    >>> from discreet.theory import exponential_bound
    >>> exponential_bound(0.1, columns=2).value
    20.0
    >>> bound = exponential_bound(0.1, columns=2, failure=0.01)
    >>> round(bound.value, 1), round(bound.settings["printed"], 1)
    (97.8, 316.0)
    """
    rate, covering = number_in("rate", rate, 0.0, above=True), number_in("covering", covering, 0.0)
    one_of("objective", objective, ("mean", "sum"))
    if (columns is None) == (candidates is None):
        raise ValueError("give columns (a convex set) or candidates (a finite list), and not both.")
    settings, assumptions = {"rate": rate}, ["the draw is exact"]
    if candidates is not None:
        error = SelectionError(1.0 / rate, whole("candidates", candidates, least=1))
        value = covering + (error.mean if failure is None else error.quantile(failure))
        where = f"over {candidates} candidates"
    else:
        if covering:
            raise ValueError("covering belongs to candidates; a density on the whole set has none.")
        p = whole("columns", columns, least=1)
        value = p / rate if failure is None else _gamma_tail(p, failure) / rate
        where = "over the set"
        assumptions.append("loss and set are convex, and the set is bounded")
        if failure is not None:
            settings["printed"] = 4.0 / rate * ((p + 1) * math.log(3.0) + math.log(1.0 / failure))
    return Bound(
        value,
        f"{'excess' if failure else 'expected excess'} of the {objective} of the losses {where}",
        SOURCE,
        assumptions=tuple(assumptions),
        settings=settings,
        probability=None if failure is None else 1.0 - failure,
    )


def _gamma_tail(shape: int, failure: float) -> float:
    """The x >= shape with (x / shape)^shape e^(shape - x) = failure: Chernoff's bound on a Gamma variable."""
    from scipy.optimize import brentq

    wanted = math.log(1.0 / number_in("failure", failure, 0.0, 1.0, above=True))
    high = 2.0 * (shape + wanted)  # ln(x / shape) <= x / (2 shape) + ln 2 - 1 makes it enough

    def missing(x: float) -> float:
        return x - shape - shape * math.log(x / shape) - wanted

    while missing(high) < 0.0:
        high *= 2.0
    return float(brentq(missing, shape, high)) * (1.0 + 1e-12) if wanted > 0.0 else float(shape)
