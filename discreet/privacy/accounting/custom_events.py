"""Events that dp-accounting does not have; imported only when one is described, because it needs dp_accounting."""

from __future__ import annotations

import attr
from dp_accounting import DpEvent


@attr.s(frozen=True, slots=True, auto_attribs=True)
class BoundedRangeDpEvent(DpEvent):
    """A selection by the exponential mechanism: Gumbel noise of scale 2 sensitivity / epsilon.

    For every two neighbouring tables the log-ratio of the probabilities of an outcome lies in an interval of
    length epsilon that contains zero (bounded range), whatever the number of candidates.

    Guarantee: epsilon-DP, and epsilon^2 / 8-zCDP.
    """

    epsilon: float


@attr.s(frozen=True, slots=True, auto_attribs=True)
class PureDpEvent(DpEvent):
    """A release of which nothing is known but that it is epsilon-DP.

    Guarantee: dominated by randomised response with the same epsilon.
    """

    epsilon: float


@attr.s(frozen=True, slots=True, auto_attribs=True)
class ObjectiveDpEvent(DpEvent):
    """The exact minimiser of a strongly convex objective with Gaussian noise on its gradient.

    The noise multiplier is the standard deviation over the sensitivity of the gradient; `shift` bounds the
    log-ratio of the determinants of the Hessians, `tails` counts the Gaussian tails that the proof adds up.

    Guarantee: the loss exceeds x >= shift with probability at most tails * P(G > x - shift), G being the loss of
    a Gaussian release with the same multiplier (docs/guarantees/objective-perturbation.md).
    """

    shift: float
    noise_multiplier: float
    tails: int


@attr.s(frozen=True, slots=True, auto_attribs=True)
class BestOfTrialsDpEvent(DpEvent):
    """The best of a random number of independent trials; the number and the other trials are not released.

    Each trial costs one of `events`. The number of trials is a truncated negative binomial with the parameters eta
    (1: geometric, 0: logarithmic) and gamma.

    Guarantee: the profile of docs/guarantees/private-search.md.
    """

    events: list[DpEvent]
    eta: float
    gamma: float
