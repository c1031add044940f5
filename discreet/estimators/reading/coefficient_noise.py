"""How much of a coefficient is noise: the plan's prediction, in the units of the user's columns.

A plan predicts one number, the standard deviation of the noise in the coefficient of a scaled column of mean square 1
(docs/plans.md), and takes the curvature of the logistic loss to be its largest, 1/4. That is true of scores near 0.
Where columns tell the label well, scores are large and the loss is flatter, so that the same noise in a gradient moves
the minimum further, most of all along the coefficients themselves. Scales and coefficients, from which the size of the
scores follows, are released and covered by the guarantee of the model: computing with them is post-processing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from discreet._common.types import FloatArray
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
GRID = np.linspace(-8.0, 8.0, 4_001)  # standard deviations of the score
FAR_SCORES = 500.0  # standard deviation of scores beyond which the grid is too coarse


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


def noise_growth(weights: FloatArray, intercept: float, has_intercept: bool) -> FloatArray:
    """Return by which factor the noise of each coefficient exceeds what the largest curvature would give.

    Scaled columns are taken to be independent and normal with variance 1. The Hessian is then E[h(s)] in all directions
    but two, that of the coefficients and the intercept, where it is the 2 x 2 matrix E[h(s) (u, 1)(u, 1)'], with
    s = intercept + |weights| u. Noise of one size in every gradient entry has the covariance of its inverse square.

    Parameters
    ----------
    weights : array of shape (columns,)
        The coefficients of scaled columns.
    intercept : float
        The intercept in scaled columns.
    has_intercept : bool
        Whether it was learned.

    Returns
    -------
    array of shape (columns + 1,)
        The factors, that of the intercept last; infinite where nothing can be said.
    """
    size = float(np.linalg.norm(weights))
    if not size < FAR_SCORES:
        return np.full(weights.size + 1, np.inf)
    density = np.exp(-0.5 * GRID**2)
    scores = intercept + size * GRID
    curvature = Logistic().curvature(scores, np.ones_like(scores)) * density / (density.sum() * Logistic().smoothness)
    flat, cross, along = (float((curvature * GRID**power).sum()) for power in (0, 1, 2))
    hessian = np.array([[along, cross if has_intercept else 0.0], [cross if has_intercept else 0.0, flat]])
    if not np.linalg.det(hessian) > 0.0:
        return np.full(weights.size + 1, np.inf)
    inverse = np.linalg.inv(hessian)
    variance_along, variance_intercept = np.diag(inverse @ inverse)
    share = (weights / size) ** 2 if size > 0.0 else np.zeros_like(weights)
    squares = (1.0 - share) / flat**2 + share * variance_along
    return np.sqrt(np.append(squares, variance_intercept))
