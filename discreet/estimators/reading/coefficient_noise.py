"""How much of a coefficient is noise: the plan's prediction, in the units of the user's columns.

A plan predicts one number, the standard deviation of the noise in the coefficient of a scaled column of mean square 1
(docs/plans.md). Scales and coefficients are released and covered by the guarantee of the model, so that computing with
them is post-processing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from discreet._common.types import FloatArray
from discreet.estimators.reading.label_curvature import noise_growth
from discreet.estimators.stored_plan import has_exact_target_bounds
from discreet.problem.column_scaling import ColumnScaling
from discreet.problem.losses import ClassWeighted, Logistic
from discreet.solvers.output_perturbation import OutputPerturbation
from discreet.solvers.screened import Screened

if TYPE_CHECKING:
    from discreet.solvers import Plan

PREDICTED = (
    "predicted from the plan, which saw no row, and the released scales; not measured. Expect more where columns are "
    "correlated"
)
UNEVEN = ", and for columns that fill only a part of their range, since their widths were not learned"
GUESSED_TARGET = ". The spread of the target was guessed from its range"


@dataclass(frozen=True, eq=False)
class CoefficientNoise:
    """The standard deviation of the noise in each coefficient.

    Attributes
    ----------
    kind : {"none", "predicted", "not known"}
    why : str
        Where the numbers come from, or why there are none.
    per_unit : array of shape (columns,) or None
        In the units of `coef_`; None if it is not known.
    intercept : float or None
        The same for the intercept.
    """

    kind: Literal["none", "predicted", "not known"]
    why: str
    per_unit: FloatArray | None = None
    intercept: float | None = None


def coefficient_noise(estimator: Any, plan: Plan | None, why_no_plan: str = "") -> CoefficientNoise:
    """Return what is known about the noise in the coefficients of a fitted estimator.

    Parameters
    ----------
    estimator : PrivateLinearModel
        Fitted, or from a model file.
    plan : Plan or None
        The plan of its fit, where that is known.
    why_no_plan : str
        Why it is not known.
    """
    if not estimator.guarantee_.is_private:
        columns = int(estimator.n_features_in_)
        return CoefficientNoise("none", "epsilon is infinite: no noise was added", np.zeros(columns), 0.0)
    if plan is None:
        return _unknown(why_no_plan)
    reason = _why_unknown(estimator, plan)
    return _unknown(reason) if reason else _predicted(estimator, plan)


def _unknown(why: str) -> CoefficientNoise:
    return CoefficientNoise("not known", why.rstrip("."))


def _why_unknown(estimator: Any, plan: Plan) -> str | None:
    """Why nothing can be said in the user's units; None if something can."""
    reasons = {
        "the rows were too few for more than a constant, so the coefficients are 0 whatever the rows are": (
            plan.settings.is_constant
        ),
        "the noise is not predicted for several classes": plan.problem.loss.outputs > 1,
        "the noise is not predicted for class weights": isinstance(plan.problem.loss, ClassWeighted),
        # Over seeds, coefficients spread about nine times as far as planned.
        "the columns were chosen with noise as well, and what that does to the coefficients is not predicted": (
            isinstance(plan.solver, Screened)
        ),
        f"the noise of the solver {plan.solver.name} is not predicted for this plan": plan.standard_error is None,
        'the scale of the target was read from the rows (y_bounds="data"), and the guarantee does not cover it': (
            has_exact_target_bounds(estimator)
        ),
        "the model file does not hold the scales of the columns": not hasattr(estimator, "scaling_"),
    }
    return next((reason for reason, holds in reasons.items() if holds), None)


def _predicted(estimator: Any, plan: Plan) -> CoefficientNoise:
    """Coefficients are taken to be uncorrelated, as the plan takes the columns."""
    scaling, regression = estimator.scaling_, not plan.problem.loss.classification
    spread = scaling.scale * np.sqrt(np.where(scaling.second_moment > 0.0, scaling.second_moment, 1.0))
    with np.errstate(over="ignore", invalid="ignore"):  # scales of a file may be anything
        unit = (plan.standard_error or 0.0) * (scaling.target_scale if regression else 1.0)
        scaled = unit * _growth(estimator, plan, scaling, spread)
        per_unit = np.where(scaling.frozen, 0.0, scaled[:-1] / spread)
        intercept = float(np.hypot(scaled[-1], np.linalg.norm(per_unit * scaling.shift)))
    if not (np.isfinite(per_unit).all() and math.isfinite(intercept)):
        return _unknown("the scores of the model or the scales of its columns are out of range")
    why = PREDICTED
    if plan.scaling_plan.moments is None and plan.scaling_plan.method != "public":
        why += UNEVEN
    if regression and not np.isfinite(scaling.target_noise):
        why += GUESSED_TARGET
    return CoefficientNoise("predicted", why, per_unit, intercept if plan.problem.fit_intercept else 0.0)


def _growth(estimator: Any, plan: Plan, scaling: ColumnScaling, spread: FloatArray) -> FloatArray:
    """By which factor large scores let the noise of gradients grow; 1 where noise is added to the coefficients."""
    if not isinstance(plan.problem.loss, Logistic) or isinstance(plan.solver, OutputPerturbation):
        return np.ones(spread.size + 1)
    coef = np.ravel(estimator.coef_)
    centre = float(np.ravel(estimator.intercept_)[0] + coef @ scaling.shift)
    return noise_growth(coef * spread, centre, plan.problem.fit_intercept)
