"""What the known noise says about released weights: how far to shrink each direction, and where the intercept is.

Post-processing of released numbers: it costs nothing. Derivation: docs/guarantees/newton.md, step 4.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from discreet._common.types import FloatArray

# Where these come from: docs/defaults.md.
NOTHING = 0.5  # probability, before the rows are read, that the columns tell nothing
SIGNALS = 2.0 ** np.arange(-10.0, 3.5, 0.5)  # variances of the scores, over the usual one, that are equally likely
STRENGTHS = 2.0 ** np.arange(-4.0, 12.0, 0.5)  # the same for variances of the weights over those of their noise
LEFT = 0.8  # of the weights: clipping has shortened them already, by a part that is not known
PROBIT = math.pi / 8.0  # a logistic function averaged over scores of variance v is one of score / sqrt(1 + v PROBIT)
MOST_DAMPED = 2.0  # variance of scores that the rule is undone for: at 1 / PROBIT = 2.5 nothing would be left to undo
CURVED = 0.1  # how wrong that rule may be about the intercept, times the variance of the scores
Link = Literal["identity", "logit", "log"]
SMALLEST_NOISE = 1e-300  # a variance that is 0 must not be divided by


@dataclass(frozen=True, eq=False)
class NoisyWeights:
    """Released weights of the columns, with the covariance of their noise."""

    slopes: FloatArray
    noise: FloatArray

    def expected(self, usual: float) -> FloatArray:
        """The mean of the weights without noise, given the noisy ones, under a prior that knows no column.

        Before the rows are read, all weights are 0 (with probability `NOTHING`), or normal around 0: with one variance
        for all directions, or with one that is in proportion to that of the noise. How large it is, is open, but the
        scores have no more variance than the largest of `SIGNALS`: noise must not pass for scores that nothing has.
        `usual` is the standard deviation that scores usually have.
        """
        return self._mean_of(self._posterior(usual))

    def expected_signal(self, usual: float) -> tuple[FloatArray, float]:
        """The same given that not all weights are 0, and the probability that they are."""
        posterior = self._posterior(usual)
        nothing = float(posterior.masses[0])
        masses = np.append(0.0, posterior.masses[1:])
        return self._mean_of(replace(posterior, masses=masses / max(masses.sum(), SMALLEST_NOISE))), nothing

    def _posterior(self, usual: float) -> Posterior:
        noises, vectors = np.linalg.eigh(self.noise)
        noises = np.maximum(noises, SMALLEST_NOISE)
        along = vectors.T @ self.slopes
        equal = np.outer(SIGNALS * usual**2 / along.size, np.ones(along.size))
        largest = float(SIGNALS[-1]) * usual**2 / float(noises.sum())
        strengths = np.append(STRENGTHS[largest > STRENGTHS], min(STRENGTHS[-1], largest))
        signals = np.vstack([np.zeros(along.size), equal, np.outer(strengths, noises)])
        parts = (NOTHING, 1), (0.5 * (1.0 - NOTHING), SIGNALS.size), (0.5 * (1.0 - NOTHING), strengths.size)
        prior = np.concatenate([np.full(size, mass / size) for mass, size in parts])
        total = signals + noises
        likelihood = np.log(prior) - 0.5 * (np.log(total) + along**2 / total).sum(axis=1)
        masses = np.exp(likelihood - likelihood.max())
        return Posterior(vectors, along, signals / total, masses / masses.sum())

    def _mean_of(self, posterior: Posterior) -> FloatArray:
        kept = np.minimum(posterior.masses @ posterior.kept / LEFT, 1.0)
        found = np.asarray(posterior.vectors @ (kept * posterior.along))
        return np.where(self.slopes == 0.0, 0.0, found)  # what a penalty has left out stays out


@dataclass(frozen=True, eq=False)
class Posterior:
    """Probabilities of the variances that weights may have; the first is 0.

    `kept` is the part of the noisy weights, `along` the eigenvectors of their noise, that each variance leaves.
    """

    vectors: FloatArray
    along: FloatArray
    kept: FloatArray
    masses: FloatArray


@dataclass(frozen=True)
class Estimate:
    """A number and the variance of its error."""

    value: float
    variance: float

    def combined(self, other: Estimate) -> float:
        """The mean of two estimates, weighted by the inverse of their variances."""
        if math.isinf(other.variance):
            return self.value
        share = other.variance / max(self.variance + other.variance, SMALLEST_NOISE)
        return share * self.value + (1.0 - share) * other.value


@dataclass(frozen=True, eq=False)
class Columns:
    """The means and covariances of the columns, as a noisy second moment with a last column of ones has them.

    `noise` is the standard deviation of the noise in each mean.
    """

    moment: FloatArray
    noise: float

    @property
    def means(self) -> FloatArray:
        return np.asarray(self.moment[-1, :-1] / self.moment[-1, -1])

    def mean_of(self, w: FloatArray) -> float:
        """The mean of the scores of weights with an intercept."""
        return float(w[-1] + self.means @ w[:-1])

    def variance_of(self, slopes: FloatArray) -> float:
        """The variance of the scores."""
        within = float(slopes @ self.moment[:-1, :-1] @ slopes)
        return max(within - self.moment[-1, -1] * float(self.means @ slopes) ** 2, 0.0)

    def undamped(self, slopes: FloatArray) -> FloatArray:
        """Slopes of labels that few steps from the constant have found, as many steps would find them.

        The first steps see how labels change with the columns on average: the true slopes over sqrt(1 + v PROBIT), v
        being the variance of the true scores. That of the slopes found is v / (1 + v PROBIT).
        """
        found = min(self.variance_of(slopes), MOST_DAMPED)
        return slopes / math.sqrt(1.0 - PROBIT * found)

    def intercept_for(self, constant: Estimate, slopes: FloatArray, link: Link) -> Estimate:
        """The intercept with which the mean prediction is that of the constant.

        The mean of exp of normal scores of variance v is that of their mean, times exp(v / 2).
        """
        variance = 0.0 if link == "identity" else self.variance_of(slopes)
        at_means = (
            constant.value - 0.5 * variance if link == "log" else constant.value * math.sqrt(1 + PROBIT * variance)
        )
        value = at_means - float(self.means @ slopes)
        doubt = (CURVED * variance) ** 2 + self.noise**2 * float(slopes @ slopes)
        return Estimate(value, constant.variance + doubt)


def with_intercept(
    w: FloatArray, shrunk: FloatArray, noise: FloatArray, columns: Columns, constant: Estimate | None, link: Link,
    bias: float = 0.0,
) -> FloatArray:  # fmt: skip
    """Weights, intercept last, of which the slopes have been shrunk; the constant's score has a say in the intercept.

    `bias` says how far clipping may have moved the intercept.

    What the slopes lose takes the noise of the intercept along, so far as both have it in common.
    """
    common = np.linalg.lstsq(noise[:-1, :-1], noise[-1, :-1], rcond=None)[0]
    lost = float(common @ (w[:-1] - shrunk))
    own = Estimate(float(w[-1]) - lost, max(float(noise[-1, -1] - common @ noise[-1, :-1]), 0.0))
    if constant is None:
        return np.append(shrunk, own.value)
    own = Estimate(own.value, own.variance + bias**2)
    return np.append(shrunk, own.combined(columns.intercept_for(constant, shrunk, link)))


def averaged_noise(progress: FloatArray, steps: FloatArray, weights: FloatArray) -> FloatArray:
    """The variance, along each direction, of the weighted mean of the iterates.

    Step t adds noise of standard deviation `steps[t]`, and leaves the part 1 - progress of what it finds.
    """
    kept, variance = 1.0 - progress, np.zeros_like(progress)
    for t, deviation in enumerate(steps):
        in_mean = kept[:, None] ** np.arange(steps.size - t) @ weights[t:]
        variance += (deviation * in_mean) ** 2
    return variance


def part_of_the_way(progress: FloatArray, weights: FloatArray) -> FloatArray:
    """How far, along each direction, the weighted mean of the iterates has come from the start to the minimum."""
    return np.asarray(1.0 - (1.0 - progress)[:, None] ** np.arange(1, weights.size + 1) @ weights)
