"""Lower bounds for private selections: how often one candidate wins on two neighbouring sets of scores."""

from __future__ import annotations

from typing import Any

import numpy as np

from discreet.audit.lower_bound import CONFIDENCE, at_least, at_most
from discreet.privacy.mechanisms import Sensitivity
from discreet.privacy.random.generator import RandomGenerator, secure_generator

GAP = 5.0  # by how much the candidate that is watched lies below the others, in units of the sensitivity


def selection_lower_bound(
    mechanism: Any, candidates: int = 3, runs: int = 60_000, gap: float = GAP, rng: RandomGenerator | None = None
) -> float:
    """A lower bound on the epsilon of one selection, on the neighbours that are worst for noisy maxima.

    The score of one candidate rises by the sensitivity and those of all others fall by it, from well below them: noise
    with heavy tails then hides less than it does when all scores move alike.

    Parameters
    ----------
    mechanism : object with choose(rng, scores, sensitivity)
        Such as `GumbelGreedy`.
    candidates : int
    runs : int
        Selections on each table.
    gap : float
        How far the candidate lies below the others, in sensitivities.
    rng : RandomGenerator, optional

    Returns
    -------
    float

    Guarantee: exceeds the epsilon of the selection with probability at most 1e-6.
    """
    generator, unit = rng or secure_generator(), Sensitivity(1.0, 1.0)
    low = np.zeros(candidates)
    low[0] = -gap
    high = low - 1.0
    high[0] = low[0] + 1.0
    wins = [sum(mechanism.choose(generator, scores, unit) == 0 for _ in range(runs)) for scores in (high, low)]
    failure = 0.5 * (1.0 - CONFIDENCE)
    lower, upper = at_least(np.array(wins[0]), runs, failure), at_most(np.array(wins[1]), runs, failure)
    return float(max(0.0, np.log(max(float(lower), 1e-300) / float(upper))))
