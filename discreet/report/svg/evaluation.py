"""The curves of an evaluation, with their confidence limits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from discreet.report.svg.chart import unit_square

if TYPE_CHECKING:
    from discreet.metrics import CalibrationBin, Limits, RocPoint

UNKNOWN = 0.8  # limits of a share that are so far apart say next to nothing, and are not drawn


def roc(points: Sequence[RocPoint], name: str) -> str:
    """The ROC curve at the thresholds of the release; bars are the confidence limits of both rates."""
    chart = unit_square(name, "share of the first label called the second", "share of the second label found")
    chart.line([(0.0, 0.0), (1.0, 1.0)], "line dashed second")
    pairs = [(_inside(point.false_positive_rate), _inside(point.true_positive_rate)) for point in points]
    known = [pair for pair in pairs if not any(map(math.isnan, (pair[0][0], pair[1][0])))]
    for (x, *across), (y, *up) in known:
        chart.line([(end, y) for end in across], "bar")
        chart.line([(x, end) for end in up], "bar")
    for (x, *_), (y, *_) in known:
        chart.dot(x, y, "dot", 3.0)
    told = f"{len(known)} thresholds, each with confidence limits; on the dashed line a score tells nothing."
    return chart.svg("ROC curve", told)


def calibration(bins: Sequence[CalibrationBin], name: str) -> str:
    """Observed shares of the second label against predicted probabilities, where anything is known about them."""
    chart = unit_square(name, "predicted probability of the second label", "observed share of it")
    chart.line([(0.0, 0.0), (1.0, 1.0)], "line dashed second")
    known = [each for each in bins if each.observed.high - each.observed.low < UNKNOWN]
    for each in known:
        low, high = _clipped(each.low), _clipped(each.high)
        value, *ends = _inside(each.observed)
        chart.line([(0.5 * (low + high), end) for end in ends], "bar")
        chart.line([(low, value), (high, value)], "bar")
        chart.dot(0.5 * (low + high), value, "dot", 3.0)
    told = f"{len(known)} bins of probabilities, each with confidence limits; on the dashed line predictions are right."
    return chart.svg("Calibration", told)


def _inside(limits: Limits) -> tuple[float, float, float]:
    """A rate and its limits; a file may hold other numbers."""
    return _clipped(limits.value), _clipped(limits.low), _clipped(limits.high)


def _clipped(rate: float) -> float:
    return rate if math.isnan(rate) else min(max(rate, 0.0), 1.0)
