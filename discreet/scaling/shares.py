"""How much of the budget is spent on which scales; from public facts alone.

A tenth by default. More where that is what makes the target, or the columns, stand out of the noise: at most half for
the target, and half of what that leaves for the columns. Split into halves, an error a / s + b / (1 - s) is at most
twice that of the best s, whatever a and b are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from discreet.privacy import mechanisms
from discreet.scaling.public_scales import tells_target

if TYPE_CHECKING:
    from discreet.data.public import Public
    from discreet.privacy.budget import Budget
    from discreet.privacy.mechanisms import Sensitivity

# Where these come from: docs/defaults.md.
DEFAULT_SHARE = 0.1  # of the budget, as in the papers
MOST_SHARE = 0.5  # of the budget for the target, of what that leaves for the columns: as much as for all that follows
NEARLY_ALL = 1.0 - 1e-6  # of the budget: sums of shares are rounded
TARGET_PART = 0.25  # of the usual share, for the target at least
NOISIEST_HISTOGRAM = 1 / 12  # noise deviation per bin, as a fraction of the rows
NOISIEST_TARGET = 1 / 20  # the same for the histogram of the target, at most
CLEAR_TARGET, CLEAR_SHARE = 1 / 40, 0.25  # the same where it takes no more than this share of the budget
NOISIEST_MOMENT = 1 / 5  # noise deviation of a moment, as a fraction of the squared radius
HISTOGRAM, LOCATION, CLOSER, MOMENTS = 7, 2, 4, 7  # how a share is divided between the releases that are made
NAMES = ("histogram", "location", "closer", "moments")


class Shares(NamedTuple):
    """What is learned about the columns, and the share of the budget of each release; 0: it is not made."""

    method: str
    columns: dict[str, float]
    target: dict[str, float]


def share_out(
    public: Public, budget: Budget, share: float | None, centred: bool, target: bool, target_centred: bool | None = None
) -> Shares:
    """Decide what can be learned; a share that was asked for is spent, and no more."""
    usual = DEFAULT_SHARE if share is None else share
    for_target, of_target = 0.0, _parts(False, False, False, False)
    if target and not tells_target(public.table):
        for_target, of_target = _target(
            public, budget, usual, MOST_SHARE * (share or 1.0), centred if target_centred is None else target_centred
        )
    if share is None:
        least, most = (1.0 - TARGET_PART * target) * usual, MOST_SHARE * (1.0 - for_target)
    else:
        least = most = share - for_target
    method, for_columns = ("public", 0.0)
    if public.table is None:
        method, for_columns = _columns(public, budget, least, most, _parts(True, centred, centred, True)["histogram"])
    ends = method in ("narrowed", "columns", "completed", "common", "factor")
    # One histogram for several columns shows no place: there is nothing to look at more closely.
    looks = centred and method in ("narrowed", "columns", "completed")
    measured = method in ("moments", "narrowed", "columns")
    if method in ("factor", "completed"):
        part = _parts(True, looks, looks, True)["moments"]
        measured = _quiet_moments(public, budget, part * for_columns, public.columns)
    own = _parts(ends, looks, looks, measured)
    return Shares(
        method,
        {name: for_columns * part for name, part in own.items()},
        {name: for_target * part for name, part in of_target.items()},
    )


def share_out_to_target(public: Public, budget: Budget) -> dict[str, float]:
    """The shares of the releases about the target, if nothing else is learned."""
    parts = _parts(True, True, True, True)
    if public.target_bounded:
        parts = _parts(False, False, False, True)
    elif target_share(public, budget) > parts["histogram"]:
        parts = _parts(True, False, False, True)
    return {name: NEARLY_ALL * part for name, part in parts.items()}


def target_share(public: Public, budget: Budget) -> float:
    """The share of the budget with which the histogram of the target shows where it lies; above 1: none will do."""
    return _needed(budget, mechanisms.one_hot_counts(public.relation, 1), NOISIEST_TARGET * public.rows)


def hides_target(public: Public, budget: Budget) -> bool:
    """Whether the most that a target may get beside a model is too little to find it, or to know its mean."""
    if not public.target_bounded:
        return target_share(public, budget) > MOST_SHARE * _parts(True, True, True, True)["histogram"]
    half = mechanisms.additive(budget, MOST_SHARE).deviation(mechanisms.bounded_moments(public.relation, 1))
    return half > NOISIEST_TARGET * public.rows


def binary(public: Public) -> np.ndarray:
    """Which columns are declared to lie between 0 and 1 exactly: indicators, which are not narrowed.

    None counts as one where `narrows_indicators` says so.
    """
    if public.narrows_indicators or public.low is None or public.high is None:
        return np.zeros(public.columns, dtype=bool)
    return np.asarray((public.low == 0.0) & (public.high == 1.0))


def _parts(*made: bool) -> dict[str, float]:
    """The part of each release in a share, if it is made."""
    weights = np.array([HISTOGRAM, LOCATION, CLOSER, MOMENTS]) * np.array(made)
    return dict(zip(NAMES, (weights / max(weights.sum(), 1)).tolist(), strict=True))


def _target(public: Public, budget: Budget, usual: float, most: float, centred: bool) -> tuple[float, dict[str, float]]:
    """The share for the target, and how it is divided.

    As much as its histogram needs, but not less than a part of the usual share. A target that is not found is worse
    than any noise in the coefficients: the share grows to its end even where that may not be enough, and there is no
    closer look then. Up to a quarter of the budget it may also grow to show targets that spread over many octaves.
    """
    parts, least = _parts(True, centred, centred, True), TARGET_PART * usual
    needed = target_share(public, budget)
    if public.target_bounded and needed > least * parts["histogram"]:
        return least, _parts(False, False, False, _quiet_moments(public, budget, least, 1))
    if needed > most * parts["histogram"]:
        return most, _parts(True, False, False, True)
    clear = _needed(budget, mechanisms.one_hot_counts(public.relation, 1), CLEAR_TARGET * public.rows)
    wanted = min(clear / parts["histogram"], CLEAR_SHARE / MOST_SHARE * most)
    return max(needed / parts["histogram"], wanted, least), parts


def _columns(public: Public, budget: Budget, usual: float, most: float, part: float) -> tuple[str, float]:
    """The most that can be learned with noise small against the number of rows, and the share for it."""
    counted, missing = int((~binary(public)).sum()), int((~public.declared).sum())
    if public.bounded and counted == 0:
        quiet = _quiet_moments(public, budget, usual, public.columns)
        return ("moments", usual) if quiet else ("declared", 0.0)
    for method, columns in (("narrowed" if public.bounded else "columns", counted), ("completed", missing)):
        sensitivity = mechanisms.one_hot_counts(public.relation, max(columns, 1))
        needed = _needed(budget, sensitivity, NOISIEST_HISTOGRAM * public.rows) / part
        if columns and needed <= most:
            return method, max(usual, needed)
    if not public.bounded:
        return "common", usual
    together = mechanisms.additive(budget, usual).deviation(mechanisms.one_hot_counts(public.relation, 1))
    return ("factor", usual) if together <= NOISIEST_HISTOGRAM * public.rows else ("declared", 0.0)


def _quiet_moments(public: Public, budget: Budget, share: float, columns: int) -> bool:
    """Whether means and mean squares of so many columns are of use with this share."""
    sensitivity = mechanisms.bounded_moments(public.relation, columns)
    return mechanisms.additive(budget, share).deviation(sensitivity) <= NOISIEST_MOMENT * public.rows


def _needed(budget: Budget, sensitivity: Sensitivity, deviation: float) -> float:
    """The share of the budget with which noise has this deviation; above 1 where the budget is too small."""
    whole = mechanisms.additive(budget, 1.0)
    excess = whole.deviation(sensitivity) / deviation
    return excess if isinstance(whole, mechanisms.Laplace) else excess**2
