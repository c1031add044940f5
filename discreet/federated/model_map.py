"""What the server needs of the problem: the proximal map of the penalty, and the way back to the users' columns."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from discreet._common.types import FloatArray
from discreet.problem.scaled_problem import BlockwiseProblem, ScaledBlock, scaled_penalty_terms

if TYPE_CHECKING:
    from discreet.federated.plan import FederatedPlan


class _WithoutRows(BlockwiseProblem):
    """Penalty, constraint and scaling, with no rows at all."""

    def blocks(self) -> Iterable[ScaledBlock]:
        return []


class ModelMap:
    """From the mean of the dual variables to the model, and from scaled columns to the users'.

    Parameters
    ----------
    plan : FederatedPlan
        The plan of the run.
    """

    def __init__(self, plan: FederatedPlan) -> None:
        terms = scaled_penalty_terms(plan.problem, plan.scaling)
        self._problem = _WithoutRows(
            problem=plan.problem, scaling=plan.scaling, rows=plan.public.rows, penalty_terms=terms
        )
        self._gamma = plan.gamma

    def prox(self, mean: FloatArray) -> FloatArray:
        """The model: the proximal map of the penalty and the constraint."""
        return self._problem.prox(mean, self._gamma)

    def to_user(self, weights: FloatArray) -> tuple[FloatArray, float]:
        """Coefficients and intercept in the users' columns."""
        coef, intercept = self._problem.to_user(weights)
        return coef, float(intercept)

    def penalty(self, weights: FloatArray) -> float:
        """The penalty of the model, written for scaled columns."""
        terms = self._problem.penalty_terms
        return float((terms.l1 * abs(weights)).sum() + 0.5 * (terms.l2 * weights**2).sum())
