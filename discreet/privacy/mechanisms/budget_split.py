"""One calibrated budget, divided in fixed shares between Gaussian releases of different weight."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from discreet.privacy import accounting
from discreet.privacy.mechanisms import Gaussian


@dataclass(frozen=True)
class BudgetSplit:
    """Gaussian releases that each take their share of what one release of this multiplier would cost.

    Guarantee: if every part with a positive share is used once, mu-Gaussian DP with mu = sqrt(sum of the
    shares) / multiplier, for adaptively chosen queries. A share of 0 stands for a release that is not made.
    """

    multiplier: float
    shares: tuple[float, ...]

    @property
    def event(self) -> Any:
        return accounting.compose([self.part(k).event for k, share in enumerate(self.shares) if share > 0.0])

    @property
    def whole(self) -> Gaussian:
        """The release that would cost as much as all parts together; its noise is public and serves as a unit."""
        return Gaussian(self.multiplier / math.sqrt(sum(self.shares)))

    def part(self, k: int) -> Gaussian:
        """The mechanism of release k."""
        return Gaussian(self.multiplier / math.sqrt(self.shares[k]))
