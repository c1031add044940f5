"""Which of several scores is the largest after Gumbel noise, where double precision leaves it open.

As in exact_rounding.py, the noise of a score is a function of a number with infinitely many random digits, of which as
many are drawn as the comparison needs.
"""

from __future__ import annotations

from decimal import Decimal

import numpy as np

from discreet._common.types import FloatArray, IndexArray
from discreet.privacy.random.exact_rounding import SPARE_BITS, WORD, Bits, Fraction, Words
from discreet.privacy.random.precise import context_of, minus_log

FAR_APART = 2.0**-40  # of the size of a score and of its noise, which has errors of 2^-46 of it at most
INFINITE = Decimal("Infinity")


def leaders(noisy: FloatArray, words: Words) -> IndexArray:
    """The places whose exact noisy score may be the largest.

    Doubles tell two noisy scores apart that differ by more than 2^-40 of their size. Where a word begins with so many
    ones that its noise is not known to that precision (about one in 2^20 words), its place counts as a leader.
    """
    best = float(noisy.max())
    close = noisy >= best - FAR_APART * (1.0 + abs(best))
    unsure = words >= np.uint64((1 << WORD) - (1 << 44))
    return np.flatnonzero(close | (unsure & (noisy >= best - 1.0)))


def largest(scores: list[float], words: list[int], bits: Bits) -> int:
    """The place of the largest of score_i - ln(-ln u_i), the first digits of u_i being those of word i."""
    fractions = [Fraction(word) for word in words]
    while True:
        for fraction in fractions:
            fraction.extend(bits)
        ends = [ends_of(score, fraction) for score, fraction in zip(scores, fractions, strict=True)]
        best = max(range(len(ends)), key=lambda i: ends[i][0])
        if all(ends[best][0] > high for i, (_, high) in enumerate(ends) if i != best):
            return best


def ends_of(score: float, fraction: Fraction) -> tuple[Decimal, Decimal]:
    """A lower and an upper bound of the noisy score by the digits known so far; the noise increases with u."""
    precision = fraction.digits + SPARE_BITS
    context = context_of(precision)

    def noisy(value: int) -> Decimal:
        size = minus_log(value, fraction.digits, precision)
        return context.subtract(Decimal(score), context.ln(size))

    # The arithmetic is off by less than this, and half of its spare bits are left beyond the digits of the noise.
    off = context.divide(Decimal(1.0 + abs(score)), Decimal(1 << (precision - WORD)))
    low = context.subtract(noisy(fraction.value), off) if fraction.value > 0 else -INFINITE
    above = fraction.value + 1
    high = context.add(noisy(above), off) if above < 1 << fraction.digits else INFINITE
    return low, high
