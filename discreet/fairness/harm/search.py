"""The smallest epsilon, or the fewest rows, with which noise does no more harm than a bound. No row is read."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from discreet._common.checks import number_in, one_of
from discreet.fairness.harm.at_plan import ContradictoryMarginsError, HarmQuestion
from discreet.fairness.harm.result import HarmAnswer, Target

SMALLEST, LARGEST = 1e-3, 1e3  # epsilons that are searched
FEWEST_ROWS, MOST_ROWS = 100, 10**10
PER_DECADE = 4  # points of the grid on which a search begins
PRECISE = 1e-4  # relative precision of an epsilon that is found


def epsilon_for_harm(
    estimator: Any,
    rows: int,
    columns: int,
    groups: Mapping[str, int],
    *,
    at_most: float,
    of: Target = "groups",
    **question: Any,
) -> HarmAnswer:
    """Return the smallest epsilon with which the noise adds no more unfairness than a bound. No row is read.

    Parameters
    ----------
    estimator, rows, columns, groups
        As for `harm_of`; the estimator's own epsilon does not matter.
    at_most : float
        The most that the noise may change.
    of : {"groups", "aggregate"}
        Whether that is for every group, or for the mean over groups.
    **question
        `margins` and the other keywords of `harm_of`.

    Returns
    -------
    HarmAnswer
        With `epsilon`, `delta` and the `harm` there. If no epsilon up to 1000 is enough, `reachable` is False.

    Examples
    --------
    >>> from discreet import LogisticRegression
    >>> from discreet.fairness import MarginDensity, epsilon_for_harm
    >>> from discreet.solvers import SOLVERS
    >>> model = LogisticRegression(solver=SOLVERS["output-perturbation"](ridge=0.01, row_norm=1.0))
    >>> groups = {"a": 36_000, "b": 9_000}
    >>> answer = epsilon_for_harm(model, 10**6, 10, groups, at_most=0.02, margins=MarginDensity(0.3))
    >>> answer.reachable, answer.harm.value() <= 0.02
    (True, True)
    """
    asked = HarmQuestion(columns, groups, **question)
    allowed = _check_target(at_most, of)

    def holds(epsilon: float) -> bool:
        return _keeps(lambda: asked.at(estimator, rows, epsilon).value(of), allowed)

    decades = round(math.log10(LARGEST / SMALLEST))
    grid = [float(f"{value:.6g}") for value in np.geomspace(LARGEST, SMALLEST, PER_DECADE * decades + 1)]
    best, fails = _last_that_holds(grid, holds)
    if best is None:
        harm = asked.at(estimator, rows, LARGEST)
        note = f"even at epsilon {LARGEST:g} the change is {harm.value(of):.3g}: use more rows, or expect less."
        return HarmAnswer(allowed, of, "epsilon", False, harm, note)
    if fails is None:
        note = f"already at epsilon {SMALLEST:g}, the smallest that is searched: this bound asks for nothing."
        return HarmAnswer(allowed, of, "epsilon", True, asked.at(estimator, rows, SMALLEST), note)
    while best > fails * (1.0 + PRECISE):
        middle = math.sqrt(best * fails)
        best, fails = (middle, fails) if holds(middle) else (best, middle)
    note = f"epsilon {best:.3g} promises little; see docs/statements.md." if best > 10.0 else ""
    return HarmAnswer(allowed, of, "epsilon", True, asked.at(estimator, rows, best), note)


def rows_for_harm(
    estimator: Any, columns: int, groups: Mapping[str, int], *, at_most: float, of: Target = "groups", **question: Any
) -> HarmAnswer:
    """Return how many training rows keep the harm below a bound, at the estimator's epsilon. No row is read.

    Parameters
    ----------
    estimator, columns, groups, at_most, of, **question
        As for `epsilon_for_harm`; `groups` stays as it is.

    Returns
    -------
    HarmAnswer
        With `rows` and the `harm` there. If 10^10 rows are not enough, `reachable` is False.

    Examples
    --------
    >>> from discreet import LogisticRegression
    >>> from discreet.fairness import NormalMargins, rows_for_harm
    >>> model = LogisticRegression(epsilon=1.0, solver="newton")
    >>> groups = {"a": 4_000, "b": 1_000}
    >>> answer = rows_for_harm(model, 10, groups, at_most=0.005, margins=NormalMargins(), mode="expected")
    >>> 1_000 < answer.rows < 200_000
    True
    """
    asked = HarmQuestion(columns, groups, **question)
    allowed = _check_target(at_most, of)

    def holds(rows: int) -> bool:
        return _keeps(lambda: asked.at(estimator, rows).value(of), allowed)

    decades = round(math.log10(MOST_ROWS / FEWEST_ROWS))
    grid = [round(value) for value in np.geomspace(MOST_ROWS, FEWEST_ROWS, PER_DECADE * decades + 1)]
    best, fails = _last_that_holds(grid, holds)
    if best is None:
        harm = asked.at(estimator, MOST_ROWS)
        note = f"even with {MOST_ROWS:.0e} rows the change is {harm.value(of):.3g}: use a larger epsilon."
        return HarmAnswer(allowed, of, "rows", False, harm, note)
    while fails is not None and best - fails > 1:
        middle = (best + fails) // 2
        best, fails = (middle, fails) if holds(middle) else (best, middle)
    note = f"already {FEWEST_ROWS} rows, the fewest that are searched." if fails is None else ""
    return HarmAnswer(allowed, of, "rows", True, asked.at(estimator, best), note)


def _last_that_holds(grid: list[Any], holds: Callable[[Any], bool]) -> tuple[Any, Any]:
    """The last of the first values that all hold, and the value after it; None where there is none."""
    best = None
    for value in grid:
        if not holds(value):
            return best, value
        best = value
    return best, None


def _keeps(value: Callable[[], float], allowed: float) -> bool:
    """Whether a plan keeps the bound; one whose default ridge contradicts the assumed margins does not."""
    try:
        return value() <= allowed
    except ContradictoryMarginsError:
        return False


def _check_target(at_most: float, of: str) -> float:
    one_of("of", of, ("groups", "aggregate"))
    return number_in("at_most", at_most, 0.0, 2.0, above=True)
