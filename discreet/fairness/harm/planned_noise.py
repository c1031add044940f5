"""The law of the noise in the scores of a planned model, before its scales are known.

Theorem 5 of docs/guarantees/harm.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.privacy.budget import Budget
from discreet.privacy.relation import Relation, relation_from
from discreet.problem.column_scaling import identity_scaling
from discreet.scaling.learn import learn_scaling
from discreet.solvers.output_perturbation import OutputPerturbation
from discreet.theory.distance import DistanceLaw, GaussianDistance

if TYPE_CHECKING:
    from discreet.solvers import Plan

FAR_MARGIN = 50.0  # beyond it the slopes of the losses of labels vanish
VAST = 1e150  # a scale so large that no user's penalty is left in a scaled column


@dataclass(frozen=True)
class ScoreNoise:
    """What is known of the noise in a score.

    Attributes
    ----------
    law : DistanceLaw
        How far the private weights are from the noise-free ones.
    row_norm : float
        The largest norm of a scaled row.
    proved : bool
        Whether a theorem covers the law; if not, it is predicted.
    row_norm_proved : bool
        Whether no row can be longer.
    """

    law: DistanceLaw
    row_norm: float
    proved: bool
    row_norm_proved: bool

    @property
    def per_distance(self) -> float:
        """How far a score moves per unit of distance, at most."""
        return self.row_norm / math.sqrt(float(self.law.weights.min()))

    @property
    def deviation(self) -> float | None:
        """The standard deviation of the noise in a score; None where the law is not Gaussian."""
        return self.per_distance * self.law.deviation if isinstance(self.law, GaussianDistance) else None


def plan_of(estimator: Any, rows: int, columns: int, epsilon: float | None = None) -> Plan:
    """The plan of an estimator that stays as it is."""
    from sklearn.base import clone

    if not callable(getattr(estimator, "plan", None)) or isinstance(estimator, type):
        raise ValueError(
            f"harm is planned for a classifier of discreet, such as LogisticRegression(); got {estimator!r}."
        )
    model = clone(estimator)
    if epsilon is not None:
        model.set_params(epsilon=_with_own_delta(model.epsilon, epsilon))
    if relation_from(model.relation) is Relation.ADD_REMOVE:
        model.set_params(public_n=rows)
    plan: Plan = model.plan(rows, columns)
    if not plan.problem.loss.classification:
        raise ValueError(f"{type(model).__name__} predicts numbers; harm to groups is planned for classifiers.")
    if model.classes is not None and len(model.classes) > 2:
        raise ValueError("harm is planned for two classes; make one of several classes the favourable one.")
    if not plan.is_noisy:
        raise ValueError("epsilon is infinite: there is no noise that could do harm.")
    return plan


def _with_own_delta(own: Any, epsilon: float) -> Any:
    """Another epsilon, with the delta that an estimator's budget was given."""
    if not isinstance(own, Budget):
        return epsilon
    if own.delta is None:
        raise ValueError(f"an epsilon is looked for, but the budget is in other units, {own}; give epsilon and delta.")
    return replace(own, epsilon=epsilon)


def planned_law(plan: Plan) -> DistanceLaw:
    """The law of the distance for every scaling that the run may release; a ValueError where no theorem gives one."""
    if plan.scaling_plan.method in ("declared", "none"):
        nothing: Any = None  # such scales follow from the declarations: neither rows nor noise are touched
        return plan.distance_law(learn_scaling(plan.scaling_plan, nothing, plan.public, nothing))
    if not isinstance(plan.solver, OutputPerturbation):
        raise ValueError(
            f"no theorem bounds the noise of {plan.solver.name} before the scales of the columns are known."
        )
    columns = plan.public.columns
    worst = replace(identity_scaling(columns), scale=np.full(columns, VAST))
    return plan.distance_law(worst)


def score_noise(plan: Plan, row_norm: float | None, predicted: bool) -> ScoreNoise:
    """The noise in the scores of a plan; where no theorem covers it and `predicted` allows it, the planned one."""
    parameters = plan.public.columns + plan.problem.fit_intercept
    # Declared scales map every column into [-1, 1].
    known = row_norm is None and plan.scaling_plan.method == "declared"
    norm = math.sqrt(parameters) if row_norm is None else row_norm
    try:
        return ScoreNoise(planned_law(plan), norm, True, known)
    except ValueError as missing:
        if not predicted:
            raise ValueError(
                f"{str(missing).rstrip('.')}; use solver='output-perturbation', or mode='expected', which takes the "
                "noise that the plan predicts where nothing is proved."
            ) from None
        if plan.standard_error is None:
            raise ValueError(
                f"the noise of {plan.solver.name} is neither proved nor predicted for this plan."
            ) from None
    reference = "the noise-free model, with the noise that the plan predicts"
    law = GaussianDistance(np.ones(parameters), 1, reference, deviation=plan.standard_error)
    return ScoreNoise(law, norm, False, known)


def largest_score(plan: Plan, noise: ScoreNoise) -> float:
    """What no noise-free score exceeds, since its model has a ridge: docs/guarantees/harm.md, Theorem 7."""
    if not (isinstance(plan.solver, OutputPerturbation) and noise.proved and plan.problem.constraint is None):
        return math.inf
    margins = np.linspace(0.0, FAR_MARGIN, 10_001)
    slope, labels = plan.problem.loss.slope, (-1.0, 1.0)
    each = [-label * margins * slope(label * margins, np.full_like(margins, label)) for label in labels]
    most = float(np.max(each))
    return noise.per_distance * math.sqrt(most)


def has_proved_law(estimator: Any, rows: int, columns: int) -> bool:
    """Whether a theorem gives the noise of an estimator's plan before its scales are known."""
    try:
        planned_law(plan_of(estimator, rows, columns))
    except ValueError:
        return False
    return True
