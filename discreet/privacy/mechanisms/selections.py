"""Exponential mechanisms: one candidate is drawn with probability proportional to exp(-error / scale).

How such a draw is made exactly depends on the candidates: vertices of a polytope, points of a convex set, places in an
interval. What the mechanism needs of them comes as data, from the solver or the transformer that has the rows.

Greedy selections are followed by the release of the chosen entry of a sum. Last, a random number of trials, of which
only the best is released; proof: docs/guarantees/private-search.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np

from discreet._common.types import FloatArray, IntArray
from discreet.privacy import accounting
from discreet.privacy.budget import Budget
from discreet.privacy.mechanisms.additive import (
    Gaussian,
    Laplace,
    NoisyGrid,
    PricedByMultiplier,
    noise_scale,
)
from discreet.privacy.random.generator import RandomGenerator
from discreet.privacy.relation import Sensitivity

# Noise multipliers of the intercept over that of the selections: a tenth of the cost of a step, in rho for
# Gaussian noise (1 / 3^2) and in epsilon for Laplace noise (1 / 4.5 against 2).
GAUSSIAN_RATIO, LAPLACE_RATIO = 3.0, 4.5


class _Selections(PricedByMultiplier):
    """`count` selections, each of bounded range 2 / multiplier."""

    count: int

    def _cost(self) -> Any:
        return accounting.selection_event(2.0 / self.multiplier, self.count)


@dataclass(frozen=True)
class VertexSelections(_Selections):
    """`count` times: select a vertex by the exponential mechanism; if there is an intercept, release its entry.

    Scores of sensitivity D are divided by multiplier * D, which is the exponential mechanism with epsilon =
    2 / multiplier.

    Guarantee: the events of a step, in this order: a selection of bounded range 2 / multiplier, and for an
    intercept a Gaussian (or Laplace) release of 3 (or 4.5) times the multiplier.
    """

    multiplier: float
    count: int
    intercept: Literal["gaussian", "laplace"] | None = None

    def _cost(self) -> Any:
        if self.intercept is None:
            return super()._cost()
        selection = accounting.selection_event(2.0 / self.multiplier)
        return accounting.compose([selection, self._of_intercept.event] * self.count)

    @property
    def _of_intercept(self) -> Gaussian | Laplace:
        """The mechanism of the intercept's entry in one step."""
        if self.intercept == "laplace":
            return Laplace(LAPLACE_RATIO * self.multiplier)
        return Gaussian(GAUSSIAN_RATIO * self.multiplier)

    def scale(self, sensitivity: Sensitivity) -> float:
        """By what the scores of this sensitivity are divided; 0: take the best vertex."""
        return noise_scale(self.multiplier, sensitivity.l2)

    def uniforms(self, rng: RandomGenerator, numbers: int) -> FloatArray:
        """The numbers in (0, 1) that decide the selections, (count, numbers).

        A sampler of the vertices, made with `scale`, turns each row of them into a vertex.
        """
        return rng.uniform((self.count, numbers))

    def intercept_grid(self, sensitivity: Sensitivity, rows: int) -> NoisyGrid:
        """The grid and the noise of the clipped sum of the intercept's entries."""
        return self._of_intercept.grid(sensitivity, 1, rows)


@dataclass(frozen=True)
class TopSelections(_Selections):
    """`count` times: select the best of many scores by the exponential mechanism, the chosen ones being left out.

    Gumbel noise of scale multiplier * D on scores of sensitivity D is the exponential mechanism with epsilon =
    2 / multiplier. Fresh noise for each choice among the others has the law of the `count` largest noisy scores of one
    draw (docs/guarantees/screened.md).

    Guarantee: `count` selections, each of bounded range 2 / multiplier.
    """

    multiplier: float
    count: int

    def choose(self, rng: RandomGenerator, scores: FloatArray, sensitivity: Sensitivity) -> int:
        """The place of the largest score after noise; nothing else of the scores is released."""
        if self.multiplier == 0.0:
            return int(np.argmax(scores))
        return rng.gumbel_argmax(scores / (self.multiplier * sensitivity.l2))

    def choose_all(self, rng: RandomGenerator, scores: FloatArray, sensitivity: Sensitivity) -> IntArray:
        """The places of all choices, in the order of the scores' places.

        Guarantee: costs `event`, if every score moves by at most `sensitivity`.
        """
        left = np.arange(scores.size)
        for _ in range(self.count):
            left = np.delete(left, self.choose(rng, scores[left], sensitivity))
        return np.setdiff1d(np.arange(scores.size), left)


@dataclass(frozen=True)
class SelectionsThenFit(PricedByMultiplier):
    """Selections of the best of many scores with a share of the budget, and a fit with what is left.

    Shares add up in the unit in which the kind of budget composes: rho, or epsilon if `pure`. A multiplier z stands
    for rho = 1 / (2 z^2), or epsilon = 1 / z.

    Guarantee: the events, in this order: `count` selections, and a release that is Gaussian DP (or `pure` epsilon-DP)
    with the parameter of `rest`. The fit must cost no more than `rest`.
    """

    multiplier: float
    count: int
    share: float
    pure: bool = False

    def _cost(self) -> Any:
        if self.pure:
            fit = accounting.pure_event((1.0 - self.share) / self.multiplier)
        else:
            fit = accounting.gaussian_event(self.multiplier / math.sqrt(1.0 - self.share))
        return accounting.compose([self.selections.event, fit])

    @property
    def selections(self) -> TopSelections:
        """The mechanism of the choices."""
        relative = 2.0 * self.count / self.share if self.pure else math.sqrt(self.count / self.share)
        return TopSelections(self.multiplier * relative, self.count)

    @property
    def rest(self) -> Budget:
        """What is left to the fit."""
        if self.multiplier == 0.0:
            return Budget.gdp(math.inf)
        left = 1.0 - self.share
        return Budget.pure(left / self.multiplier) if self.pure else Budget.gdp(math.sqrt(left) / self.multiplier)


class PointSampler(Protocol):
    """Draws points, as the rows of an array, exactly from one density."""

    def draw(self, rng: RandomGenerator, count: int = 1) -> FloatArray: ...


@dataclass(frozen=True)
class PointSelection(PricedByMultiplier):
    """Draws a point of a set with density proportional to exp(-energy / (multiplier * sensitivity)).

    The sensitivity is how far the energy's differences between two points can move.

    Guarantee: bounded range, and so pure DP, with epsilon = 1 / multiplier.
    """

    multiplier: float

    def _cost(self) -> Any:
        return accounting.selection_event(1.0 / self.multiplier)

    def rate(self, sensitivity: Sensitivity) -> float:
        """What the energy is multiplied by; one that cannot move, because the set is a point, does not matter."""
        return 1.0 / (self.multiplier * sensitivity.l2) if sensitivity.l2 > 0.0 else 0.0

    def draw(
        self, rng: RandomGenerator, sampler_at: Callable[[float], PointSampler], sensitivity: Sensitivity
    ) -> FloatArray:
        """One point; `sampler_at(rate)` samples exactly from the density proportional to exp(-rate * energy)."""
        return sampler_at(self.rate(sensitivity)).draw(rng)[0]


@dataclass(frozen=True)
class QuantileSelection(_Selections):
    """`count` selections of a place by its rank error, with noise of `multiplier` sensitivities on the rank.

    Guarantee: each is the exponential mechanism with epsilon 2 / multiplier, of that bounded range.
    """

    multiplier: float
    count: int

    def choose(
        self, rng: RandomGenerator, error: FloatArray, places: IntArray, sensitivity: Sensitivity
    ) -> tuple[int, int]:
        """A place, with probability proportional to exp(-rank error / (multiplier * sensitivity)).

        Places come in runs of equal error: run k has `places[k]` of them, all with `error[k]`. A run is drawn first,
        in proportion to its length, and then one of its places, uniformly.

        Returns
        -------
        run, place : int
            The number of the run, and of the place in it, from 0.
        """
        # Measured from the smallest error, so that large ranks lose no digits; a shift changes no probability.
        excess = error - error[places > 0].min()
        with np.errstate(divide="ignore"):  # a run without places has score -inf and is never chosen
            scores = np.log(places) - excess / (self.multiplier * sensitivity.l1)
        run = rng.gumbel_argmax(scores)
        return run, int(rng.integers(int(places[run]), 1)[0])


@dataclass(frozen=True)
class GumbelGreedy(Gaussian):
    """`count` times: select one of many scores by the exponential mechanism, then release its gradient entry.

    Gumbel noise of scale multiplier * D on scores of sensitivity D is the exponential mechanism with
    epsilon = 2 / multiplier; the entry gets Gaussian noise of the same multiplier, so both halves of a step
    cost the same rho. With `measured`, a second number of the chosen coordinate is released, for an eighth of what the
    two cost together.

    Guarantee: the events of a step, in this order: a selection of bounded range 2 / multiplier, a Gaussian, and with
    `measured` a Gaussian of twice the multiplier.
    """

    measured: bool = False

    def _cost(self) -> Any:
        parts = [accounting.selection_event(2.0 / self.multiplier), accounting.gaussian_event(self.multiplier)]
        if self.measured:
            parts.append(self.of_measurement.event)
        return accounting.compose(parts * self.count)

    @property
    def of_measurement(self) -> Gaussian:
        """The mechanism of the second number of a chosen coordinate."""
        return Gaussian(2.0 * self.multiplier)

    def choose(self, rng: RandomGenerator, scores: FloatArray, sensitivity: Sensitivity) -> int:
        """The index of the largest score after noise; nothing else of the scores is released."""
        return TopSelections(self.multiplier, 1).choose(rng, scores, sensitivity)


@dataclass(frozen=True)
class LaplaceGreedy(Laplace):
    """The same with Laplace noise in both places, as the thesis has it, at its true cost.

    Report-noisy-max with Laplace noise of scale multiplier * D is (2 / multiplier)-DP, twice what is printed,
    and not of bounded range: nothing better is known of it.

    Guarantee: the events of a step: a pure release of epsilon 2 / multiplier, a Laplace release.
    """

    def _cost(self) -> Any:
        choices = accounting.pure_event(2.0 / self.multiplier, self.count)
        return accounting.compose([choices, accounting.laplace_event(self.multiplier, self.count)])

    def choose(self, rng: RandomGenerator, scores: FloatArray, sensitivity: Sensitivity) -> int:
        """The index of the largest score after noise; nothing else of the scores is released."""
        if self.multiplier == 0.0:
            return int(np.argmax(scores))
        return int(np.argmax(scores + self.multiplier * sensitivity.l1 * rng.laplace(scores.size)))


LAWS = {"geometric": 1.0, "logarithmic": 0.0}  # eta of the truncated negative binomial
_BITS = 60
_BLOCK = 64


@dataclass(frozen=True)
class RandomTrials:
    """Draws how many trials there are, at least one, and states what the best of them costs.

    Guarantee: if each trial is an independent run of one mechanism that costs at most one of some events, then the best
    trial costs `event(events)`. The number of trials must not be released, nor anything of the other trials.
    """

    law: accounting.TrialsLaw

    @classmethod
    def expecting(cls, mean: float, law: str = "geometric") -> RandomTrials:
        """So many trials on average, at least 1; exactly one trial is not random."""
        if law not in LAWS:
            raise ValueError(f"the law of the number of trials must be one of {', '.join(LAWS)}; got {law!r}.")
        return cls(accounting.TrialsLaw.with_mean(LAWS[law], mean))

    def event(self, events: Sequence[Any]) -> Any:
        """The cost of the best trial, if each costs one of `events`."""
        return accounting.best_of_trials_event(events, self.law.eta, self.law.gamma)

    def draw(self, rng: RandomGenerator) -> int:
        """The number of trials, without rounding: whole random numbers are compared with whole numbers.

        A geometric number k that is kept with probability 1 / k has the logarithmic law.
        """
        if self.law.eta not in LAWS.values():
            raise ValueError(f"only the laws with eta = 0 and eta = 1 can be drawn; got eta = {self.law.eta!r}.")
        while True:
            count = self._geometric(rng)
            if self.law.eta == 1.0 or int(rng.integers(count, 1)[0]) == 0:
                return count

    def _geometric(self, rng: RandomGenerator) -> int:
        """How many draws until one succeeds, each with probability gamma, which is a multiple of 2^-60."""
        below, before = int(self.law.gamma * 2**_BITS), 0
        while True:
            stops = (rng.integers(2**_BITS, _BLOCK) < below).nonzero()[0]
            if stops.size:
                return before + int(stops[0]) + 1
            before += _BLOCK
