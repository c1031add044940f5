"""How much worse than the best candidate the one is that Gumbel noise (the exponential mechanism) selects.

Proofs: docs/guarantees/utility.md, Lemmas S1 and S2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from discreet._common.checks import number_in, whole

MANY_CANDIDATES = 10**100  # for more, ln^2(candidates) + pi^2 / 3 stands for the dilogarithm


@dataclass(frozen=True)
class SelectionError:
    """The gap e between the largest score and that of the selected candidate, whatever the scores are.

    Parameters
    ----------
    scale : float
        b: candidate j is selected with probability proportional to exp(score_j / b).
    candidates : int
        How many there are.

    Examples
    --------
    >>> from discreet.theory.selection_error import SelectionError
    >>> error = SelectionError(scale=0.5, candidates=10)
    >>> round(error.mean, 3), round(error.quantile(0.01), 3)
    (1.151, 3.396)
    """

    scale: float
    candidates: int

    def __post_init__(self) -> None:
        number_in("scale", self.scale, 0.0)
        whole("candidates", self.candidates, least=1)

    @property
    def mean(self) -> float:
        """A bound on the expected gap: b ln(candidates)."""
        return self.scale * math.log(self.candidates)

    @property
    def mean_square(self) -> float:
        """A bound on the expected squared gap: -2 b^2 Li_2(1 - candidates), about b^2 (ln^2(candidates - 1) + 3.3)."""
        from scipy.special import spence

        square = self.scale * self.scale  # infinite where ** would raise
        if self.candidates > MANY_CANDIDATES:
            return square * (math.log(self.candidates) ** 2 + math.pi**2 / 3.0)
        return max(-2.0 * square * float(spence(float(self.candidates))), 0.0)

    def quantile(self, failure: float) -> float:
        """Return what the gap exceeds with probability at most `failure`."""
        failure = number_in("failure", failure, 0.0, 1.0, above=True)
        odds = (self.candidates - 1) * (1.0 - failure) / failure
        return self.scale * math.log(max(odds, 1.0))

    def weighted_sum(self, total: float, largest: float, failure: float | None) -> float:
        """Bound the sum of the gaps of many selections, each of which may depend on those before it.

        The gaps have weights that sum up to `total`, each at most `largest`. The bound is one on the expectation, or on
        what is exceeded with probability at most `failure`.
        """
        if failure is None:
            return total * self.mean
        failure = number_in("failure", failure, 0.0, 1.0, above=True)
        return total * self.mean + largest * self.scale * math.log(1.0 / failure)
