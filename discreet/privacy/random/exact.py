"""Draws that double precision leaves open: the nearest integer, and the largest of noisy scores.

A draw is a function of random words. Think of each word as the first 64 binary digits of a number in (0, 1) whose
further digits are random as well. As many of these are drawn as it takes to know on which side of a half-integer the
draw lies, or which of two scores is larger, so that the law is exactly the stated one: docs/guarantees/randomness.md.

Libraries for such numbers keep their precision in a variable of the process, which another thread may change in the
middle of a computation. Here it is an argument: a decimal context that nobody else has, and integers that stand for
multiples of 2^-bits.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from discreet._common.types import FloatArray, IndexArray

DECIMALS_PER_BIT = 0.30103
SPARE = 10  # decimal digits beyond those asked for


def context_of(bits: int) -> Context:
    """Decimal arithmetic whose relative error is below 2^-bits."""
    return Context(prec=int(bits * DECIMALS_PER_BIT) + SPARE, Emax=MAX_EMAX, Emin=MIN_EMIN)


def minus_log(numerator: int, digits: int, bits: int) -> Decimal:
    """-ln(numerator / 2^digits), for a numerator between 1 and 2^digits."""
    context = context_of(bits)
    return context.minus(context.ln(context.divide(Decimal(numerator), Decimal(1 << digits))))


def fixed(number: Decimal, bits: int) -> int:
    """The number as a multiple of 2^-bits, rounded down."""
    numerator, denominator = number.as_integer_ratio()
    return (numerator << bits) // denominator


def cosine_sine_of_turn(numerator: int, digits: int, bits: int) -> tuple[int, int]:
    """Cosine and sine of the angle numerator / 2^digits - 1/8, in whole turns, as multiples of 2^-bits.

    A quarter turn exchanges the two up to a sign; what is left of the angle is at most an eighth of a turn, where the
    series converge fast. The error is below 2^(10 - bits).
    """
    quarter, rest = divmod(numerator << 2, 1 << digits)
    place = ((rest << bits) >> digits) - (1 << (bits - 1))  # of a quarter turn, from -1/2 to 1/2
    cosine, sine = _series((place * _pi(bits)) >> (bits + 1), bits)
    return [(cosine, sine), (-sine, cosine), (-cosine, -sine), (sine, -cosine)][quarter]


def _series(x: int, bits: int) -> tuple[int, int]:
    """Cosine and sine of x, all as multiples of 2^-bits."""
    terms = [1 << bits, x]
    sums = list(terms)
    k = 1
    while any(terms):
        for which in (0, 1):
            # Each term follows from the one before last by -x^2 / (k (k + 1)).
            terms[which] = -((terms[which] * x >> bits) * x >> bits) // ((k + which) * (k + which + 1))
            sums[which] += terms[which]
        k += 2
        if max(map(abs, terms)) <= 1:  # rounding down never lets a negative term become 0
            break
    return sums[0], sums[1]


@lru_cache(maxsize=16)
def _pi(bits: int) -> int:
    """Pi as a multiple of 2^-bits, by the formula of Machin; 32 spare bits for its roundings."""
    wide = bits + 32
    return (16 * _arctan_of_inverse(5, wide) - 4 * _arctan_of_inverse(239, wide)) >> 32


def _arctan_of_inverse(n: int, bits: int) -> int:
    power = (1 << bits) // n
    total, k = power, 1
    while power:
        power //= n * n
        k += 2
        total += power // k if k % 4 == 1 else -(power // k)
    return total


MORE_DIGITS = 64  # drawn at a time
WORD = 64
SPARE_BITS = 128  # of the arithmetic, beyond the digits that are known

Bits = Callable[[int], int]  # so many random binary digits, as an integer
Words = NDArray[np.uint64]


class Fraction:
    """A number in (0, 1) that is known to `digits` binary digits: value / 2^digits and less than 1 / 2^digits more."""

    def __init__(self, word: int, digits: int = WORD) -> None:
        self.value, self.digits = word, digits

    def extend(self, bits: Bits) -> None:
        """Draw further digits."""
        self.value = (self.value << MORE_DIGITS) | bits(MORE_DIGITS)
        self.digits += MORE_DIGITS

    @property
    def middle(self) -> tuple[int, int]:
        """The middle of the interval in which the number lies: numerator, and digits of the denominator."""
        return 2 * self.value + 1, self.digits + 1

    @property
    def width(self) -> float:
        """Half the width of that interval."""
        return math.ldexp(1.0, -self.digits - 1)


def settle_normals(words: Words, undecided: IndexArray, scale: float, out: FloatArray, bits: Bits) -> None:
    """Overwrite the undecided draws of the kernel `round_normal`; the two draws of a pair share their digits."""
    half, pairs = out.size // 2, (out.size + 1) // 2
    for pair in sorted({int(i) % half if i < 2 * half else half for i in undecided}):
        radius, angle = Fraction(int(words[pair])), Fraction(int(words[pairs + pair]))
        first, second = rounded_normals(radius, angle, scale, bits)
        if pair == half:  # the last of an odd number of draws
            out[-1] = first
        else:
            out[pair], out[half + pair] = first, second


def settle_laplaces(words: Words, undecided: IndexArray, scale: float, out: FloatArray, bits: Bits) -> None:
    """Overwrite the undecided draws of the kernel `round_laplace`."""
    for i in undecided:
        sign, size = divmod(int(words[i]), 1 << (WORD - 1))
        out[i] = rounded_laplace(-1 if sign else 1, Fraction(size, WORD - 1), scale, bits)


def rounded_normals(radius: Fraction, angle: Fraction, scale: float, bits: Bits) -> tuple[int, int]:
    """The integers nearest to the two normal numbers that the Box-Muller transform makes of two fractions."""
    while True:
        radius.extend(bits)
        angle.extend(bits)
        precision = radius.digits + SPARE_BITS
        length = context_of(precision).sqrt(2 * minus_log(*radius.middle, precision))
        turned = cosine_sine_of_turn(*angle.middle, precision)
        u, r = (radius.value + 0.5) / (1 << radius.digits), float(length)
        # Both derivatives, doubled because they change within the intervals.
        loose = 2.0 * (radius.width / (u * r) + angle.width * 2.0 * math.pi * r)
        numbers = [_nearest(fixed(length, precision) * part, 2 * precision, scale, loose) for part in turned]
        if radius.value > 0 and numbers[0] is not None and numbers[1] is not None:
            return numbers[0], numbers[1]


def rounded_laplace(sign: int, fraction: Fraction, scale: float, bits: Bits) -> int:
    """The integer nearest to a Laplace number of this sign, its size being minus the logarithm of a fraction."""
    while True:
        fraction.extend(bits)
        precision = fraction.digits + SPARE_BITS
        size = fixed(minus_log(*fraction.middle, precision), precision)
        loose = 2.0 * fraction.width / ((fraction.value + 0.5) / (1 << fraction.digits))
        number = _nearest(size, precision, scale, loose)
        if fraction.value > 0 and number is not None:
            return sign * number


def _nearest(draw: int, bits: int, scale: float, loose: float) -> int | None:
    """The integer nearest to scale * draw / 2^bits, or None if the draw, known to within `loose`, leaves it open."""
    numerator, denominator = scale.as_integer_ratio()
    value, unit = numerator * draw, denominator << bits
    nearest = (2 * value + unit) // (2 * unit)
    distance = (unit - 2 * abs(value - nearest * unit)) / (2 * unit)  # from the half-integers; exact up to here
    # Twice what is loose, for the roundings of the arithmetic: those are far below the digits that are not known yet.
    return nearest if distance > 2.0 * scale * loose else None


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
