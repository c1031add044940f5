"""Private means of columns with declared bounds, and of their squares: smoothness constants for coordinate descent.

A smoothness constant says how curved the objective is along a coordinate:
M_j = c * mean of x_ij^2 with c the loss's smoothness. A mean of numbers in [0, b] moves by b / n when a row is
replaced, not by 2 b / n; all columns are released together. Proof: docs/guarantees/preprocessing.md.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from discreet._common.docstrings import with_options
from discreet.data.loading import load
from discreet.data.public import Public
from discreet.data.rows import Data, Limits, Rows, limits_between, moment_sums
from discreet.preprocessing.base import FloatArray, Released, rows_and_facts
from discreet.privacy import mechanisms
from discreet.privacy.budget import Budget
from discreet.privacy.random.generator import RandomGenerator
from discreet.privacy.release import WHOLE, ReleasePlan
from discreet.problem.losses import Loss


def plan_means(public: Public, budget: Budget) -> ReleasePlan:
    """One joint release of the sums of all columns, centred in their declared ranges."""
    return ReleasePlan("means", public, budget, {"mechanism": mechanisms.additive(budget, WHOLE)})


def learn_means(plan: ReleasePlan, data: Rows, rng: RandomGenerator) -> FloatArray:
    """The means of the clipped columns.

    Guarantee: costs exactly the event of the plan.
    """
    public, noise = plan.public, plan.mechanism
    limits = limits_between(*public.complete_bounds(), public.sparse)
    sums = moment_sums(data, limits, slice(0, public.columns), rounded=noise.multiplier > 0.0)[0]
    sums = noise.release(rng, sums, mechanisms.bounded_values(public.relation, public.columns))
    return np.clip(limits.centre + limits.radius * sums / public.rows, limits.low, limits.high)


@with_options
def private_means(
    X: Any,
    bounds: Any,
    epsilon: Any = 1.0,
    delta: float | None = None,
    *,
    relation: Any = "replace",
    public_n: int | None = None,
    sample_weight: Any = None,
    invalid_rows: str = "error",
    ledger: Any = None,
    dataset: str | None = None,
    random_state: Any = None,
) -> Released:
    """Return the mean of every column, clipped to public bounds, with noise.

    Deviations from the middle of a range are summed and divided by the public number of rows, so a row of weight 0
    counts as the middle.

    Guarantee: the means are differentially private as the result's `guarantee` states.

    Parameters
    ----------
    X : array, sparse matrix or table of shape (n_samples, n_features), or Dask frame or array
        The private rows.
    bounds : tuple (low, high)
        Public limits of the columns, two numbers or two sequences with one number per column.
    epsilon : float or Budget, default=1.0
        Privacy budget.

    Returns
    -------
    Released
        `values` has one mean per column, `guarantee` states the promise.

    Examples
    --------
    >>> import numpy as np
    >>> from discreet.preprocessing import private_means
    >>> ages = np.random.default_rng(0).uniform(20.0, 80.0, (20_000, 1))
    >>> found = private_means(ages, bounds=(0.0, 120.0), epsilon=1.0, random_state=0)
    >>> found.values.round()  # a seed, so that this example repeats; leave it out
    array([50.])
    """
    promised = {"epsilon": epsilon, "delta": delta, "relation": relation, "public_n": public_n}
    table, public, budget = rows_and_facts(X, bounds, sample_weight, load, invalid_rows, **promised)
    plan = plan_means(public, budget)
    with plan.booked("private_means", ledger, dataset, random_state) as booking:
        means = learn_means(plan, table.rows, booking.rng)
    return Released(means, booking.guarantee, table.weighted)


FLOOR_DEVIATIONS = 2.0  # of the noise: below, an estimate says only "small"
SMALLEST_FRACTION = 1e-14  # of the largest possible constant, where there is no noise


def plan_smoothness(public: Public, budget: Budget, curvature: float, intercept: bool) -> ReleasePlan:
    """One joint release of the mean squares of all columns, each in units of its largest possible value."""
    if (largest_smoothness(public, curvature) <= 0.0).any():
        raise ValueError("bounds are (0, 0) for a column, which then has no curvature; drop the column.")
    noise, settings = mechanisms.additive(budget, WHOLE), {"curvature": curvature, "intercept": intercept}
    return ReleasePlan("smoothness", public, budget, {"mechanism": noise}, settings)


def largest_smoothness(public: Public, curvature: float) -> FloatArray:
    """b_j: what M_j would be if every row sat at the bound of largest size."""
    low, high = public.complete_bounds()
    return curvature * np.maximum(low**2, high**2)


def least_smoothness(plan: ReleasePlan) -> FloatArray:
    """A public positive number below which no constant is released."""
    public = plan.public
    noise = plan.mechanism.deviation(mechanisms.bounded_fractions(public.columns)) / public.rows
    least = max(min(FLOOR_DEVIATIONS * noise, 1.0), SMALLEST_FRACTION)
    return largest_smoothness(public, plan.curvature) * least


def learn_smoothness(plan: ReleasePlan, data: Data, rng: RandomGenerator) -> FloatArray:
    """The constants, the intercept's last.

    Guarantee: costs exactly the event of the plan. The intercept's constant is public: its column is all ones.
    """
    public, noise = plan.public, plan.mechanism
    low, high = public.complete_bounds()
    radius = np.maximum(np.abs(low), np.abs(high))
    limits = Limits(low, high, np.zeros_like(radius), radius)
    sums = moment_sums(data, limits, slice(0, public.columns), rounded=noise.multiplier > 0.0)[1]
    sums = noise.release(rng, sums, mechanisms.bounded_fractions(public.columns))
    found = largest_smoothness(public, plan.curvature) * np.minimum(sums / public.rows, 1.0)
    return np.append(np.maximum(found, least_smoothness(plan)), np.full(int(plan.intercept), plan.curvature))


@with_options
def private_smoothness(
    X: Any,
    loss: Loss,
    bounds: Any,
    budget: Any = 1.0,
    relation: Any = "replace",
    *,
    fit_intercept: bool = True,
    delta: float | None = None,
    public_n: int | None = None,
    sample_weight: Any = None,
    invalid_rows: str = "error",
    ledger: Any = None,
    dataset: str | None = None,
    random_state: Any = None,
) -> Released:
    """Return coordinate-wise smoothness constants of the mean loss, for `CoordinateDescent(smoothness=...)`.

    The constant of column j is the loss's `smoothness` times the mean of x_j^2. The constants are positive; they
    estimate, and do not bound, the smoothness of rows beyond `bounds`.

    Guarantee: the constants are differentially private as the result's `guarantee` states.

    Parameters
    ----------
    X : array, sparse matrix or table of shape (n_samples, n_features)
        The private rows.
    loss : Loss
        Its `smoothness` bounds the second derivative in the margin.
    bounds : tuple (low, high)
        Public limits of the columns, which must not be 0 on both sides.
    budget : float or Budget, default=1.0
        Privacy budget; a number is an epsilon, which goes with `delta`.
    fit_intercept : bool, default=True
        Whether to append the constant of an intercept, which is public.

    Returns
    -------
    Released
        `values` has one constant per column (and the intercept's last), `guarantee` states the promise.

    Examples
    --------
    >>> import numpy as np
    >>> from discreet.preprocessing import private_smoothness
    >>> from discreet.problem.losses import Logistic
    >>> X = np.random.default_rng(0).uniform(-1.0, 1.0, (20_000, 1))
    >>> found = private_smoothness(X, Logistic(), bounds=(-1.0, 1.0), budget=1.0, random_state=0)
    >>> found.values.round(2)  # 0.25 times the mean square 1/3, and 0.25 for the intercept
    array([0.08, 0.25])
    """
    promised = {"epsilon": budget, "delta": delta, "relation": relation, "public_n": public_n}
    table, public, granted = rows_and_facts(X, bounds, sample_weight, invalid_rows=invalid_rows, **promised)
    plan = plan_smoothness(public, granted, float(loss.smoothness), fit_intercept)
    with plan.booked("private_smoothness", ledger, dataset, random_state) as booking:
        rows: Any = table.rows
        constants = learn_smoothness(plan, rows, booking.rng)
    return Released(constants, booking.guarantee, table.weighted)
