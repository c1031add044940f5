"""Where the coefficients of a model are for prediction alone: what moves them beside noise and the choice of the rows.

From the plan, which saw no row: how thresholds and shrinkage follow the noise is in docs/defaults.md.
"""

from __future__ import annotations

import math

import numpy as np

from discreet.data.public import Public
from discreet.data.validation import LARGEST_BOUND
from discreet.privacy import mechanisms
from discreet.problem.column_scaling import ColumnScaling
from discreet.solvers._shared.descents import QUIET, largest_length, typical_length
from discreet.solvers.plan import Plan

FAR = 3.0  # of 1,000 normal numbers three lie further out: thresholds beyond it clip next to nothing


def why_prediction_only(plan: Plan, scaling: ColumnScaling | None) -> str:
    """Why differences of coefficients from those without privacy are more than noise; empty where they are not."""
    if not plan.is_noisy or plan.settings.is_constant:
        return ""
    solver = plan.solver
    reasons = {
        f"{solver.name} leaves a bias that its noise does not show": not solver.capabilities.consistent,
        "they are shrunk as far as noise may have moved them": getattr(solver, "shrink", False),
        "gradients are clipped at a threshold that was asked for": getattr(solver, "clip", None) is not None,
        "entries are clipped at learned ranges": scaling is None or cuts_declared(scaling, plan.public),
        "under this noise gradients are clipped or scores are shrunk, so that slopes are too steep or too flat": (
            scaling is not None and cuts_gradients(scaling, plan)
        ),
    }
    return next((reason for reason, holds in reasons.items() if holds), "")


def cuts_gradients(scaling: ColumnScaling, plan: Plan) -> bool:
    """Whether a threshold whose noise is small against the error of sampled rows would clip gradients."""
    usual = typical_length(plan.problem, scaling)
    return quiet_threshold(plan) * usual < min(FAR * usual, largest_length(plan.problem, scaling))


def cuts_declared(scaling: ColumnScaling, public: Public) -> bool:
    """Whether entries within the declared bounds, or anywhere if there are none, are clipped by released ranges."""
    low, high = (-np.inf, np.inf) if public.low is None or public.high is None else (public.low, public.high)
    cut_below, cut_above = scaling.low > np.fmax(low, -LARGEST_BOUND), scaling.high < np.fmin(high, LARGEST_BOUND)
    return bool(cut_below.any() or cut_above.any())


def quiet_threshold(plan: Plan) -> float:
    """The threshold, in typical lengths of gradients, whose noise is small against the error of sampled rows.

    For the noise of a solver that spends the whole budget on one mean of gradients; no solver has less.
    """
    public, problem = plan.public, plan.problem
    entries = problem.loss.outputs * (public.columns + problem.fit_intercept)
    noise = mechanisms.additive(plan.budget, 1.0).deviation(mechanisms.clipped_sum(public.relation, entries))
    return QUIET * math.sqrt(public.rows / entries) / noise
