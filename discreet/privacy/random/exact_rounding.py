"""The integer nearest to a draw, where double precision leaves open which one it is.

A draw is a function of random words. Think of each word as the first 64 binary digits of a number in (0, 1) whose
further digits are random as well. As many of these are drawn as it takes to know on which side of a half-integer the
draw lies, so the integer has exactly the law of a rounded normal or Laplace number: docs/guarantees/randomness.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from discreet._common.types import FloatArray, IndexArray
from discreet.privacy.random.precise import context_of, cosine_sine_of_turn, fixed, minus_log

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
