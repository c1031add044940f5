"""Private means of columns with declared bounds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.data import moments
from discreet.preprocessing.release import WHOLE, FloatArray, Released, Terms
from discreet.privacy import mechanisms

if TYPE_CHECKING:
    from discreet.data.public import Public
    from discreet.data.rows import Data
    from discreet.privacy.random.generator import RandomGenerator


@dataclass(frozen=True)
class MeanPlan:
    """One joint release of the sums of all columns, centred in their declared ranges."""

    mechanism: mechanisms.Additive

    @property
    def event(self) -> Any:
        return self.mechanism.event

    def learn(self, data: Data, public: Public, rng: RandomGenerator) -> FloatArray:
        """The means of the clipped columns.

        Guarantee: costs exactly `event`.
        """
        assert public.low is not None
        assert public.high is not None
        limits = moments.limits_between(public.low, public.high, public.sparse)
        sums = moments.moment_sums(data, limits, slice(0, public.columns))[0]
        sums += self.mechanism.noise(rng, mechanisms.bounded_values(public.relation, public.columns), sums.shape)
        return np.clip(limits.centre + limits.radius * sums / public.rows, limits.low, limits.high)


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
    """The mean of every column, clipped to public bounds.

    Parameters
    ----------
    X : table, dense or sparse
    bounds : (low, high), public limits of the columns
    epsilon, delta, relation, public_n, ledger, dataset, random_state : as for the transformers

    Guarantee: the means are differentially private as the result's `guarantee` states. Deviations from the middle
    of a range are summed and divided by the public number of rows, so a row of weight 0 counts as the middle.
    """
    from discreet.privacy.random.generator import generator_from

    settings = {"relation": relation, "public_n": public_n, "ledger": ledger, "dataset": dataset}
    data, terms = Terms.for_rows(X, bounds, sample_weight, epsilon=epsilon, delta=delta, **settings)
    plan = MeanPlan(mechanisms.additive(terms.budget, WHOLE))
    rng = generator_from(random_state)
    with terms.booked(plan.event, "private_means"):
        means = plan.learn(data, terms.public, rng)
    return Released(means, terms.guarantee(plan.event), data.weight is not None)
