"""What is minimised: mean loss + penalty, over a convex set, with or without an intercept."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet._common.types import FloatArray
from discreet.data.validation import as_numbers
from discreet.problem.constraints import Box, Constraint
from discreet.problem.coupled_penalties import RescaledPenalty
from discreet.problem.losses import Loss
from discreet.problem.losses.scalar import every_label
from discreet.problem.penalties import Penalty, PenaltyTerms, Zero

if TYPE_CHECKING:
    from discreet.problem.optimum import Optimum


@dataclass(frozen=True)
class Problem:
    """Minimise (1/n) sum_i loss(x_i . w + b, y_i) + penalty(w) over w in the constraint and any b.

    Neither the penalty nor the constraint touches the intercept b. For losses with several outputs w has
    one row per output.

    Parameters
    ----------
    loss : Loss
        From `discreet.problem.losses`, such as `Logistic()`.
    penalty : Penalty, default=Zero()
        From `discreet.problem.penalties`, such as `L2(0.1)`.
    constraint : Constraint, optional
        From `discreet.problem.constraints`, such as `L1Ball(10.0)`.
    fit_intercept : bool, default=True
        Whether there is an intercept b.

    Examples
    --------
    >>> import numpy as np
    >>> from discreet import Problem
    >>> from discreet.problem import L2, Squared
    >>> X, y = np.array([[-1.0], [1.0]]), np.array([0.0, 2.0])
    >>> best = Problem(Squared(), L2(1.0)).optimum(X, y)  # not private
    >>> best.coef.round(6), round(float(best.intercept), 6)
    (array([0.5]), 1.0)
    """

    loss: Loss
    penalty: Penalty = field(default_factory=Zero)
    constraint: Constraint | None = None
    fit_intercept: bool = True

    def __post_init__(self) -> None:
        if self.constraint is not None and not isinstance(self.constraint, Constraint):
            raise ValueError(
                f"constraint must be a set of discreet.problem.constraints or None; got {self.constraint!r}."
            )
        if self.loss.target_power and not self.penalty.separable:
            raise ValueError(
                f"the {self.loss.name} loss cannot be combined with the {self.penalty.name} penalty, which ties "
                "coefficients together; use a separable one, such as L2."
            )
        if self.constraint is not None and not self.penalty.separable:
            raise ValueError(
                f"the {self.penalty.name} penalty cannot be combined with a constraint: the proximal map of the two "
                "together is not known."
            )

    @property
    def separable(self) -> bool:
        """Whether penalty and constraint act on each coordinate alone."""
        return self.penalty.separable and (self.constraint is None or self.constraint.separable)

    @property
    def common_scale(self) -> bool:
        """Whether all columns must have one scale: sets and penalties that compare coefficients know no other."""
        return not self.separable and not isinstance(self.penalty, RescaledPenalty)

    def penalty_terms(self, columns: int) -> PenaltyTerms:
        """Return separable penalty and constraint, coordinate by coordinate; others add nothing here."""
        if not self.penalty.separable:
            return Zero().penalty_terms(columns)
        own = self.penalty.penalty_terms(columns)
        if not isinstance(self.constraint, Box):
            return own
        low, high = self.constraint.bounds(columns)
        return PenaltyTerms(own.l1, own.l2, np.maximum(own.low, low), np.minimum(own.high, high))

    def check_labels(self, y: FloatArray) -> None:
        """Refuse targets that are not labels in the loss's own coding; regression losses take any."""
        if not self.loss.classification:
            return
        outputs = self.loss.outputs
        if not np.isin(y, every_label(self.loss)[1]).all():
            wanted = "-1 and +1" if outputs == 1 else f"0, 1, ..., {outputs - 1}"
            raise ValueError(f"y must hold the labels {wanted} for this loss; recode it, or use an estimator.")

    def objective(
        self, X: Any, y: FloatArray, coef: FloatArray, intercept: Any = 0.0, weight: FloatArray | None = None
    ) -> float:
        """Return the objective on a table, in the user's columns. Not private.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            The rows.
        y : array of shape (n_samples,)
            Targets, or labels in the coding of the loss.
        coef : array of shape (n_features,) or (n_outputs, n_features)
            Coefficients.
        intercept : float or array, default=0.0
            Intercept.
        weight : array of shape (n_samples,), optional
            Weights of the rows.

        Returns
        -------
        float
            Mean loss plus penalty.
        """
        margins = np.asarray(X @ np.asarray(coef).T) + intercept
        losses = self.loss.value(margins, as_numbers(y))
        total = float(losses.sum() if weight is None else losses @ weight)
        return total / X.shape[0] + sum(self.penalty.value(row) for row in np.atleast_2d(coef))

    def optimum(
        self, X: Any, y: FloatArray, sample_weight: FloatArray | None = None, tolerance: float = 1e-10
    ) -> Optimum:
        """Return the optimum without privacy, with a certificate of how far from optimal it can be. Not private.

        Parameters
        ----------
        X : array, sparse matrix or table of shape (n_samples, n_features)
            The rows.
        y : array of shape (n_samples,)
            Targets, or labels in the coding of the loss.
        sample_weight : array of shape (n_samples,), optional
            Weights between 0 and 1.
        tolerance : float, default=1e-10
            When to stop: relative to the objective for duality gaps, absolute for residuals.

        Returns
        -------
        Optimum
            `coef`, `intercept`, `value` and `certificate`.
        """
        from discreet.data.validation import array_rows
        from discreet.problem.optimum import minimise

        return minimise(self, array_rows(X, y, sample_weight), tolerance)
