"""A picture of what a promise means for one person."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

from discreet._common.plotting import picture, pyplot
from discreet.privacy.statement import belief_after, percent_at_most, rounded_up
from discreet.privacy.tradeoffs import TradeOff, trade_off

_BLUE, _ORANGE, _GREY = "#0072B2", "#D55E00", "#767676"  # told apart by colour-blind people
_FOR_ORIENTATION = (0.5, 1.0, 2.0, 4.0)
_SMALLEST_DELTA = 1e-12
_BELOW = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.13), "fontsize": 11, "frameon": False}


def plot_meaning(
    promise: Any,
    path: str | Path,
    delta: float | None = None,
    relation: Any = None,
    failure: float | None = None,
    title: str | None = None,
) -> None:
    """Draw the errors of the best attacker, how far a belief can move, and delta against epsilon.

    Parameters
    ----------
    promise, delta, relation
        As for `trade_off`, which may have been called before: a `TradeOff` is drawn as it is.
    path : str or Path
        Where to write the picture; the name's end says in which format.
    failure : float, optional
        How often a belief may pass what is drawn; needed where the promise has no delta of its own.
    title : str, optional
        By default the promise.

    Examples
    --------
    >>> from discreet.privacy import plot_meaning
    >>> plot_meaning(1.0, "promise.png", delta=1e-6)  # doctest: +SKIP
    """
    curve = promise if isinstance(promise, TradeOff) else trade_off(promise, delta, relation)
    growth, often = curve.growth_and_failure(failure)
    settings = {
        "font.size": 11,
        "axes.titlesize": 12,
        "axes.titlepad": 12,
        "axes.spines.top": False,
        "axes.spines.right": False,
    }
    room, panels = pyplot().rc_context(settings), picture(path, 1, 3, figsize=(13.0, 6.4))
    with room, panels as (figure, (errors, beliefs, profile)):
        figure.subplots_adjust(left=0.055, right=0.985, top=0.86, bottom=0.36, wspace=0.27)
        figure.suptitle(title or f"What the promise means: {curve.name}", fontsize=14)
        _draw_errors(errors, curve)
        _draw_beliefs(beliefs, growth, often)
        _draw_profile(profile, curve)


def _draw_errors(axes: Any, curve: TradeOff) -> None:
    rates = np.concatenate([[0.0], np.geomspace(1e-6, 1e-2, 60), np.linspace(0.01, 1.0, 300)])
    for epsilon in _FOR_ORIENTATION:
        if abs(trade_off(epsilon).advantage - curve.advantage) < 0.02:
            continue  # it would lie on the promise's own curve
        axes.plot(rates, trade_off(epsilon).false_negative(rates), color=_GREY, linewidth=0.8, linestyle=":")
        corner = 1.0 / (1.0 + math.exp(epsilon))
        label = axes.text(corner, corner, f"{epsilon:g}", color=_GREY, fontsize=9, ha="center", va="center")
        label.set_bbox({"facecolor": "white", "edgecolor": "none", "pad": 1.0})
    missed = curve.false_negative(rates)
    axes.plot([0.0, 1.0], [1.0, 0.0], color=_ORANGE, linestyle="--", label="guessing without the result")
    axes.plot(rates, missed, color=_BLUE, linewidth=2.2, label="the best attack", clip_on=False, zorder=4)
    axes.fill_between(rates, missed, color=_BLUE, alpha=0.12, linewidth=0.0, label="no attack gets here")
    axes.plot([], [], color=_GREY, linewidth=0.8, linestyle=":", label="other promises, by epsilon")
    axes.set(xlim=(0.0, 1.0), ylim=(0.0, 1.0), aspect="equal", title="How often an attacker errs")
    axes.set_xlabel("people outside the table called members")
    axes.set_ylabel("people in the table who are missed")
    axes.legend(**_BELOW)


def _draw_beliefs(axes: Any, growth: float, failure: float) -> None:
    before = 1.0 / (1.0 + np.exp(-np.linspace(-16.0, 16.0, 401)))  # close together near 0 and 1
    highest, lowest = (np.array([belief_after(p, g) for p in before]) for g in (growth, -growth))
    often = "" if failure == 0.0 else f"\n(more with probability at most {rounded_up(failure, 2)})"
    axes.fill_between(before, lowest, highest, color=_BLUE, alpha=0.12, linewidth=0.0)
    axes.plot(before, highest, color=_BLUE, linewidth=2.2, clip_on=False, label=f"afterwards, at most{often}")
    axes.plot(before, lowest, color=_BLUE, linewidth=2.2, linestyle="-.", label="afterwards, at least")
    axes.plot([0.0, 1.0], [0.0, 1.0], color=_ORANGE, linestyle="--", label="as before")
    for prior, marker in ((0.5, "o"), (0.1, "s")):
        after = belief_after(prior, growth)
        text = f"{100 * prior:g} % becomes at most {percent_at_most(after)}"
        axes.plot([prior], [after], marker, color=_BLUE, markersize=8, clip_on=False, label=text)
    axes.set(xlim=(0.0, 1.0), ylim=(0.0, 1.0), aspect="equal", title="How far a belief can move")
    axes.set_xlabel('belief "this person is in the table" before')
    axes.set_ylabel("belief after seeing the result")
    axes.legend(**_BELOW)


def _draw_profile(axes: Any, curve: TradeOff) -> None:
    last = next((e for d in (1e-9, 1e-6, 1e-3, 1e-1) if math.isfinite(e := curve.epsilon(d))), 10.0)
    corner = max((c for c in curve.corners() if math.isfinite(c)), default=0.0)
    epsilons = np.unique([*np.linspace(0.0, 1.15 * max(last, corner, 1e-3), 160), *curve.corners()])
    deltas = np.maximum(curve.deltas(epsilons), _SMALLEST_DELTA / 10.0)  # a delta of 0 leaves the picture below
    axes.semilogy(epsilons, deltas, color=_BLUE, linewidth=2.2)
    axes.set(xlim=(0.0, epsilons[-1]), ylim=(_SMALLEST_DELTA, 1.3), title="Epsilon and delta that go together")
    axes.set_xlabel("epsilon")
    axes.set_ylabel("delta")
    axes.set_box_aspect(1.0)
    axes.grid(color="0.9")
