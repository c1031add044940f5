"""What theorems assume of a planned run, before the scales of its columns are known."""

from __future__ import annotations

import numpy as np

from discreet.privacy.relation import Relation
from discreet.solvers.plan import Plan

UNIT_COLUMNS = "scaled columns have mean squares of at most 1, as their released scales aim at"
AS_MANY_ROWS = "the table has no more rows than the public number"
UNIT_SCALES = "the scaled columns have a mean square of at most 1, and the penalty is that of columns of scale 1"
UNIT_TARGET = "the target has scale 1, declared or learned"


def scales_of_clipping(plan: Plan, clip: float | None) -> tuple[str, ...]:
    """What a bound assumes of the target where the threshold of a regression is the default, which grows with it."""
    return () if plan.problem.loss.classification or clip is not None else (UNIT_TARGET,)


def rows_are_counted(plan: Plan) -> bool:
    """Whether there is noise, and the number of rows is public, so that means of the losses are what is minimised."""
    return plan.is_noisy and plan.public.relation is not Relation.ADD_REMOVE


def planned_ridge(plan: Plan) -> float | None:
    """The l2 penalty of all columns, if their scales are 1; None where no theorem applies.

    That is with another penalty, with a constraint, without noise, or where the number of rows is private.
    """
    problem = plan.problem
    if not rows_are_counted(plan):
        return None
    if problem.constraint is not None or not problem.penalty.separable:
        return None
    terms = problem.penalty_terms(plan.public.columns)
    bounded = np.isfinite([terms.low, terms.high]).any()
    l2 = np.asarray(terms.l2)
    if bounded or np.asarray(terms.l1).any() or (l2 != l2[0]).any():
        return None
    return float(l2[0])


def least_gain(plan: Plan) -> float | None:
    """How much the mean loss can fall from its value at 0 at most; None for real targets, where it is not known."""
    loss = plan.problem.loss
    if not loss.classification or loss.outputs > 1:
        return None
    return float(loss.value(np.zeros(2), np.array([-1.0, 1.0])).max())  # losses of labels are never negative


def has_known_scales(plan: Plan) -> bool:
    """Whether the scales follow from declared bounds alone."""
    scaling = plan.scaling_plan
    return scaling.histogram is None and scaling.moments is None


def assumptions_of(plan: Plan) -> tuple[str, ...]:
    """What must hold beside the assumptions of a theorem."""
    found: tuple[str, ...] = ()
    if not has_known_scales(plan):
        found = (UNIT_COLUMNS, *scales_of_clipping(plan, getattr(plan.solver, "clip", None)))
    return (*found, AS_MANY_ROWS) if plan.public.relation is Relation.ADD_REMOVE else found
