"""Each kind of private release: what one of them costs in rho, mu and pure epsilon, and its dominating pair.

A noise multiplier is the noise's standard deviation (Laplace: scale) over the sensitivity, with the relation
already inside the sensitivity. The two sampled kinds are stated for the clip C of one row instead, because
their pairs are: Poisson sampling has multiplier std / C under every relation, a batch of fixed size std / (2 C).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from discreet._common.checks import real_number
from discreet.privacy.accounting import pairs
from discreet.privacy.accounting.pairs import Array, Pair
from discreet.privacy.relation import Relation


class Release:
    """One private release; a cost that the release does not have is infinite."""

    def resolve(self, relation: Relation) -> Release:
        """Return the simplest release with the same cost under the relation, or refuse the relation."""
        return self

    def rho(self) -> float:
        """Return the zCDP cost."""
        return math.inf

    def mu(self) -> float:
        """Return the Gaussian DP cost."""
        return math.inf

    def pure_epsilon(self) -> float:
        """Return the pure DP cost."""
        return math.inf

    def pair(self) -> Pair | None:
        """Return a pair that dominates in both directions (record in, record out), or None if there is none."""
        return None

    def pairs(self) -> tuple[Pair, Pair] | None:
        """Return a dominating pair for each direction, or None if there is none."""
        pair = self.pair()
        return None if pair is None else (pair, pair)


@dataclass(frozen=True)
class NonPrivate(Release):
    """A release without noise."""


class _GaussianCost(Release):
    """A release with Gaussian DP, which is mu^2 / 2-zCDP."""

    def rho(self) -> float:
        return 0.5 * self.mu() ** 2


@dataclass(frozen=True)
class GaussianNoise(_GaussianCost):
    """Gaussian noise: exactly 1 / multiplier in mu."""

    multiplier: float

    def mu(self) -> float:
        return 1.0 / self.multiplier

    def pair(self) -> Pair:
        return pairs.SampledGaussianPair(1.0, 1.0 / self.multiplier)


class _Pure(Release):
    """A release with pure DP, which is epsilon^2 / 2-zCDP."""

    def rho(self) -> float:
        return 0.5 * self.pure_epsilon() ** 2


@dataclass(frozen=True)
class LaplaceNoise(_Pure):
    """Laplace noise of scale multiplier times the l1 sensitivity."""

    multiplier: float

    def pure_epsilon(self) -> float:
        return 1.0 / self.multiplier

    def pair(self) -> Pair:
        return pairs.LaplacePair(self.pure_epsilon())


@dataclass(frozen=True)
class Selection(Release):
    """An exponential-mechanism selection, of bounded range epsilon; it is not (epsilon / 2)-GDP."""

    epsilon: float

    def rho(self) -> float:
        return self.epsilon**2 / 8.0

    def pure_epsilon(self) -> float:
        return self.epsilon

    def pair(self) -> Pair:
        return pairs.BoundedRangePair(self.epsilon)


@dataclass(frozen=True)
class Response(_Pure):
    """Randomised response over some buckets: a uniform bucket with probability `noise`, else the truth."""

    noise: float
    buckets: int

    def resolve(self, relation: Relation) -> Release:
        if relation is Relation.ADD_REMOVE:
            raise ValueError("randomised response reveals how many people answered; use replace or zero_out")
        return self

    def pure_epsilon(self) -> float:
        return math.log1p(self.buckets * (1.0 - self.noise) / self.noise)

    def pair(self) -> Pair:
        return pairs.randomised_response(self.noise, self.buckets)


@dataclass(frozen=True)
class PureNoise(_Pure):
    """Any release with pure DP; randomised response of the same epsilon dominates it."""

    epsilon: float

    def pure_epsilon(self) -> float:
        return self.epsilon

    def pair(self) -> Pair:
        return pairs.pure(self.epsilon)


@dataclass(frozen=True)
class Objective(Release):
    """The minimiser of an objective with Gaussian noise on its gradient; it has no cost in rho or mu."""

    shift: float
    multiplier: float
    tails: int

    def pair(self) -> Pair:
        return pairs.ShiftedTailsPair(self.shift, 1.0 / self.multiplier, self.tails)


@dataclass(frozen=True)
class PoissonGaussianNoise(_GaussianCost):
    """Gaussian noise on a Poisson sample; multiplier = std / C. The relation is filled in by `resolve`.

    Sampling does not lower mu and rho, for any sampler (docs/guarantees/sgd.md, Theorem 4).

    Unlike other multipliers this one does not contain the relation, because the whole pair depends on it: a
    sampled row adds +C to the sum of one table and, to that of the other, -C if it was replaced, else 0.
    """

    rate: float
    multiplier: float
    relation: Relation = Relation.REPLACE

    def resolve(self, relation: Relation) -> Release:
        if self.rate == 1.0:
            return GaussianNoise(self.multiplier / _distance_of_means(relation))
        return PoissonGaussianNoise(self.rate, self.multiplier, relation)

    def mu(self) -> float:
        # At most half of the rows: where one table's batch has the row, the other's may be taken not to have it.
        distance = 1.0 if self.rate <= 0.5 else _distance_of_means(self.relation)
        return distance / self.multiplier

    def pairs(self) -> tuple[Pair, Pair]:
        shift = 1.0 / self.multiplier
        if self.relation is Relation.REPLACE:
            pair = pairs.PoissonReplacePair(self.rate, shift)
            return pair, pair
        removed = pairs.SampledGaussianPair(self.rate, shift)
        return removed, pairs.ReversedPair(removed)


def _distance_of_means(relation: Relation) -> float:
    """Return the distance of the two sums, over C, when the row is sampled: +C against -C, or C against 0."""
    other = -1.0 if relation is Relation.REPLACE else 0.0
    return 1.0 - other


@dataclass(frozen=True)
class FixedSizeGaussianNoise(_GaussianCost):
    """Gaussian noise on a batch of fixed size drawn without replacement; multiplier = std / (2 C)."""

    rate: float
    multiplier: float

    def resolve(self, relation: Relation) -> Release:
        if relation is Relation.ADD_REMOVE:
            raise ValueError("a batch of fixed size needs a public number of rows; use replace or zero_out")
        return GaussianNoise(self.multiplier) if self.rate == 1.0 else self

    def mu(self) -> float:
        return 1.0 / self.multiplier

    def pair(self) -> Pair:
        return pairs.FixedSizeGaussianPair(self.rate, 1.0 / self.multiplier)


@dataclass(frozen=True)
class GaussianMixture(_GaussianCost):
    """Gaussian noise on a sum that a record moves by a random amount: shifts (over std) and weights."""

    shifts: tuple[float, ...]
    weights: tuple[float, ...]

    def resolve(self, relation: Relation) -> Release:
        if relation is Relation.REPLACE:
            raise ValueError("a mixture of Gaussians has no known pair under replace; use zero_out or add_remove")
        return self

    def mu(self) -> float:
        return max(self.shifts)

    def pairs(self) -> tuple[Pair, Pair]:
        removed = pairs.GaussianMixturePair(self.shifts, self.weights)
        return removed, pairs.ReversedPair(removed)


@dataclass(frozen=True)
class BestOfTrials(Release):
    """The best of a random number of trials, each of which has one of several compositions of releases."""

    trials: tuple[tuple[tuple[Release, int], ...], ...]
    law: TrialsLaw

    def resolve(self, relation: Relation) -> Release:
        resolved = (tuple((release.resolve(relation), n) for release, n in trial) for trial in self.trials)
        return BestOfTrials(tuple(dict.fromkeys(resolved)), self.law)

    def rho(self) -> float:
        """Known for trials with pure DP alone."""
        return 0.5 * self.pure_epsilon() ** 2

    def pure_epsilon(self) -> float:
        from discreet.privacy.accounting.best_of_trials import pure_cost

        return pure_cost(max(trial.pure_epsilon() for trial in self._compositions()), self.law)

    def pair(self) -> Pair:
        from discreet.privacy.accounting.best_of_trials import best_pair

        return best_pair(self._compositions(), self.law)

    def _compositions(self) -> tuple[Composition, ...]:
        return tuple(Composition(trial) for trial in self.trials)


_GRID = 2.0**60  # probabilities are multiples of its inverse, so that they can be drawn exactly
_LEAST = 2.0**-40


@dataclass(frozen=True)
class TrialsLaw:
    """The number of trials K, at least one: a truncated negative binomial.

    With the generating function f(s) = E s^K, all that the accounting of "the best of K trials" needs is f' and f;
    f'(s) is proportional to (1 - (1 - gamma) s)^-(eta + 1). Proof: docs/guarantees/private-search.md.

    eta = 1 is the geometric law, eta = 0 the logarithmic one. A smaller gamma means more trials.
    """

    eta: float
    gamma: float

    def __post_init__(self) -> None:
        if not real_number("eta", self.eta) > -1.0 or self.eta > 100.0:
            raise ValueError(f"eta must lie above -1 and be at most 100, got {self.eta!r}")
        if not _LEAST <= real_number("gamma", self.gamma) < 1.0:
            raise ValueError(f"gamma must be at least 2^-40 and below 1, got {self.gamma!r}")

    @classmethod
    def with_mean(cls, eta: float, mean: float) -> TrialsLaw:
        """The law with this expected number of trials, above 1, to the rounding of gamma."""
        if not 1.0 < real_number("mean", mean) <= 1e6:
            raise ValueError(f"the expected number of trials must be above 1 and at most 10^6, got {mean!r}")
        low, high = math.log(_LEAST), 0.0
        for _ in range(100):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if cls(eta, math.exp(middle)).mean > mean else (low, middle)
        return cls(eta, math.floor(math.exp(high) * _GRID) / _GRID)

    @property
    def mean(self) -> float:
        """The expected number of trials."""
        return float(self.rate(np.zeros(1))[0])

    def rate(self, tail: Array) -> Array:
        """f'(1 - tail): how much likelier the best of K trials is than one trial, where a share `tail` is better."""
        mixed = self.gamma + (1.0 - self.gamma) * tail
        return np.asarray(self._scale * (1.0 - self.gamma) * mixed ** -(self.eta + 1.0))

    def any_of(self, probability: Array) -> Array:
        """1 - f(1 - p): the probability that an event of probability p happens in at least one of K trials."""
        logs = np.log1p((1.0 - self.gamma) / self.gamma * probability)
        if self.eta == 0.0:
            return np.asarray(self._scale * logs)
        return np.asarray(-self._scale * self.gamma**-self.eta / self.eta * np.expm1(-self.eta * logs))

    @property
    def _scale(self) -> float:
        """What makes f(1) = 1."""
        if self.eta == 0.0:
            return -1.0 / math.log(self.gamma)
        return self.eta / math.expm1(-self.eta * math.log(self.gamma))


Counted = tuple[tuple[Release, int], ...]


@dataclass(frozen=True)
class Composition:
    """Everything a plan releases, with how often.

    Attributes
    ----------
    totals : tuple of (Release, int)
        Each distinct release once.
    order : tuple of (Release, int), optional
        The Gaussian and selection releases in the order executed; None if there is no selection or the
        order is too long to keep.
    """

    totals: Counted
    order: Counted | None = None

    @property
    def is_private(self) -> bool:
        """Whether every release has noise."""
        return not any(isinstance(release, NonPrivate) for release, _ in self.totals)

    @property
    def only_gaussian(self) -> bool:
        """Whether all releases are plain Gaussians, for which Gaussian DP is exact."""
        return all(isinstance(release, GaussianNoise) for release, _ in self.totals)

    @property
    def gaussian_mu(self) -> float:
        """The mu of the plain Gaussian releases alone."""
        return math.sqrt(math.fsum(n * r.mu() ** 2 for r, n in self.totals if isinstance(r, GaussianNoise)))

    @property
    def selections(self) -> Counted:
        """The selections alone."""
        return tuple((release, n) for release, n in self.totals if isinstance(release, Selection))

    @property
    def others(self) -> Counted:
        """What is neither a plain Gaussian nor a selection."""
        return tuple((r, n) for r, n in self.totals if not isinstance(r, GaussianNoise | Selection))

    @property
    def order_rho(self) -> float:
        """The zCDP cost of the Gaussian and selection releases in `order`."""
        return math.fsum(n * release.rho() for release, n in self.order or ())

    def rho(self) -> float:
        """Return the zCDP cost."""
        return math.fsum(n * release.rho() for release, n in self.totals)

    def mu(self) -> float:
        """Return the Gaussian DP cost, infinite if a release has none."""
        return math.sqrt(math.fsum(n * release.mu() ** 2 for release, n in self.totals))

    def pure_epsilon(self) -> float:
        """Return the pure DP cost."""
        return math.fsum(n * release.pure_epsilon() for release, n in self.totals)
