"""What is released about a classifier, and the figures that follow: accuracy, confusion matrix, log-loss.

Sections 1 and 2 of docs/guarantees/evaluation.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet._common.types import FloatArray
from discreet.metrics.intervals import Counts, Limits, Test, limits_of, quantile
from discreet.metrics.label_codes import codes_of
from discreet.metrics.released_sums import SPREAD_WEIGHT, Contribution, NoisySums, Part


@dataclass(frozen=True, eq=False)
class ClassifierMeasure:
    """The bins and columns of a classifier; all of it is public.

    Attributes
    ----------
    model : object
        The classifier.
    classes : tuple
        Its labels, in order.
    edges : tuple of float or None
        Between which scores the bins of the curves lie; None: no curves.
    least_probability : float or None
        To which probabilities are raised before their logarithm is taken; None: no log-loss.
    """

    model: Any
    classes: tuple[Any, ...]
    edges: tuple[float, ...] | None
    least_probability: float | None

    @property
    def parts(self) -> tuple[Part, ...]:
        """What is released: the last bin of each histogram is for labels that were not declared."""
        count = len(self.classes)
        parts = [Part("confusion", count * count + 1)]
        if self.edges is not None:
            parts.append(Part("scores", 2 * (len(self.edges) + 1) + 1))
        if self.least_probability is not None:
            parts += [Part("log_loss"), Part("log_loss_squared", weight=SPREAD_WEIGHT)]
            parts.append(Part("log_loss_by_label", count + 1, SPREAD_WEIGHT))
        return tuple(parts)

    def contributions(self, X: Any, y: Any) -> dict[str, Contribution]:
        """What every row adds to each part."""
        count, labels = len(self.classes), codes_of(y, self.classes)
        ones, other = np.ones(labels.size), labels == count
        predicted = codes_of(self.model.predict(X), self.classes)
        found = {"confusion": Contribution(ones, np.where(other, count * count, labels * count + predicted))}
        if self.edges is not None:
            bins = np.searchsorted(np.array(self.edges), self.model.decision_function(X))
            places = np.where(other, 2 * (len(self.edges) + 1), labels * (len(self.edges) + 1) + bins)
            found["scores"] = Contribution(ones, places)
        if self.least_probability is not None:
            chances = self.model.predict_proba(X)[np.arange(labels.size), np.minimum(labels, count - 1)]
            floor = self.least_probability
            kept = np.where(chances >= floor, chances, floor)  # NaN counts as the worst
            loss = np.where(other, 0.0, np.clip(np.log(kept) / math.log(floor), 0.0, 1.0))
            found["log_loss"], found["log_loss_squared"] = Contribution(loss), Contribution(loss**2)
            found["log_loss_by_label"] = Contribution(loss, labels)
        return found


def label_bins(classes: int, label: int) -> FloatArray:
    """The bins of the confusion matrix, and of undeclared labels, that hold the rows of one label."""
    bins = np.zeros((classes, classes))
    bins[label] = 1.0
    return np.append(bins.ravel(), 0.0)


def accuracies(sums: NoisySums, classes: int, failure: float) -> dict[str, Limits]:
    """Accuracy of the model and of the best constant, and their difference; undeclared labels count as wrong."""
    counts, everything = Counts.of(sums, "confusion"), np.ones(classes * classes + 1)
    right = np.append(np.eye(classes).ravel(), 0.0)
    labels = [label_bins(classes, label) for label in range(classes)]

    def shares(level: float) -> list[Limits]:
        return [counts.mean(own, everything, level) for own in labels]

    def gains(level: float) -> list[Limits]:
        return [counts.mean(right - own, everything, level, -1.0, 1.0) for own in labels]

    share, gain = shares(failure), gains(failure)
    best = int(np.argmax([counts.values @ own for own in labels]))
    # Which constant is the best is not known: one end of the interval must hold for all of them.
    share_low = max(each.low for each in shares(failure / classes))
    gain_high = min(each.high for each in gains(failure / classes))
    constant = _between(share[best], share_low, max(each.high for each in share))
    return {
        "accuracy": counts.mean(right, everything, failure),
        "accuracy_of_constant": constant,
        "accuracy_gain": _between(gain[best], min(each.low for each in gain), gain_high),
    }


def _between(found: Limits, low: float, high: float) -> Limits:
    """The estimate with other limits."""
    return Limits(float(np.clip(found.value, low, high)), low, high, found.noise_std)


def confusion(sums: NoisySums, classes: int, failure: float) -> list[list[Limits]]:
    """Shares of all rows by label (lines) and prediction; all hold together."""
    counts, cells = Counts.of(sums, "confusion"), np.eye(classes * classes + 1)
    everything, each = np.ones(classes * classes + 1), failure / classes**2
    return [
        [counts.mean(cells[label * classes + predicted], everything, each) for predicted in range(classes)]
        for label in range(classes)
    ]


def log_losses(sums: NoisySums, classes: int, least_probability: float, failure: float) -> dict[str, Limits]:
    """Log-loss of the model and of the best constant, and by how much that of the model is smaller.

    Over the rows whose label is declared: there is no probability of any other.
    """
    counts, deviations = Counts.of(sums, "confusion"), quantile(failure, sums.laplace)
    rates = _constant_losses(counts, classes, least_probability)
    amounts = np.append(np.repeat(rates, classes), 0.0)  # of a constant, for each bin of the confusion matrix
    slack = _slack(counts, classes, least_probability, deviations)
    found = {
        "log_loss": _loss(sums, counts, deviations),
        "log_loss_of_constant": counts.mean(amounts, _declared(counts), failure, slack=slack),
        "log_loss_gain": _loss_gain(sums, counts, np.append(rates, 0.0), slack, deviations),
    }
    return {name: limits.scaled(-math.log(least_probability)) for name, limits in found.items()}


def _declared(counts: Counts) -> FloatArray:
    """The bins of rows whose label is declared."""
    return np.append(np.ones(counts.values.size - 1), 0.0)


def _constant_losses(counts: Counts, classes: int, least_probability: float) -> FloatArray:
    """The loss of the best constant for each label, over the largest loss; from noisy counts.

    Probabilities below the least one count as that one, so that a constant loses nothing by giving up rare labels: it
    predicts the others at their rates among themselves. Base rates of all labels would be beaten by such a constant.
    """
    rows = np.maximum([counts.values @ label_bins(classes, label) for label in range(classes)], 0.0)
    rates = rows / rows.sum() if rows.sum() > 0.0 else np.full(classes, 1.0 / classes)
    order, found = np.argsort(-rates, kind="stable"), []
    for kept in range(1, classes + 1):
        chances = np.zeros(classes)
        chances[order[:kept]] = rates[order[:kept]] / rates[order[:kept]].sum()
        found.append(np.log(np.maximum(chances, least_probability)) / math.log(least_probability))
    return np.asarray(min(found, key=lambda losses: float(rates @ losses)))


def _slack(counts: Counts, classes: int, least_probability: float, deviations: float) -> float:
    """How much more noisy rates can lose than the true ones: the divergence between the two, times rows."""
    rows = np.array([counts.values @ label_bins(classes, label) for label in range(classes)])
    rows = np.maximum(rows, max(least_probability * counts.total, 1.0))
    noise = classes * counts.deviation**2
    return 0.5 * deviations**2 * float((1.0 + noise / rows).sum()) / -math.log(least_probability)


def _loss(sums: NoisySums, counts: Counts, deviations: float) -> Limits:
    """The mean loss of the model, over the largest loss."""
    loss, noise, total = sums.one("log_loss"), sums.deviation("log_loss") ** 2, float(_declared(counts) @ counts.values)
    rows_noise = counts.noise(_declared(counts))
    squares = max(sums.one("log_loss_squared") + sums.deviation("log_loss_squared"), loss**2 / max(total, 1.0))
    test = Test(
        statistic=lambda u: loss - u * total,
        variance=lambda u: squares - 2.0 * u * loss + u * u * max(total, 0.0) + noise + u * u * rows_noise,
        largest=lambda u: max(u, 1.0 - u),
    )
    return _mean_limits(test, loss, total, noise, deviations, 0.0)


def _loss_gain(sums: NoisySums, counts: Counts, rates: FloatArray, slack: float, deviations: float) -> Limits:
    """By how much a constant loses more than the model, over the largest loss; `rates` are its losses by label."""
    declared = _declared(counts)
    total = float(declared @ counts.values)
    amounts = np.append(np.repeat(rates[:-1], rates.size - 1), 0.0)
    gain = float(amounts @ counts.values) - sums.one("log_loss")
    squares = float(np.square(amounts) @ np.maximum(counts.values, 0.0)) + sums.one("log_loss_squared")
    squares -= 2.0 * float(rates @ sums.of("log_loss_by_label"))
    spread = 2.0 * float(np.linalg.norm(rates)) * sums.deviation("log_loss_by_label")
    squares += math.hypot(spread, sums.deviation("log_loss_squared"))
    squares = max(squares, gain**2 / max(total, 1.0))

    def noise(u: float) -> float:
        return counts.noise(amounts - u * declared) + sums.deviation("log_loss") ** 2

    test = Test(
        statistic=lambda u: gain - u * total,
        variance=lambda u: squares - 2.0 * u * gain + u * u * max(total, 0.0) + noise(u),
        largest=lambda u: 1.0 + abs(u),
        slack=lambda _: slack,
    )
    return _mean_limits(test, gain, total, noise(0.0), deviations, -1.0)


def _mean_limits(test: Test, value: float, total: float, noise: float, deviations: float, low: float) -> Limits:
    """The limits of a mean between `low` and 1; `noise` is the variance of the noise in the sum."""
    if not total > 0.0:
        return Limits(math.nan, low, 1.0, math.inf)
    return limits_of(test, value / total, math.sqrt(noise) / total, deviations, low, 1.0)
