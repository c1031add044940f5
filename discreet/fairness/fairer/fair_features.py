"""FairFeatures: the penalty on differences between groups as a change of features, for every estimator and solver."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from discreet._common.checks import at_least_zero
from discreet._common.types import FloatArray
from discreet.data.pipeline_steps import allow_row_by_row
from discreet.data.public import check_complete_bounds
from discreet.data.validation import LARGEST_BOUND, validate_features
from discreet.fairness.fairer.directions import ReleasedDirections
from discreet.problem.coupled_penalties import checked_directions

SMALLEST_LENGTH = 1e-12  # of the longest direction: what is shorter is rounding, as where directions add up to 0
ROUNDING = 1e-13  # of the terms that cancel: a column with a smaller range holds nothing but rounding


@dataclass(eq=False, repr=False)
class FairFeatures(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Shrink the features along directions between groups, so that a ridge model's mean scores differ less.

    A row x becomes (I + strength C'C)^(-1/2) x, the rows of C being the directions. A model with the penalty alpha / 2
    ||v||^2 on the new features is exactly the model with the penalty alpha / 2 ||w||^2 + beta / 2 sum_k (c_k . w)^2 on
    the old ones (`DirectionalL2`), strength being beta / alpha and w = `original_coef(v)`; the intercept is not
    penalised. An infinite strength takes the directions out: groups then have equal mean scores on the rows from which
    exact directions were computed. With other penalties than L2 there is no such equality. docs/fair_models.md shows
    what it does and what it cannot do.

    It learns nothing from the rows and treats each of them on its own, so it may stand in front of every estimator of
    discreet, in a pipeline, whatever the solver. Rows get shorter, never longer.

    Guarantee: adds no cost of its own. Directions given as numbers must be public; of directions from
    `private_directions` the cost is stated in `guarantee_`, and `pipeline_guarantee` counts it.

    Parameters
    ----------
    directions : array of shape (n_directions, n_features) or ReleasedDirections
        The differences c_k of mean rows between groups: public numbers, or what `private_directions` returned.
    strength : float, default=float("inf")
        beta / alpha, at least 0. It counts squared differences of scores against squared coefficients, so it depends on
        the units of the columns.

    Attributes
    ----------
    axes_ : ndarray of shape (n_axes, n_features)
        Orthogonal unit vectors that span the directions.
    shrinkage_ : ndarray of shape (n_axes,)
        What is left of a row along each axis: 1 / sqrt(1 + strength times its squared singular value).
    guarantee_ : Guarantee
        Of the directions, where they come from `private_directions`; else not there.
    weighted_ : bool
        Whether those directions were released with sample weights; not there for other directions.
    n_features_in_ : int
        Number of columns seen in `fit`.
    feature_names_in_ : ndarray of str
        Names of the columns; only if X was a table whose column names are all strings.

    See Also
    --------
    private_directions : Releases the directions.
    mean_differences : Computes them from a public table.

    Examples
    --------
    >>> from discreet.fairness import FairFeatures
    >>> step = FairFeatures(directions=[[1.0, 1.0]]).fit([[0.0, 0.0]])
    >>> step.transform([[3.0, 1.0], [2.0, 1.0]]).round(6)
    array([[ 1. , -1. ],
           [ 0.5, -0.5]])
    """

    directions: Any
    strength: float = float("inf")

    def fit(self, X: Any, y: Any = None) -> Self:
        """Take the number and the names of the columns; no entry is used.

        Parameters
        ----------
        X : array or table of shape (n_samples, n_features)
            Rows.
        y : None
            Ignored; here because pipelines pass it.

        Returns
        -------
        self
            The fitted transformer itself.
        """
        validate_features(self, X, reset=True, sparse=False)
        strength = at_least_zero("strength", self.strength)
        released = isinstance(self.directions, ReleasedDirections)
        matrix = checked_directions(self.directions.values if released else self.directions)
        if matrix.shape[1] != self.n_features_in_:
            raise ValueError(f"directions has {matrix.shape[1]} columns, but X has {self.n_features_in_}.")
        _, lengths, axes = np.linalg.svd(matrix, full_matrices=False)
        clear = lengths > SMALLEST_LENGTH * lengths[0]
        self.axes_: FloatArray = axes[clear]
        self.shrinkage_: FloatArray = 1.0 / np.hypot(1.0, np.sqrt(strength) * lengths[clear])
        if released:
            self.guarantee_, self.weighted_ = self.directions.guarantee, self.directions.weighted_
        return self

    def transform(self, X: Any) -> FloatArray:
        """Return the new features.

        Parameters
        ----------
        X : array or table of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
            Every row shrunk along the directions. Entries beyond 1e100 in absolute value count as 1e100.
        """
        check_is_fitted(self, "axes_")
        rows = validate_features(self, X, reset=False, sparse=False)
        # No bounds are wider than that. A sum over a row must not overflow: one row would stop a fit.
        return self._shrunk(np.clip(rows, -LARGEST_BOUND, LARGEST_BOUND))

    def original_coef(self, coef: Any) -> FloatArray:
        """Return coefficients of the old features that give the scores of coefficients of the new ones.

        Parameters
        ----------
        coef : array of shape (n_features,) or (n_outputs, n_features)
            `coef_` of a model that was fitted to the new features. Its intercept stays as it is.

        Returns
        -------
        ndarray
            Of the same shape.
        """
        check_is_fitted(self, "axes_")
        return self._shrunk(np.asarray(coef, dtype=np.float64))  # the matrix is symmetric

    def transformed_bounds(self, bounds: Any) -> tuple[FloatArray, FloatArray]:
        """Return the public limits of the new columns that follow from those of the old ones.

        Parameters
        ----------
        bounds : tuple (low, high)
            Limits of the old columns, two numbers or two sequences with one number per column.

        Returns
        -------
        tuple (low, high)
            For `bounds=` of the estimator behind this step; up to rounding, no narrower ones hold for all rows. A
            column of which the directions leave nothing has low = high, and the estimator leaves it out.
        """
        check_is_fitted(self, "axes_")
        names = getattr(self, "feature_names_in_", None)
        limits = check_complete_bounds(bounds, self.n_features_in_, "bounds", names)
        if limits is None:
            raise ValueError("bounds is missing; pass (low, high).")
        low, high = limits
        centre, radius = low + 0.5 * (high - low), 0.5 * (high - low)
        matrix = np.abs(self._shrunk(np.eye(self.n_features_in_)))
        middle, reach = self._shrunk(centre), matrix @ radius
        cancelled = radius + np.abs(self.axes_).T @ (np.abs(self.axes_) @ radius)
        reach[reach <= ROUNDING * cancelled] = 0.0
        return middle - reach, middle + reach

    def _shrunk(self, rows: FloatArray) -> FloatArray:
        along = np.asarray(rows, dtype=np.float64) @ self.axes_.T
        return rows - (along * (1.0 - self.shrinkage_)) @ self.axes_


allow_row_by_row(FairFeatures)
