"""The smallest epsilon, or the fewest rows, with which noise does no more harm than a bound. No row is read."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from discreet._common.checks import number_in, one_of
from discreet._common.plotting import picture
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


EPSILONS = 41  # of the curve
SIZES = 9  # points of each of the other two pictures
SHARES = (0.5, 0.4, 0.3, 0.2, 0.1, 0.05, 0.02, 0.01)
TICKS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
ROWS_BESIDE = 30.0  # the number of rows is varied from this factor below to this factor above


def plot_harm(
    estimator: Any,
    rows: int,
    columns: int,
    groups: Mapping[str, int],
    path: str | Path,
    *,
    at_most: float,
    of: Target = "groups",
    **question: Any,
) -> HarmAnswer:
    """Draw the change against epsilon, and the smallest epsilon against the rows and the smallest group's share.

    Parameters
    ----------
    estimator, rows, columns, groups, at_most, of, **question
        As for `epsilon_for_harm`.
    path : str or Path
        Where to write the picture.

    Returns
    -------
    HarmAnswer
        That of `epsilon_for_harm`.
    """
    asked: dict[str, Any] = {"at_most": at_most, "of": of, **question}
    answer = epsilon_for_harm(estimator, rows, columns, groups, **asked)
    counts = np.unique(np.geomspace(max(rows / ROWS_BESIDE, 100), rows * ROWS_BESIDE, SIZES).round().astype(int))
    by_rows = [epsilon_for_harm(estimator, int(count), columns, groups, **asked).epsilon for count in counts]
    harm = answer.harm
    kind = "bound" if harm.mode == "bound" else "mean"
    law = "proved" if harm.proved else "predicted, not proved"
    title = f"{harm.notion}, {harm.solver}, {rows} rows, {columns} columns ({kind}; law of the noise {law})"
    with picture(path, 1, 3, figsize=(13.0, 4.4), layout="constrained") as (figure, (first, second, third)):
        _draw_changes(first, estimator, answer, HarmQuestion(columns, groups, **question))
        _draw_epsilons(second, counts, by_rows, rows, answer.epsilon)
        second.set(xscale="log", xlabel="training rows", title="Smallest epsilon that suffices, by rows")
        third.sharey(second)
        if len(groups) > 1:
            other = [_with_smallest(groups, share) for share in SHARES]
            by_share = [epsilon_for_harm(estimator, rows, columns, sizes, **asked).epsilon for sizes in other]
            smallest = min(groups.values()) / sum(groups.values())
            _draw_epsilons(third, SHARES, by_share, smallest, answer.epsilon)
            third.set(xscale="log", xlabel=f"share of {min(groups, key=lambda name: groups[name])!r}")
            third.set_xticks(TICKS, [f"{share:g}" for share in TICKS])
            third.minorticks_off()
        third.set_title("... and by the share of the smallest group")
        figure.suptitle(title)
    return answer


def _draw_changes(axes: Any, estimator: Any, answer: HarmAnswer, question: HarmQuestion) -> None:
    centre = answer.epsilon if answer.reachable else 10.0
    low, high = max(SMALLEST, centre / 100.0), min(LARGEST, centre * 100.0)
    epsilons = np.geomspace(low, high, EPSILONS)
    found = [question.at(estimator, answer.harm.rows, float(epsilon)) for epsilon in epsilons]
    for place, group in enumerate(found[0].groups):
        axes.plot(epsilons, [harm.groups[place].change for harm in found], color=f"C{place % 10}", label=group.name)
    axes.plot(epsilons, [harm.aggregate for harm in found], "k:", label="aggregate")
    if question.mode == "bound":
        worst = found[-1].groups.index(found[-1].worst)
        means = [replace(question, mode="expected").at(estimator, harm.rows, harm.epsilon) for harm in found]
        label = f"expected, {found[0].groups[worst].name}"
        axes.plot(epsilons, [harm.groups[worst].change for harm in means], f"C{worst % 10}--", alpha=0.6, label=label)
    axes.axhline(answer.at_most, color="grey", linewidth=0.8)
    axes.annotate(f"at most {answer.at_most:g}", (low, answer.at_most), (3, 3), textcoords="offset points", fontsize=8)
    if answer.reachable:
        axes.axvline(answer.epsilon, color="grey", linestyle="--", linewidth=0.8)
        where = (answer.epsilon, axes.get_ylim()[1])
        axes.annotate(
            f" epsilon {answer.epsilon:.3g}", where, (0, -9), textcoords="offset points", fontsize=8, va="top"
        )
    axes.set(xscale="log", yscale="log", xlabel="epsilon", ylabel="change of the notion's value")
    axes.set_title("Change that the noise can add")
    axes.legend(fontsize=8, loc="lower left")


def _draw_epsilons(axes: Any, places: Any, epsilons: list[float], asked: float, answer: float) -> None:
    """Epsilons that were found as a line; where there is none, a cross at the upper end."""
    places, values = np.asarray(places, dtype=np.float64), np.asarray(epsilons)
    reached = np.isfinite(values)
    axes.plot(places[reached], values[reached], "o-", color="C0", markersize=4)
    if not reached.all():
        axes.plot(places[~reached], np.full((~reached).sum(), LARGEST), "rx", label=f"none up to {LARGEST:g}")
    if math.isfinite(answer):
        axes.plot([asked], [answer], "s", color="C1", markersize=7, label="this plan")
    axes.set(yscale="log", ylabel="smallest epsilon")
    top = max(20.0, axes.get_ylim()[1])
    axes.axhspan(10.0, top, color="red", alpha=0.06, linewidth=0.0, label="protects little")
    axes.legend(fontsize=8)


def _with_smallest(groups: Mapping[str, int], share: float) -> dict[str, int]:
    """The same number of people with another share of the smallest group; the others keep their proportions."""
    least, total = min(groups, key=lambda name: groups[name]), sum(groups.values())
    rest = total - groups[least]
    sizes = {name: size / rest * (1.0 - share) * total for name, size in groups.items()} | {least: share * total}
    return {name: max(1, round(size)) for name, size in sizes.items()}
