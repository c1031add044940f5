"""What a client agrees to, before it answers: it holds the plan against its own limits and believes no figure in it."""

from __future__ import annotations

import math

from discreet._common.checks import at_least_zero, fraction, one_of
from discreet.federated.plan import UNITS, FederatedPlan, Unit
from discreet.privacy.guarantee import Guarantee

MAX_DELTA = 0.01  # a larger one makes every epsilon meaningless
WHOSE = {"client": "for all of its rows together", "record": "for each of its rows"}


def agreed(
    plan: FederatedPlan,
    name: str,
    *,
    unit: Unit | None,
    trusts_server: bool,
    max_epsilon: float | None,
    max_delta: float,
) -> Guarantee:
    """What the plan promises to a client, in the model and for the unit that its limits are about.

    Raises
    ------
    ValueError
        The plan may cost more than the limits, or has no noise and no limit says that this is known.
    """
    if unit is not None:
        one_of("unit", unit, UNITS)
    limit = None if max_epsilon is None else at_least_zero("max_epsilon", max_epsilon)
    most = fraction("max_delta", max_delta)
    protected = unit or plan.unit
    promise = plan.guarantees["central" if trusts_server else "local", protected]
    if limit is None:
        if not promise.is_private:
            raise ValueError(f"the plan has no noise; client {name!r} answers it only with max_epsilon=math.inf.")
        return promise
    # With max_epsilon=math.inf anything goes, whatever delta is.
    if promise.epsilon > limit or (math.isfinite(limit) and promise.delta > most):
        cost = f"epsilon = {promise.epsilon:.4g}, delta = {promise.delta:.3g} {WHOSE[protected]}"
        raise ValueError(f"the plan may cost client {name!r} {cost}, above its limit {limit:g} (delta {most:g}).")
    return promise
