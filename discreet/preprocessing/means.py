"""Private means of columns with declared bounds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from discreet._common.docstrings import with_options
from discreet.data.loading import load
from discreet.data.rows import limits_between, moment_sums
from discreet.preprocessing.release import FloatArray, Released, rows_and_facts
from discreet.privacy import mechanisms
from discreet.privacy.release import WHOLE, ReleasePlan

if TYPE_CHECKING:
    from discreet.data.public import Public
    from discreet.data.rows import Rows
    from discreet.privacy.budget import Budget
    from discreet.privacy.random.generator import RandomGenerator


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
    data, public, budget = rows_and_facts(X, bounds, sample_weight, load, **promised)
    plan = plan_means(public, budget)
    with plan.booked("private_means", ledger, dataset, random_state) as booking:
        means = learn_means(plan, data, booking.rng)
    return Released(means, booking.guarantee, sample_weight is not None)
