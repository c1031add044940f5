"""Pictures of a promise: how often the best attacker errs, and how far a belief can move."""

from __future__ import annotations

import math

import numpy as np

from discreet.privacy.meaning import belief_after
from discreet.privacy.tradeoffs import TradeOff, trade_off
from discreet.report.svg.chart import Chart, unit_square

FOR_ORIENTATION = (0.5, 1.0, 2.0, 4.0)  # epsilons of dotted curves


def errors(curve: TradeOff, advantage: float, name: str) -> str:
    """The trade-off curve, whose advantage is given: false negatives of the best attack against its false positives."""
    chart = unit_square(name, "people outside the table called members", "people in the table who are missed")
    rates = np.concatenate([[0.0], np.geomspace(1e-4, 1e-2, 12), np.linspace(0.02, 1.0, 99)])
    missed = curve.false_negative(rates)
    chart.area([*zip(rates, missed, strict=True), (0.0, 0.0)], "shade")
    for epsilon in FOR_ORIENTATION:
        if abs(trade_off(epsilon).advantage - advantage) >= 0.03:  # else it would lie on the promise's own curve
            _orientation(chart, epsilon)
    chart.line([(0.0, 1.0), (1.0, 0.0)], "line dashed second")
    chart.line(zip(rates, missed, strict=True), "line first")
    told = (
        "Every attack has errors above the solid curve; blind guessing lies on the dashed line. The nearer the two, "
        "the better the protection."
    )
    return chart.svg("How often an attacker errs", told)


def _orientation(chart: Chart, epsilon: float) -> None:
    """The curve of another promise."""
    corner = 1.0 / (1.0 + math.exp(epsilon))
    chart.line([(0.0, 1.0), (corner, corner), (1.0, 0.0)], "line dotted third")
    across, down = chart.at(corner, corner)
    chart.write(across + 3.0, down - 3.0, f"{epsilon:g}", "start", "label small")


def beliefs(epsilon: float, name: str) -> str:
    """Beliefs after the result against beliefs before it; odds grow by at most exp(epsilon)."""
    chart = unit_square(name, "belief “this row was used” before", "belief after the result")
    before = 1.0 / (1.0 + np.exp(-np.linspace(-9.0, 9.0, 91)))
    highest, lowest = ([(p, belief_after(p, sign * epsilon)) for p in before] for sign in (1.0, -1.0))
    chart.area([(0.0, 0.0), *highest, (1.0, 1.0), *reversed(lowest)], "shade")
    chart.line([(0.0, 0.0), (1.0, 1.0)], "line dashed second")
    for side in (highest, lowest):
        chart.line([(0.0, 0.0), *side, (1.0, 1.0)], "line first")
    chart.dot(0.5, belief_after(0.5, epsilon), "dot")
    told = "A belief lies, after the result, between the two solid curves; on the dashed line it has not moved."
    return chart.svg("How far a belief can move", told)
