"""What an attacker can come to know, in the terms in which people ask: beliefs and guesses."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from discreet.privacy.accounting.certificates import deltas_of
from discreet.privacy.accounting.composition import read_composition
from discreet.privacy.accounting.pairs import Array
from discreet.privacy.relation import Relation

if TYPE_CHECKING:
    from dp_accounting import DpEvent

_ROUNDING = 1.0 + 1e-12  # of a pure cost, which is a sum of floats
_FRACTIONS = 1.0 - np.geomspace(0.01, 0.9, 40)  # of epsilon, at which the deltas are asked for


def guess_accuracy(event: DpEvent, relation: Relation | str) -> float:
    """Return the most often that a guess between two neighbouring tables can be right, if both were equally likely.

    Guarantee: no attack is right more often; it is half of one plus delta at epsilon 0. docs/guarantees/accounting.md.
    """
    return 0.5 + 0.5 * min(1.0, float(deltas_of(read_composition(event, relation), np.zeros(1))[0]))


def excess_probability(event: DpEvent, epsilon: float, relation: Relation | str) -> float:
    """Return a bound on the probability that a result multiplies somebody's odds by more than exp(epsilon).

    It is not the tail of the privacy loss of the noise: who sees only part of a result, or a function of it, may pass
    exp(epsilon) more often than who sees all of it (and then by less).

    Guarantee: never below the truth, for the result and whatever is computed from it. docs/guarantees/accounting.md.
    """
    composition = read_composition(event, relation)
    if not composition.is_private:
        return 1.0
    if composition.pure_epsilon() <= epsilon * _ROUNDING:
        return 0.0
    return excess_bound(lambda smaller: deltas_of(composition, smaller), epsilon)


def excess_bound(deltas: Callable[[Array], Array], epsilon: float, also_at: tuple[float, ...] = ()) -> float:
    """Return the bound of `excess_probability` from a privacy profile, which gives a delta for each epsilon.

    `also_at` are epsilons that are tried as well; only those below `epsilon` tell anything.
    """
    if epsilon <= 0.0:
        return 1.0
    smaller = np.array([*(epsilon * _FRACTIONS), *(e for e in also_at if e < epsilon)])
    return min(1.0, float((deltas(smaller) / -np.expm1(smaller - epsilon)).min()))
