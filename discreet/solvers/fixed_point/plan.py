"""What a noisy fixed-point iteration decides before the rows are read, and what it returns."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet._common.digest import digest_of
from discreet._common.types import FloatArray, IntArray
from discreet.privacy import accounting, mechanisms
from discreet.privacy.guarantee import Guarantee, guarantee_for
from discreet.privacy.mechanisms.grid import NoisyGrid
from discreet.privacy.planned_release import PlannedRelease, planned_releases, with_shares
from discreet.privacy.relation import Relation
from discreet.theory.fixed_point import NoisyContraction

if TYPE_CHECKING:
    from discreet.privacy.budget import Budget
    from discreet.solvers.fixed_point.iteration import FixedPoint


@dataclass(frozen=True, eq=False)
class FixedPointNoise:
    """Noise and cost of an iteration, fixed from public facts.

    Attributes
    ----------
    iteration : FixedPoint
        The iteration that made the plan and will run it.
    budget : Budget
        The privacy budget of the whole run.
    mechanism : Gaussian or Laplace
        What draws the noise on the answers and states its cost.
    schedule : tuple of ndarray or None
        The active blocks of every step, where the cost depends on them; None: they are drawn during the run.
    """

    iteration: FixedPoint
    budget: Budget
    mechanism: mechanisms.Additive
    schedule: tuple[IntArray, ...] | None

    @cached_property
    def event(self) -> Any:
        """What the run will do to privacy, in the vocabulary of dp-accounting."""
        return accounting.non_private_event() if self.budget.is_infinite else self.mechanism.event

    @cached_property
    def guarantee(self) -> Guarantee:
        """What the run will promise, with its exact cost; all iterates together are covered."""
        return guarantee_for(self.event, self.budget, Relation(self.iteration.relation), self.iteration.rows)

    @cached_property
    def releases(self) -> list[PlannedRelease]:
        """What will be told about the rows, in words; empty without noise."""
        if self.budget.is_infinite:
            return []
        relation, sensitivity = Relation(self.iteration.relation), self.iteration.sensitivity
        known = planned_releases("answers for one block", self.event, relation, sensitivity)
        return with_shares(known, self.budget)

    @cached_property
    def digest(self) -> bytes:
        """SHA-256 of everything that decides what a run does to the rows; seeded noise is keyed by it."""
        return digest_of("fixed point", self.iteration, self.budget, self.mechanism, self.schedule)

    @cached_property
    def grid(self) -> NoisyGrid:
        """Where the answers of one block are released, and their noise."""
        iteration = self.iteration
        return self.mechanism.grid(iteration.sensitivity, iteration.largest_block, iteration.rows)

    @property
    def noise(self) -> float:
        """The expected squared norm of the noise on R(u), if all blocks are active."""
        sensitivity, scale = self.iteration.sensitivity, self.grid.scale  # the grid's is a little larger than planned
        if scale == 0.0:
            return 0.0
        deviation = self.mechanism.deviation(sensitivity) * scale / self.mechanism.scale(sensitivity)
        return float((self.iteration.scale_of_entries**2).sum() * deviation**2)

    def contraction(self, lipschitz: float, error: float = 0.0) -> NoisyContraction:
        """Return the calculator of error bounds for this run, if R has the Lipschitz constant `lipschitz` < 1.

        Parameters
        ----------
        lipschitz : float
            Of the operator R itself, clipping included; a public assumption that nothing here checks.
        error : float
            Root of a bound on the mean squared norm of the error with which R is evaluated.
        """
        sizes, frequency = self.iteration.step_sizes, self.iteration.active.frequency
        if frequency is None:
            raise ValueError("the bounds need activation='all', 'uniform' or 'independent'; blocks in turn have none.")
        if np.ptp(sizes) > 0.0:
            raise ValueError("the bounds are for one step size in all steps; use NoisyContraction step by step.")
        return NoisyContraction(lipschitz, self.noise, float(sizes[0]), frequency, error)


@dataclass(frozen=True, eq=False)
class FixedPointResult:
    """What a run returns.

    Attributes
    ----------
    last : ndarray of shape (size,)
        The last iterate.
    iterates : ndarray of shape (steps + 1, size) or None
        All iterates, the start first, if they were asked for.
    plan : FixedPointNoise
        What was decided before the rows were read.
    seeded : bool
        Whether the noise came from a seed or from a NumPy generator; the guarantee then names this as a leak.

    Guarantee: `last` and `iterates` together are differentially private as `guarantee` states.
    """

    last: FloatArray
    iterates: FloatArray | None
    plan: FixedPointNoise
    seeded: bool

    @property
    def guarantee(self) -> Guarantee:
        """What is promised about this result."""
        return self.plan.guarantee.with_seed() if self.seeded else self.plan.guarantee
