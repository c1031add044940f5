"""What a noisy fixed-point iteration decides before the rows are read, and what it returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from discreet._common.types import FloatArray, IntArray
from discreet.data.public import Public
from discreet.privacy import accounting, mechanisms
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.mechanisms.additive import NoisyGrid
from discreet.privacy.relation import Relation
from discreet.privacy.release import PlannedRelease, ReleasePlan, planned_releases, with_shares
from discreet.theory.fixed_point import NoisyContraction

if TYPE_CHECKING:
    from discreet.privacy.budget import Budget
    from discreet.solvers.fixed_point.iteration import FixedPoint


def plan_iteration(
    iteration: FixedPoint, budget: Budget, mechanism: mechanisms.Additive, schedule: tuple[IntArray, ...] | None
) -> ReleasePlan:
    """Noise and cost of an iteration; `schedule` has the active blocks of each step, where the cost depends on them."""
    relation = Relation(iteration.relation)
    public_n = iteration.rows if relation is Relation.ADD_REMOVE else None
    public = Public.of(iteration.rows, iteration.size, relation=relation, public_n=public_n)
    cost = accounting.non_private_event() if budget.is_infinite else None
    settings = {"iteration": iteration, "schedule": schedule}
    return ReleasePlan("fixed point", public, budget, {"mechanism": mechanism}, settings, cost)


def releases_of(plan: ReleasePlan) -> list[PlannedRelease]:
    """What will be told about the rows, in words; empty without noise."""
    if plan.budget.is_infinite:
        return []
    known = planned_releases("answers for one block", plan.event, plan.public.relation, plan.iteration.sensitivity)
    return with_shares(known, plan.budget)


def grid_of(plan: ReleasePlan) -> NoisyGrid:
    """Where the answers of one block are released, and their noise."""
    iteration = plan.iteration
    grid: NoisyGrid = plan.mechanism.grid(iteration.sensitivity, iteration.largest_block, iteration.rows)
    return grid


def noise_of(plan: ReleasePlan) -> float:
    """The expected squared norm of the noise on R(u), if all blocks are active."""
    sensitivity, scale = plan.iteration.sensitivity, grid_of(plan).scale  # the grid's is a little larger than planned
    if scale == 0.0:
        return 0.0
    deviation = plan.mechanism.deviation(sensitivity) * scale / plan.mechanism.scale(sensitivity)
    return float((plan.iteration.scale_of_entries**2).sum() * deviation**2)


def contraction_of(plan: ReleasePlan, lipschitz: float, error: float = 0.0) -> NoisyContraction:
    """Return the calculator of error bounds for a run of this plan, if R has the Lipschitz constant `lipschitz` < 1.

    Parameters
    ----------
    plan : ReleasePlan
        Made by `FixedPoint.plan`.
    lipschitz : float
        Of the operator R itself, clipping included; a public assumption that nothing here checks.
    error : float
        Root of a bound on the mean squared norm of the error with which R is evaluated.
    """
    sizes, frequency = plan.iteration.step_sizes, plan.iteration.active.frequency
    if frequency is None:
        raise ValueError("the bounds need activation='all', 'uniform' or 'independent'; blocks in turn have none.")
    if np.ptp(sizes) > 0.0:
        raise ValueError("the bounds are for one step size in all steps; use NoisyContraction step by step.")
    return NoisyContraction(lipschitz, noise_of(plan), float(sizes[0]), frequency, error)


@dataclass(frozen=True, eq=False)
class FixedPointResult:
    """What a run returns.

    Attributes
    ----------
    last : ndarray of shape (size,)
        The last iterate.
    iterates : ndarray of shape (steps + 1, size) or None
        All iterates, the start first, if they were asked for.
    plan : ReleasePlan
        What was decided before the rows were read.
    seeded : bool
        Whether the noise came from a seed or from a NumPy generator; the guarantee then names this as a leak.

    Guarantee: `last` and `iterates` together are differentially private as `guarantee` states.
    """

    last: FloatArray
    iterates: FloatArray | None
    plan: ReleasePlan
    seeded: bool

    @property
    def guarantee(self) -> Guarantee:
        """What is promised about this result."""
        return self.plan.guarantee.with_seed() if self.seeded else self.plan.guarantee
