"""What is released about a classifier, and the figures that follow: accuracy, confusion matrix, log-loss, curves.

Private values are numbers of declared ones; whatever was not declared has a number as well, and is no error. With two
classes the ROC curve, its area, and the calibration follow from noisy counts of labels and scores. Sections 1 to 3 of
docs/guarantees/evaluation.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from discreet._common.types import FloatArray, IntArray
from discreet.metrics import released_sums as released
from discreet.metrics.ranking import RANKS_WEIGHT, ScoreLook, rank_edges
from discreet.metrics.released_sums import Limits
from discreet.scaling.learn import Noise


def codes_of(values: Any, declared: Sequence[Any]) -> IntArray:
    """The place of each value among the declared ones; whatever is none of them gets their number.

    No value is an error, however strange: an error would tell that a row with it exists.
    """
    places = {value: place for place, value in enumerate(declared)}
    return np.array([_place(places, value, len(declared)) for value in _listed(values)], dtype=np.int64)


def _place(places: dict[Any, int], value: Any, other: int) -> int:
    try:
        return places.get(value, other)
    except Exception:  # not hashable, or not comparable
        return other


def _listed(values: Any) -> list[Any]:
    array = np.asarray(values) if hasattr(values, "__array__") else _objects(values)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise ValueError(f"labels and sensitive values must be one value per row; got an array of shape {array.shape}.")
    return array.tolist()


def _objects(values: Any) -> npt.NDArray[Any]:
    """A list as it is: NumPy would turn numbers beside texts into texts."""
    listed = list(values)
    array = np.empty(len(listed), dtype=object)
    for place, value in enumerate(listed):
        array[place] = value
    return array


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
    groups, ranks : int
        For the area under the ROC curve: groups of score bins, and bins in each; 0: it has the bins of the curves.
    rank_edges : ndarray or None
        Between which scores these lie; None: that is learned first.
    """

    model: Any
    classes: tuple[Any, ...]
    edges: tuple[float, ...] | None
    least_probability: float | None
    groups: int = 0
    ranks: int = 0
    rank_edges: FloatArray | None = None

    @property
    def look(self) -> ScoreLook | None:
        """What is to be learned first; None if nothing is."""
        return ScoreLook(self.model, self.classes) if self.ranks and self.rank_edges is None else None

    def after(self, sums: released.NoisySums, noise: Noise) -> ClassifierMeasure:
        """The measure with edges between the bins of the area, where a look has shown scores."""
        assert self.edges is not None
        return replace(self, rank_edges=rank_edges(sums.of("sizes"), noise, self.groups * self.ranks, self.edges))

    @property
    def parts(self) -> tuple[released.Part, ...]:
        """What is released: the last bin of each histogram is for labels that were not declared."""
        count = len(self.classes)
        parts = [released.Part("confusion", count * count + 1)]
        if self.edges is not None:
            parts.append(released.Part("scores", 2 * (len(self.edges) + 1) + 1))
        if self.ranks:
            parts.append(released.Part("rank_groups", 2 * self.groups + 1))
            parts.append(released.Part("ranks", 2 * self.groups * self.ranks + 1, RANKS_WEIGHT))
        if self.least_probability is not None:
            parts += [released.Part("log_loss"), released.Part("log_loss_squared", weight=released.SPREAD_WEIGHT)]
            parts.append(released.Part("log_loss_by_label", count + 1, released.SPREAD_WEIGHT))
        return tuple(parts)

    def contributions(self, X: Any, y: Any) -> dict[str, released.Contribution]:
        """What every row adds to each part."""
        count, labels = len(self.classes), codes_of(y, self.classes)
        ones, other = np.ones(labels.size), labels == count
        predicted = codes_of(self.model.predict(X), self.classes)
        found = {"confusion": released.Contribution(ones, np.where(other, count * count, labels * count + predicted))}
        if self.edges is not None:
            scores = self.model.decision_function(X)
            edges = {"scores": np.array(self.edges)}
            if self.rank_edges is not None:
                edges |= {"rank_groups": self.rank_edges[self.ranks - 1 :: self.ranks], "ranks": self.rank_edges}
            for name, ends in edges.items():
                bins, size = np.searchsorted(ends, scores), ends.size + 1
                found[name] = released.Contribution(ones, np.where(other, 2 * size, labels * size + bins))
        if self.least_probability is not None:
            chances = self.model.predict_proba(X)[np.arange(labels.size), np.minimum(labels, count - 1)]
            floor = self.least_probability
            kept = np.where(chances >= floor, chances, floor)  # NaN counts as the worst
            loss = np.where(other, 0.0, np.clip(np.log(kept) / math.log(floor), 0.0, 1.0))
            found["log_loss"], found["log_loss_squared"] = released.Contribution(loss), released.Contribution(loss**2)
            found["log_loss_by_label"] = released.Contribution(loss, labels)
        return found


def label_bins(classes: int, label: int) -> FloatArray:
    """The bins of the confusion matrix, and of undeclared labels, that hold the rows of one label."""
    bins = np.zeros((classes, classes))
    bins[label] = 1.0
    return np.append(bins.ravel(), 0.0)


def accuracies(sums: released.NoisySums, classes: int, failure: float) -> dict[str, Limits]:
    """Accuracy of the model and of the best constant, and their difference; undeclared labels count as wrong."""
    counts, everything = released.Counts.of(sums, "confusion"), np.ones(classes * classes + 1)
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


def confusion(sums: released.NoisySums, classes: int, failure: float) -> list[list[Limits]]:
    """Shares of all rows by label (lines) and prediction; all hold together."""
    counts, cells = released.Counts.of(sums, "confusion"), np.eye(classes * classes + 1)
    everything, each = np.ones(classes * classes + 1), failure / classes**2
    return [
        [counts.mean(cells[label * classes + predicted], everything, each) for predicted in range(classes)]
        for label in range(classes)
    ]


def log_losses(sums: released.NoisySums, classes: int, least_probability: float, failure: float) -> dict[str, Limits]:
    """Log-loss of the model and of the best constant, and by how much that of the model is smaller.

    Over the rows whose label is declared: there is no probability of any other.
    """
    counts, deviations = released.Counts.of(sums, "confusion"), released.quantile(failure, sums.laplace)
    rates = _constant_losses(counts, classes, least_probability)
    amounts = np.append(np.repeat(rates, classes), 0.0)  # of a constant, for each bin of the confusion matrix
    slack = _slack(counts, classes, least_probability, deviations)
    found = {
        "log_loss": _loss(sums, counts, deviations),
        "log_loss_of_constant": counts.mean(amounts, _declared(counts), failure, slack=slack),
        "log_loss_gain": _loss_gain(sums, counts, np.append(rates, 0.0), slack, deviations),
    }
    return {name: limits.scaled(-math.log(least_probability)) for name, limits in found.items()}


def _declared(counts: released.Counts) -> FloatArray:
    """The bins of rows whose label is declared."""
    return np.append(np.ones(counts.values.size - 1), 0.0)


def _constant_losses(counts: released.Counts, classes: int, least_probability: float) -> FloatArray:
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


def _slack(counts: released.Counts, classes: int, least_probability: float, deviations: float) -> float:
    """How much more noisy rates can lose than the true ones: the divergence between the two, times rows."""
    rows = np.array([counts.values @ label_bins(classes, label) for label in range(classes)])
    rows = np.maximum(rows, max(least_probability * counts.total, 1.0))
    noise = classes * counts.deviation**2
    return 0.5 * deviations**2 * float((1.0 + noise / rows).sum()) / -math.log(least_probability)


def _loss(sums: released.NoisySums, counts: released.Counts, deviations: float) -> Limits:
    """The mean loss of the model, over the largest loss."""
    loss, noise, total = sums.one("log_loss"), sums.deviation("log_loss") ** 2, float(_declared(counts) @ counts.values)
    rows_noise = counts.noise(_declared(counts))
    squares = max(sums.one("log_loss_squared") + sums.deviation("log_loss_squared"), loss**2 / max(total, 1.0))
    test = released.Test(
        statistic=lambda u: loss - u * total,
        variance=lambda u: squares - 2.0 * u * loss + u * u * max(total, 0.0) + noise + u * u * rows_noise,
        largest=lambda u: max(u, 1.0 - u),
    )
    return _mean_limits(test, loss, total, noise, deviations, 0.0)


def _loss_gain(
    sums: released.NoisySums, counts: released.Counts, rates: FloatArray, slack: float, deviations: float
) -> Limits:
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

    test = released.Test(
        statistic=lambda u: gain - u * total,
        variance=lambda u: squares - 2.0 * u * gain + u * u * max(total, 0.0) + noise(u),
        largest=lambda u: 1.0 + abs(u),
        slack=lambda _: slack,
    )
    return _mean_limits(test, gain, total, noise(0.0), deviations, -1.0)


def _mean_limits(
    test: released.Test, value: float, total: float, noise: float, deviations: float, low: float
) -> Limits:
    """The limits of a mean between `low` and 1; `noise` is the variance of the noise in the sum."""
    if not total > 0.0:
        return Limits(math.nan, low, 1.0, math.inf)
    return released.limits_of(test, value / total, math.sqrt(noise) / total, deviations, low, 1.0)


@dataclass(frozen=True)
class RocPoint:
    """Rates of the rows of each label whose score exceeds a threshold.

    Attributes
    ----------
    threshold : float
        Of `decision_function`.
    false_positive_rate, true_positive_rate : Limits
        Of the rows of the first and of the second label.

    Examples
    --------
    See `evaluate`.
    """

    threshold: float
    false_positive_rate: Limits
    true_positive_rate: Limits


@dataclass(frozen=True)
class CalibrationBin:
    """The share of the second label among rows whose predicted probability lies between two ends.

    Attributes
    ----------
    low, high : float
        The ends of the predicted probability of the second label.
    rows : float
        Number of rows in the bin, with noise.
    observed : Limits
        The share of the second label.

    Examples
    --------
    See `evaluate`.
    """

    low: float
    high: float
    rows: float
    observed: Limits

    @property
    def contradicted(self) -> bool:
        """Whether no probability of the bin agrees with the share observed."""
        return self.observed.low > self.high or self.observed.high < self.low


def roc_points(sums: released.NoisySums, edges: tuple[float, ...], failure: float) -> tuple[RocPoint, ...]:
    """The ROC curve at the edges of the bins; all its points hold together."""
    counts, bins = released.Counts.of(sums, "scores"), len(edges) + 1
    negative, positive = (_bins_of(bins, label, np.ones(bins)) for label in (0, 1))
    each = failure / (2 * len(edges))
    points = []
    for place, edge in enumerate(edges):
        above = (np.arange(bins) > place).astype(np.float64)
        rates = [counts.mean(_bins_of(bins, k, above), own, each) for k, own in enumerate((negative, positive))]
        points.append(RocPoint(edge, *rates))
    return tuple(points)


def calibration_bins(sums: released.NoisySums, edges: tuple[float, ...], failure: float) -> tuple[CalibrationBin, ...]:
    """The calibration curve; all its bins hold together."""
    counts, bins = released.Counts.of(sums, "scores"), len(edges) + 1
    ends = [0.0, *(float(expit(edge)) for edge in edges), 1.0]
    found = []
    for place in range(bins):
        one = np.eye(bins)[place]
        base = _bins_of(bins, 0, one) + _bins_of(bins, 1, one)
        observed = counts.mean(_bins_of(bins, 1, one), base, failure / bins)
        found.append(CalibrationBin(ends[place], ends[place + 1], float(counts.values @ base), observed))
    return tuple(found)


def _bins_of(bins: int, label: int, chosen: FloatArray) -> FloatArray:
    """The chosen score bins of a label among all bins of the release."""
    where = np.zeros((2, bins))
    where[label] = chosen
    return np.append(where.ravel(), 0.0)


def default_edges(model: Any) -> tuple[float, ...]:
    """Edges of the score bins: log-odds of probabilities from 0.02 to 0.98, or margins from -2 to 2."""
    end = 4.0 if hasattr(model, "predict_proba") else 2.0
    return tuple(np.linspace(-end, end, 17).tolist())
