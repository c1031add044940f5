"""What noisy counts tell of the scores of a direction: where they lie, and how log-odds of labels follow from them.

The direction in which labels change needs all columns, and has the noise of all of them. Its scores are one column: a
histogram tells where they lie, a table of them by label how sharply they separate the labels. The line of log-odds is
the one with the least expected log-loss given the noisy table, so that weak evidence gives a small slope and never a
sudden constant. Everything here but the sums over rows is post-processing. Sensitivities and derivation:
docs/guarantees/adaptive.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, stdtr, stdtrit

from discreet._common.types import FloatArray, IntArray
from discreet.data.rows import TERM_STEP, exact_weights, takes_tensors
from discreet.problem.scaled_problem import ScaledBlock

# Where these come from: docs/defaults.md.
FREEDOM = 8.0  # scores are expected to follow Student's distribution of this degree
POINTS = 240  # by which that distribution is represented: divisible by all even numbers of bins up to 12
BIN = 0.3  # width of a bin of the first histogram, in scores of columns of mean square 1
REACH = 2.0  # where that histogram ends, in units of the fourth root of the number of columns
USUAL_WIDTH = math.sqrt(0.5)  # of scores: columns have mean square 1 at most, less inside declared bounds
DOUBT = 0.5  # how far scores lie from where they are expected, in widths
PROBIT = math.pi / 8.0  # a logistic function averaged over scores of variance v is one of score / sqrt(1 + v PROBIT)
MOST_BINS = 12  # of the table by label
NOISE_OF_BINS = 0.08  # noise of the share of a bin, times half of the number of bins
SLOPES = np.append(0.0, 2.0 ** np.arange(-3.0, 3.01, 0.25))  # log-odds per width of the scores; equally likely
NOTHING = 0.9  # probability, before the rows are read, that the scores tell nothing
LEVELS = np.linspace(-7.0, 7.0, 141)  # intercepts
MISFIT = 0.01  # of the rows, whose labels no score tells
LEAST_SIZE = 1e-3  # of the expected rows of a bin, below which their noisy number does not fall
STEPS = 50  # of Newton's method for a line of two numbers


def unit_quantiles(parts: IntArray | FloatArray) -> FloatArray:
    """Quantiles of the expected distribution of scores, in its standard deviations."""
    return np.asarray(stdtrit(FREEDOM, parts) * math.sqrt((FREEDOM - 2.0) / FREEDOM))


@dataclass(frozen=True, eq=False)
class ScoreBins:
    """Intervals of scores that are expected to hold as many rows each: what is between them, and their means.

    `folded` counts scores by their size: there are two scores for each row, and they are each other's negative.
    """

    edges: FloatArray
    centres: FloatArray
    folded: bool = False

    @classmethod
    def for_noise(cls, noise: float, folded: bool = False) -> ScoreBins:
        """As many bins as the noise in the share of one of them, a part of the rows, allows."""
        count = 2 * int(np.clip(NOISE_OF_BINS / noise, 1, MOST_BINS // 2)) if noise > 0.0 else MOST_BINS
        low = 0.5 if folded else 0.0
        points = unit_quantiles(low + (1.0 - low) * (np.arange(POINTS) + 0.5) / POINTS)
        edges = unit_quantiles(low + (1.0 - low) * np.arange(1, count) / count)
        return cls(edges, points.reshape(count, -1).mean(axis=1), folded)


@dataclass(frozen=True, eq=False)
class Direction:
    """Weights of the columns with slopes of length 1, and the unit in which their scores are counted.

    A row with one output has one score. A row of several classes has one for each class that is not its own: how much
    its own is ahead.
    """

    w: FloatArray
    centre: float
    width: float

    def scores(self, block: ScaledBlock) -> FloatArray:
        """One score for each row, or for each row and each class that is not its own."""
        with np.errstate(over="ignore", invalid="ignore"):  # a warning would tell of a single row
            margins = np.nan_to_num(self._margins(block))
            if self.w.ndim > 1:
                own = block.y.astype(np.int64)
                ahead = margins[np.arange(own.size), own][:, None] - margins
                others = np.arange(margins.shape[1]) != own[:, None]
                margins = ahead[others].reshape(own.size, -1)
            return np.asarray(np.nan_to_num((margins - self.centre) / self.width))

    def _margins(self, block: ScaledBlock) -> FloatArray:
        """The products with the weights, each row by itself: one of matrices rounds a row by what lies beside it."""
        if self.w.ndim == 1 or not isinstance(X := block.X, np.ndarray):
            return block.margins(self.w)
        return np.stack([(X * weights).sum(axis=1) for weights in self.w], axis=1)


def histogram(places: IntArray, block: ScaledBlock, size: int) -> FloatArray:
    """The weighted number of rows in each place; a row with several scores is in as many places, by equal parts."""
    if places.ndim == 1:
        return np.bincount(places, weights=exact_weights(block.weight), minlength=size).astype(np.float64)
    each = np.ones(places.shape[0]) if block.weight is None else block.weight
    part = np.floor(each / places.shape[1] / TERM_STEP) * TERM_STEP  # together no more than the weight
    return np.bincount(places.ravel(), weights=np.repeat(part, places.shape[1]), minlength=size).astype(np.float64)


@takes_tensors
def counts_of_scores(block: ScaledBlock, direction: Direction, edges: FloatArray) -> FloatArray:
    """The weighted number of rows between the edges: every row adds 1 in all."""
    return histogram(np.searchsorted(edges, direction.scores(block)), block, edges.size + 1)


@takes_tensors
def counts_by_label(block: ScaledBlock, direction: Direction, bins: ScoreBins) -> FloatArray:
    """The same for each bin and label; with several classes for each size of a lead and whether it is one."""
    scores = direction.scores(block)
    place = np.searchsorted(bins.edges, np.abs(scores) if bins.folded else scores)
    label = scores > 0.0 if bins.folded else block.y > 0.0
    return histogram(2 * place + label, block, 2 * bins.centres.size)


def first_edges(columns: float) -> FloatArray:
    """The edges of the first histogram, for a direction in so many columns of mean square 1."""
    end = REACH * columns**0.25
    return np.linspace(-end, end, 1 + max(2, round(2.0 * end / BIN)))


@dataclass(frozen=True)
class Expected:
    """Where the scores of steps lie if these give labels the share that the constant has.

    `intercept` is that of the steps, `norm` the length of their slopes, `constant` the log-odds of the share.
    """

    intercept: float
    norm: float
    constant: float

    def locations(self, widths: FloatArray) -> FloatArray:
        """One location for each width: the wider scores are, the further out is the score of the constant."""
        damping = np.sqrt(1.0 + PROBIT * (self.norm * widths) ** 2)
        return (self.constant * damping - self.intercept) / self.norm


def place_of(
    shares: FloatArray, noise: float, rows: float, edges: FloatArray, expected_place: Expected | None
) -> tuple[float, float]:
    """The mean location and width of scores, given noisy shares of rows between the edges.

    Before, the location is within a deviation of a column from 0 and within half a width of where it is expected; the
    logarithm of the width, to base 2, has a deviation of 1.
    """
    locations, widths = np.arange(edges[0], edges[-1], 0.1), 2.0 ** np.arange(-3.0, math.log2(edges[-1]) + 0.01, 0.25)
    unit = math.sqrt((FREEDOM - 2.0) / FREEDOM) * widths[None, :, None]
    below = stdtr(FREEDOM, (edges - locations[:, None, None]) / unit)
    expected = np.diff(below, axis=-1, prepend=0.0, append=1.0)
    # No law of scores is known better than to its own size, nor any share better than by a row.
    variance = noise**2 + expected / rows + expected**2 + 1.0 / rows**2
    likely = -0.5 * ((shares - expected) ** 2 / variance + np.log(variance)).sum(axis=-1)
    likely -= 0.5 * (locations[:, None] ** 2 + np.log2(widths / USUAL_WIDTH) ** 2)
    if expected_place is not None:
        middle = np.clip(expected_place.locations(widths), edges[0], edges[-1])
        away = (locations[:, None] - middle) / (DOUBT * widths)
        likely -= 0.5 * away**2 + np.log(widths)
    mass = np.exp(likely - likely.max())
    mass /= mass.sum()
    return float(mass.sum(axis=1) @ locations), math.exp(float(mass.sum(axis=0) @ np.log(widths)))


@dataclass(frozen=True, eq=False)
class LabelledScores:
    """Noisy shares of rows by bin of scores (first axis) and label; `noise` is the standard deviation of each.

    `share` is that of the rows with label 1 and its standard deviation, as counted before; None for folded bins, whose
    line goes through 0.
    """

    shares: FloatArray
    noise: float
    rows: float
    bins: ScoreBins
    share: tuple[float, float] | None

    def line(self, ridge: float = 0.0, lasso: float = 0.0) -> tuple[float, float]:
        """Intercept and slope of the log-odds with the least expected log-loss and penalty."""
        sizes, doubt = self._sizes()
        levels = np.zeros(1) if self.share is None else LEVELS
        curves = expit(levels[:, None, None] + SLOPES[:, None] * self.bins.centres)
        believed = self._posterior(curves, sizes, doubt)
        # No curve is exact: scores that are far off cost so much that a small doubt about them must count.
        truth = 0.5 * MISFIT + (1.0 - MISFIT) * np.einsum("ab,abk->k", believed, curves)
        return best_line(self.bins.centres, sizes, truth, self.share is not None, ridge, lasso)

    def _sizes(self) -> tuple[FloatArray, FloatArray]:
        """The share of the rows in each bin, and its variance: equal ones as far as the noise hides the counted."""
        expected, noise = 1.0 / self.bins.centres.size, 2.0 * self.noise**2
        trust = expected**2 / (expected**2 + noise)
        found = np.maximum(expected + trust * (self.shares.sum(axis=1) - expected), LEAST_SIZE * expected)
        return found / found.sum(), np.full(found.size, trust * noise)

    def _posterior(self, curves: FloatArray, sizes: FloatArray, doubt: FloatArray) -> FloatArray:
        """The probability of each intercept and slope, given how many more rows of each bin have label 1."""
        ahead, differences = 2.0 * curves - 1.0, self.shares[:, 1] - self.shares[:, 0]
        sampled = 4.0 * sizes * curves * (1.0 - curves) / self.rows
        variance = 2.0 * self.noise**2 + sampled + doubt * ahead**2
        variance = np.maximum(variance, 1.0 / self.rows**2)  # one row
        likely = -0.5 * ((differences - sizes * ahead) ** 2 / variance + np.log(variance)).sum(axis=-1)
        if self.share is not None:
            value, spread = self.share
            mean = curves @ sizes
            likely -= 0.5 * (mean - value) ** 2 / (spread**2 + 0.25 / self.rows)
            likely += np.log(mean * (1.0 - mean))  # before, all shares are equally likely, not all levels
        likely[:, 0] += math.log(NOTHING)
        likely[:, 1:] += math.log((1.0 - NOTHING) / (SLOPES.size - 1))
        mass = np.exp(likely - likely.max())
        return np.asarray(mass / mass.sum())


def best_line(
    scores: FloatArray, sizes: FloatArray, shares: FloatArray, intercept: bool, ridge: float, lasso: float
) -> tuple[float, float]:
    """The intercept (or 0) and the slope, not below 0, of the log-odds with the least mean log-loss and penalty."""
    columns = np.column_stack([np.full(scores.size, float(intercept)), scores])
    line = np.array([math.log(float(sizes @ shares) / float(sizes @ (1.0 - shares))) if intercept else 0.0, 0.0])
    penalty = np.diag([1e-12, ridge + 1e-12])
    for _ in range(STEPS):
        found = expit(columns @ line)
        slope = columns.T @ (sizes * (found - shares)) + penalty @ line + np.array([0.0, lasso])
        curvature = (columns * (sizes * found * (1.0 - found))[:, None]).T @ columns + penalty
        move = np.linalg.solve(curvature, slope)
        line -= move / max(1.0, float(np.abs(move).max()))
    if line[1] > 0.0:
        return float(line[0]), float(line[1])
    return best_line(0.0 * scores, sizes, shares, intercept, 1.0, 0.0) if scores.any() else (float(line[0]), 0.0)
