"""The releases of a run, in their order: the place of each one's share in the plan's BudgetSplit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from discreet.privacy import mechanisms
from discreet.privacy.release import PlannedRelease, planned_releases
from discreet.solvers.plan import OF_THE_THRESHOLD, SQUARED_LENGTH

if TYPE_CHECKING:
    from discreet.solvers.newton.solver import NewtonPlan

RADIUS = 0  # counts of the norms of the rows
MOMENT = 1  # the second-moment matrix of the rows
CLIP = 2  # counts of the norms of the gradients, before the first step
NEW_CLIP = 3  # the same halfway
CURVATURE_RADIUS = 4  # counts of the norms of the rows times their root curvatures, halfway
HESSIAN = 5  # the Hessian, halfway; with several outputs the mean curvature of each
LABELS = 6  # counts of the labels; with a log link the mean curvature, at the end
CALIBRATION = 7  # counts of the scores by label, after the last step
GRADIENTS = 8  # the first of the gradient steps


def releases_of(plan: NewtonPlan) -> list[PlannedRelease]:
    """The releases in plain words, from the parts of the split that draw their noise."""
    columns, relation = plan.public.columns + plan.problem.fit_intercept, plan.public.relation
    counts = mechanisms.one_hot_counts(relation, 1)
    matrix = mechanisms.outer_products(relation, columns) * (1.0 / plan.public.rows)
    gradient = mechanisms.clipped_sum(relation) * (1.0 / plan.public.rows)
    moment = ("second-moment matrix of the rows", matrix, SQUARED_LENGTH)
    if plan.settings.public_metric:
        largest = mechanisms.bounded_fractions(1) * (1.0 / plan.public.rows)
        moment = ("largest second moment of the rows in the public metric", largest, SQUARED_LENGTH)
    before: dict[int, tuple[str, mechanisms.Sensitivity, str]] = {
        RADIUS: ("counts of row lengths", counts, "rows per count"),
        MOMENT: moment,
        CLIP: ("counts of gradient lengths", counts, "rows per count"),
        NEW_CLIP: ("counts of gradient lengths", counts, "rows per count"),
        CURVATURE_RADIUS: ("counts of row lengths by curvature", counts, "rows per count"),
        HESSIAN: ("Hessian of the loss", matrix, SQUARED_LENGTH),
        LABELS: ("counts of labels", counts, "rows per count"),
        CALIBRATION: ("counts of scores by label", counts, "rows per count"),
    }
    if plan.problem.loss.log_link:
        fraction = mechanisms.bounded_fractions(1) * (1.0 / plan.public.rows)
        before[LABELS] = ("mean curvature, for the intercept", fraction, "of the largest that a row may have")
    if plan.problem.loss.outputs > 1:
        before[HESSIAN] = ("mean curvature of each output", gradient, "of the largest that a row may have")
    step = ("mean gradients of all rows", gradient, OF_THE_THRESHOLD)
    planned: list[PlannedRelease] = []
    for k, share in enumerate(plan.mechanism.shares):
        if share > 0.0:
            what, sensitivity, unit = before.get(k, step)
            planned += planned_releases(what, plan.mechanism.part(k).event, relation, sensitivity, unit)
    return planned


def with_share(shares: tuple[float, ...], which: int, share: float) -> tuple[float, ...]:
    """The shares if one release has another share: the rest stays divided as it was."""
    rest = (1.0 - share) / (1.0 - shares[which])
    return tuple(share if k == which else rest * other for k, other in enumerate(shares))
