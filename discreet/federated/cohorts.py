"""Who is asked in a round: cohorts of clients that are drawn once, or single clients, without any look at rows."""

from __future__ import annotations

import numpy as np

from discreet._common.types import BoolArray, IntArray
from discreet.federated.plan import FederatedPlan
from discreet.privacy.random.generator import RandomGenerator


def drawn_cohorts(plan: FederatedPlan, rng: RandomGenerator) -> IntArray:
    """The cohort of each client: a random partition into cohorts whose sizes differ by at most one."""
    cohort = np.zeros(plan.clients, dtype=np.int64)
    if plan.cohorts > 1:
        cohort[rng.permutation(plan.clients)] = np.arange(plan.clients) % plan.cohorts
    return cohort


def check_cohorts(cohort: IntArray, plan: FederatedPlan) -> None:
    """Refuse cohorts that are too few, too many or too small for the plan's guarantees."""
    if cohort.min() < 0 or cohort.max() >= plan.cohorts:
        raise ValueError(f"the plan has {plan.cohorts} cohorts.")
    if np.bincount(cohort, minlength=plan.cohorts).min() < plan.smallest_cohort:
        raise ValueError(f"a cohort has fewer than {plan.smallest_cohort} clients.")


def least_often(rng: RandomGenerator, asked: IntArray, may: BoolArray, count: int) -> IntArray:
    """So many of those that may be asked: those asked least often so far, at random among equals.

    Where all may be asked equally often, each is asked once before any is asked again, in a new random order each time.
    """
    order = rng.permutation(asked.size)
    left = order[may[order]]
    return left[np.argsort(asked[left], kind="stable")][:count]
