"""How far a released model is from the optimum of its own objective, from the gradient there: for every solver.

The gradient is read from the training rows, or released with noise. Theorems and proofs:
docs/guarantees/private-evaluation.md, section 2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from discreet._common.callers import warn
from discreet._common.checks import check_threshold, number_in
from discreet._common.docstrings import with_options
from discreet._common.exceptions import PrivacyLeakWarning
from discreet._common.types import FloatArray
from discreet.data.public import Public
from discreet.data.rows import Data
from discreet.data.validation import check_sparse_bounds, encode_labels, load_features
from discreet.kernels.gradient import clipped_gradient_sum, margins_of, row_norms
from discreet.preprocessing.base import facts_of
from discreet.privacy import mechanisms
from discreet.privacy.budget import Budget
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.mechanisms.additive import NoisyGrid
from discreet.privacy.mechanisms.perturbations import OutputNoise, SphericalLaplace, gradient_sum
from discreet.privacy.random.generator import RandomGenerator
from discreet.privacy.relation import Relation
from discreet.privacy.release import WHOLE, ReleasePlan
from discreet.problem.column_scaling import ColumnScaling
from discreet.problem.losses import Loss
from discreet.problem.penalties import PenaltyTerms, signed_subgradient_distance
from discreet.problem.scaled_problem import scaled_penalty_terms
from discreet.theory.distance import DistanceLaw, KnownDistance, norm_quantile

LARGEST_RATIO = 1e3  # of the gradient to its noise: beyond, the plain bound is nearly as good, and safe to compute


@dataclass(frozen=True, eq=False)
class PlainGradientDistance(KnownDistance):
    """A distance that was computed from the rows without noise. Not private: for the owner of the rows only."""


@dataclass(frozen=True, eq=False)
class GradientDistance(DistanceLaw):
    """A distance bounded by a gradient that was released with noise.

    Guarantee: private as `guarantee` states.

    Attributes
    ----------
    residual : float
        Norm of the least subgradient, computed with the noisy gradient.
    scale : float
        Standard deviation of an entry of Gaussian noise, or scale of spherical Laplace noise.
    rounding : float
        How far rounding can have moved the gradient.
    spherical : bool
        Whether the noise is spherical Laplace noise.
    exact : bool
        Whether the subgradient is the true one plus the noise, as with l2 penalties alone.
    guarantee : Guarantee
        What is promised about this number.
    """

    residual: float
    scale: float
    rounding: float
    spherical: bool
    exact: bool
    guarantee: Guarantee

    def radius(self, failure: float) -> float:
        failure = number_in("failure", failure, 0.0, 1.0, above=True)
        seen = self.residual + self.rounding
        if self.scale == 0.0:
            return seen
        if self.exact and not self.spherical and seen <= LARGEST_RATIO * self.scale:
            return self.scale * max(_largest_norm(seen / self.scale, self.size, failure), 1.0)
        return seen + self.scale * norm_quantile("spherical" if self.spherical else "gaussian", self.size, failure)


def is_leaking(law: DistanceLaw | None) -> bool:
    """Whether a distance was read from rows without noise, so that nothing computed from it may be shown."""
    unpaid = isinstance(law, GradientDistance) and not law.guarantee.is_private
    return isinstance(law, PlainGradientDistance) or unpaid


def _largest_norm(seen: float, size: int, failure: float) -> float:
    """The largest |r| with which a standard normal vector around r is this short with probability at least `failure`.

    Bisection from above keeps to the side that is rejected: rounding cannot shorten the answer.
    """
    from scipy.special import chndtr

    low, high = 0.0, seen + norm_quantile("gaussian", size, failure)
    for _ in range(60):
        middle = 0.5 * (low + high)
        if chndtr(seen**2, size, middle**2) >= failure:
            low = middle
        else:
            high = middle
    return high


def training_rows(model: Any, X: Any, y: Any, sample_weight: Any) -> Data:
    """The rows with their labels encoded; a ValueError where they cannot be those of the fit."""
    if model.guarantee_.unit == "person":
        raise ValueError("the model was trained for whole persons (groups=), and this knows rows alone.")
    if sample_weight is None and getattr(model, "weighted_", False):
        raise ValueError("the model was trained with sample_weight; pass the same weights.")
    data = load_features(X, sample_weight)
    labels = np.asarray(y).ravel()
    if data.columns != model.n_features_in_:
        raise ValueError(f"X has {data.columns} columns, but the model was trained on {model.n_features_in_}.")
    if labels.size != data.rows:
        raise ValueError(f"y has {labels.size} values but X has {data.rows} rows; pass one value per row.")
    if data.sparse:
        check_sparse_bounds(*model.ranges_)
    return replace(data, y=encode_labels(labels, model.classes_))


def check_same_mean(model: Any, rows: int) -> None:
    """Refuse another public number of rows than that of the fit: its objective would have another optimum."""
    plan, facts = getattr(model, "plan_", None), getattr(model, "_plan_facts", None)
    fitted = plan.public.rows if plan is not None else rows if facts is None else facts.rows
    if rows != fitted:
        raise ValueError(
            f"the objective of the model divides by {fitted} rows, this one by {rows}; pass the training rows, with "
            "the public_n of the fit under add_remove."
        )


MOST_ROWS = 4  # times public_n: up to so many rows the rounding of their gradients is bounded


@dataclass(frozen=True, eq=False)
class Objective:
    """The objective of a fitted model, in coordinates in which it is 1-strongly convex, and the model's point there.

    Coordinates are u = sqrt(q) w for scaled weights w with l2 penalties q; rows are divided by sqrt(q).
    """

    loss: Loss
    scaling: ColumnScaling
    root: FloatArray  # sqrt(q), one per column
    terms: PenaltyTerms
    point: FloatArray
    row_norm: float | None

    @property
    def longest(self) -> float:
        """A public bound on the norm of a row in these coordinates."""
        scaling = self.scaling
        reach = np.maximum(np.abs(scaling.low - scaling.shift), np.abs(scaling.high - scaling.shift))
        corner = np.where(scaling.frozen, 0.0, reach / (scaling.scale * self.root))
        box = float(np.linalg.norm(corner))
        if self.row_norm is None:
            return box
        return min(box, float(self.row_norm / (scaling.scale * self.root).min()))

    def gradient_sum(self, data: Data, step: float) -> FloatArray:
        """The sum of the rows' gradients at the model's point, each of norm at most lipschitz times `longest`.

        They are rounded to multiples of the step. Not private.
        """
        return data.sum(lambda block: self._of_block(block, step))

    def _of_block(self, block: Data, step: float) -> FloatArray:
        X = self._rows(block)
        slopes = self.loss.slope(margins_of(X, self.point), block.y)
        return clipped_gradient_sum(X, slopes, row_norms(X), self.loss.lipschitz * self.longest, block.weight, step)

    def _rows(self, block: Data) -> Any:
        scaled = self.scaling.matrix(Data(block.X, block.y), "C", intercept=False)
        if not sp.issparse(scaled):
            scaled = np.asarray(scaled, dtype=np.float64)
        shrink = np.ones(block.rows)
        if self.row_norm is not None:
            shrink = self.row_norm / np.maximum(row_norms(_times(scaled, self.scaling.scale)), self.row_norm)
        return _times(scaled, 1.0 / self.root, shrink)

    def residual(self, mean_gradient: FloatArray) -> float:
        """The norm of the least subgradient; it bounds the distance from the optimum."""
        least = signed_subgradient_distance(self.point, mean_gradient, self.terms)
        return float(np.linalg.norm(np.maximum(least, 0.0)))

    @property
    def is_smooth(self) -> bool:
        """Whether the penalty has l2 terms only."""
        free = np.isneginf(self.terms.low).all() and np.isposinf(self.terms.high).all()
        return bool(free and not self.terms.l1.any())


def plan_gradient(public: Public, budget: Budget, objective: Objective) -> ReleasePlan:
    """One release of the sum of the gradients at the model's point."""
    clip = objective.loss.lipschitz * objective.longest
    settings = {"size": objective.point.shape, "clip": clip}
    return ReleasePlan("gradient", public, budget, {"mechanism": _noise(budget)}, settings)


def gradient_grid(plan: ReleasePlan, objective: Objective) -> NoisyGrid:
    """The grid and the noise of the release."""
    sensitivity = gradient_sum(plan.public.relation, objective.loss, objective.longest)
    grid: NoisyGrid = plan.mechanism.grid(sensitivity, math.prod(plan.size), plan.public.rows)
    return grid


def learn_gradient(plan: ReleasePlan, objective: Objective, data: Data, rng: RandomGenerator) -> FloatArray:
    """The mean gradient with noise.

    Guarantee: costs exactly the event of the plan.
    """
    grid = gradient_grid(plan, objective)
    return grid.release(rng, objective.gradient_sum(data, grid.step)) / plan.public.rows


@with_options
def gradient_distance(
    model: Any,
    X: Any,
    y: Any,
    *,
    epsilon: Any = None,
    delta: float | None = None,
    row_norm: float | None = None,
    relation: Any = None,
    public_n: int | None = None,
    sample_weight: Any = None,
    ledger: Any = None,
    dataset: str | None = None,
    random_state: Any = None,
) -> PlainGradientDistance | GradientDistance:
    """Return how far a released classifier is from the optimum of its own objective on its training rows.

    The bound is the norm of the objective's gradient at the released coefficients, so it holds for every solver. Every
    coefficient needs an l2 penalty, so the model must have been made with `fit_intercept=False`; put a column of ones
    into X where an intercept is needed.

    Guarantee: with `epsilon` the result is differentially private as its `guarantee` states. Without, it is computed
    from the rows without noise, for the owner of the rows only, and warns.

    Parameters
    ----------
    model : fitted classifier of discreet, or one that was read from a model file
        Its coefficients count as public.
    X : array, sparse matrix or table of shape (n_samples, n_features)
        The training rows.
    y : array of shape (n_samples,)
        Their labels, each one of the model's classes.
    epsilon : float or Budget, optional
        Privacy budget of this release; None computes the bound without noise, which is not private.
    row_norm : float, optional
        A public bound on the Euclidean norm of a row, its entries clipped to the model's ranges; longer rows are
        shortened, and the optimum is that of the shortened rows. None takes the farthest corner of the ranges, which
        shortens nothing. A smaller bound needs less noise.
    relation : {"replace", "zero_out", "add_remove"}, optional
        Which tables count as neighbours; None takes that of the model.
    public_n : int, optional
        With relation="add_remove": a public estimate of the number of rows; None takes that of the model.
    sample_weight : array of shape (n_samples,), optional
        The weights that the model was trained with, as private as the rows.

    Returns
    -------
    PlainGradientDistance or GradientDistance
        A law for `certificate(..., distance=law)`; `radius(failure)` is the bound, `guarantee` what is promised.

    Raises
    ------
    ValueError
        The model has an intercept, a coefficient without an l2 penalty, or a penalty that ties coefficients together.
        The number of rows or the weights cannot be those of its fit.

    Examples
    --------
    >>> import numpy as np
    >>> from discreet import LogisticRegression
    >>> from discreet.fairness import gradient_distance
    >>> X = np.random.default_rng(0).uniform(-1.0, 1.0, (5000, 2))
    >>> y = (X[:, 0] > 0.0).astype(int)
    >>> known = {"bounds": (-1.0, 1.0), "classes": [0, 1], "fit_intercept": False}
    >>> model = LogisticRegression(alpha=0.1, random_state=0, **known).fit(X, y)
    >>> law = gradient_distance(model, X, y, epsilon=1.0, random_state=0)  # seeds, so that this example repeats
    >>> bool(law.radius(0.01) < 0.05)
    True
    """
    objective = objective_of(model, row_norm)
    relation = model.relation if relation is None else relation
    public_n = model.public_n if public_n is None else public_n
    data = training_rows(model, X, y, sample_weight)
    facts: dict[str, Any] = {"weights": objective.root**2, "outputs": objective.loss.outputs}
    shortened = "" if row_norm is None else f", rows shortened to norm {row_norm:g}"
    clipped = f"entries clipped to the model's ranges{shortened}"
    facts["reference"] = f"the optimum of the model's own objective on these rows ({clipped})"
    promised = {"epsilon": math.inf if epsilon is None else epsilon, "delta": delta}
    public, budget = facts_of(data, None, relation=relation, public_n=public_n, **promised)
    check_same_mean(model, public.rows)
    if epsilon is None:
        warn(
            "the distance from the optimum is read from the rows without noise, which leaks; pass epsilon= to pay for "
            "a private one.",
            PrivacyLeakWarning,
        )
        mean = objective.gradient_sum(data, 0.0) / public.rows
        return PlainGradientDistance(**facts, distance=objective.residual(mean))
    plan = plan_gradient(public, budget, objective)
    with plan.booked("gradient_distance", ledger, dataset, random_state, objective.point) as booking:
        mean = learn_gradient(plan, objective, data, booking.rng)
    noise = _noise_of(gradient_grid(plan, objective), public, objective.point.size)
    facts |= {"residual": objective.residual(mean), "exact": objective.is_smooth, "guarantee": booking.guarantee}
    return GradientDistance(**facts, **noise)


def objective_of(model: Any, row_norm: float | None = None) -> Objective:
    """The objective of a fitted classifier; a ValueError where it is not strongly convex in every coefficient."""
    if not hasattr(model, "classes_") or not hasattr(model, "_problem"):
        raise ValueError("gradient_distance needs a fitted classifier of discreet.")
    check_threshold("row_norm", row_norm)
    problem = model._problem(model.classes_.size)
    if problem.fit_intercept:
        raise ValueError(
            "the intercept has no l2 penalty, so the gradient bounds no distance; fit with fit_intercept=False and, if "
            "an intercept is needed, with a column of ones in X."
        )
    if not problem.separable:
        raise ValueError("the penalty or the constraint ties coefficients together; no gradient bound is known.")
    scaling = model.scaling_
    terms = scaled_penalty_terms(problem, scaling)
    if not (terms.l2 > 0.0).all():
        raise ValueError("every coefficient needs an l2 penalty: alpha > 0, and l1_ratio < 1 for an elastic net.")
    root = np.sqrt(terms.l2)
    one_strong = PenaltyTerms(terms.l1 / root, np.ones_like(root), terms.low * root, terms.high * root)
    weights = scaling.from_user(np.asarray(model.coef_))
    point = (weights[0] if problem.loss.outputs == 1 else weights) * root
    inside = np.clip(point, one_strong.low, one_strong.high)  # the products may have been rounded past an end
    if not np.allclose(point, inside, rtol=1e-9, atol=0.0):
        raise ValueError("the coefficients of the model lie outside its constraint; no distance can be stated.")
    return Objective(problem.loss, scaling, root, one_strong, inside, row_norm)


def _noise(budget: Budget) -> OutputNoise:
    if budget.kind == "pure" and not budget.is_infinite:
        assert budget.epsilon is not None
        return SphericalLaplace(1.0 / (WHOLE * budget.epsilon))
    noise = mechanisms.additive(budget, WHOLE)
    assert isinstance(noise, mechanisms.Gaussian)
    return noise


def _noise_of(grid: NoisyGrid, public: Public, entries: int) -> dict[str, Any]:
    """The size of the noise on the mean gradient, and how far rounding can move it."""
    most = public.rows * (MOST_ROWS if public.relation is Relation.ADD_REMOVE else 1)
    rounding = 0.5 * (most + 1.0) * grid.step * math.sqrt(entries) / public.rows
    return {"scale": grid.scale / public.rows, "rounding": rounding, "spherical": grid.law == "spherical"}


def _times(X: Any, columns: FloatArray, rows: FloatArray | None = None) -> Any:
    """The table times a number for each column, and one for each row."""
    if sp.issparse(X):
        scaled = sp.csr_array(X.multiply(columns))
        return scaled if rows is None else sp.csr_array(scaled.multiply(rows[:, None]))
    scaled = X * columns
    return scaled if rows is None else scaled * rows[:, None]
