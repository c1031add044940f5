"""The event of an exponential-mechanism selection, which dp-accounting does not have.

Imported only when a selection is described, because it needs dp_accounting.
"""

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
