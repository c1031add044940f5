"""The integer nearest to a draw, where double precision leaves open which one it is.

A draw is a function of random words. Think of each word as the first 64 binary digits of a number in (0, 1) whose
further digits are random as well. As many of these are drawn as it takes to know on which side of a half-integer the
draw lies, so the integer has exactly the law of a rounded normal or Laplace number: docs/guarantees/randomness.md.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet._common.types import FloatArray, IndexArray

MORE_DIGITS = 64  # drawn at a time
WORD = 64

Bits = Callable[[int], int]  # so many random binary digits, as an integer
Words = NDArray[np.uint64]


class Fraction:
    """A number in (0, 1) that is known to `digits` binary digits."""

    def __init__(self, word: int, digits: int = WORD) -> None:
        self.value, self.digits = word, digits

    def extend(self, bits: Bits) -> None:
        """Draw further digits."""
        self.value = (self.value << MORE_DIGITS) | bits(MORE_DIGITS)
        self.digits += MORE_DIGITS

    def middle(self, mp: Any) -> Any:
        """The middle of the interval in which the number lies."""
        return (mp.mpf(self.value) + 0.5) / mp.mpf(2) ** self.digits

    def width(self, mp: Any) -> Any:
        """Half the width of that interval."""
        return mp.mpf(2) ** -(self.digits + 1)


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
    import mpmath as mp

    while True:
        radius.extend(bits)
        angle.extend(bits)
        with mp.workprec(radius.digits + 2 * WORD):
            u = radius.middle(mp)
            length = mp.sqrt(-2 * mp.log(u))
            # The angle starts at minus an eighth of a turn: kernels/vectormath.py.
            turn = (angle.middle(mp) - mp.mpf(1) / 8) * 2 * mp.pi
            # Both derivatives, with room for the change of the derivative within the interval.
            loose = 2 * (radius.width(mp) / (u * length) + angle.width(mp) * 2 * mp.pi * length)
            found = [scale * length * mp.cos(turn), scale * length * mp.sin(turn)]
            if radius.value > 0 and all(_is_clear(draw, scale * loose, mp) for draw in found):
                return int(mp.nint(found[0])), int(mp.nint(found[1]))


def rounded_laplace(sign: int, fraction: Fraction, scale: float, bits: Bits) -> int:
    """The integer nearest to a Laplace number of this sign, its size being minus the logarithm of a fraction."""
    import mpmath as mp

    while True:
        fraction.extend(bits)
        with mp.workprec(fraction.digits + 2 * WORD):
            u = fraction.middle(mp)
            size = -scale * mp.log(u)
            if fraction.value > 0 and _is_clear(size, 2 * scale * fraction.width(mp) / u, mp):
                return sign * int(mp.nint(size))


def _is_clear(draw: Any, loose: Any, mp: Any) -> bool:
    """Whether no half-integer is as near as `loose`, with room for the rounding of the arithmetic itself."""
    return bool(abs(draw - mp.nint(draw)) + 2 * loose < 0.5)
