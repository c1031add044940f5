"""Which of several scores is the largest after Gumbel noise, where double precision leaves it open.

As in exact_rounding.py, the noise of a score is a function of a number with infinitely many random digits, of which as
many are drawn as the comparison needs.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from discreet._common.types import FloatArray, IndexArray
from discreet.privacy.random.exact_rounding import WORD, Bits, Fraction, Words

FAR_APART = 2.0**-40  # of the size of a score and of its noise, which has errors of 2^-46 of it at most


def leaders(noisy: FloatArray, words: Words) -> IndexArray:
    """The places whose exact noisy score may be the largest.

    Doubles tell two noisy scores apart that differ by more than 2^-40 of their size. Where a word ends in so many ones
    that its noise is not known to that precision (about one in 2^20 words), its place counts as a leader.
    """
    best = float(noisy.max())
    close = noisy >= best - FAR_APART * (1.0 + abs(best))
    unsure = words >= np.uint64((1 << WORD) - (1 << 44))
    return np.flatnonzero(close | (unsure & (noisy >= best - 1.0)))


def largest(scores: list[float], words: list[int], bits: Bits) -> int:
    """The place of the largest of score_i - ln(-ln u_i), the first digits of u_i being those of word i."""
    import mpmath as mp

    fractions = [Fraction(word) for word in words]
    while True:
        for fraction in fractions:
            fraction.extend(bits)
        with mp.workprec(fractions[0].digits + 2 * WORD):
            ends = [_ends(score, fraction, mp) for score, fraction in zip(scores, fractions, strict=True)]
            best = max(range(len(ends)), key=lambda i: ends[i][0])
            if all(ends[best][0] > high for i, (_, high) in enumerate(ends) if i != best):
                return best


def _ends(score: float, fraction: Fraction, mp: Any) -> tuple[Any, Any]:
    """The lowest and the highest noisy score that the digits known so far allow; the noise increases with u."""
    unit = mp.mpf(2) ** -fraction.digits
    low, high = fraction.value * unit, (fraction.value + 1) * unit
    return (
        mp.mpf(score) - mp.log(-mp.log(low)) if low > 0 else -mp.inf,
        mp.mpf(score) - mp.log(-mp.log(high)) if high < 1 else mp.inf,
    )
