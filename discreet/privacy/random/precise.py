"""Logarithm, root, cosine and sine of random numbers, to as many binary digits as asked for.

Libraries for such numbers keep their precision in a variable of the process, which another thread may change in the
middle of a computation. Here it is an argument: a decimal context that nobody else has, and integers that stand for
multiples of 2^-bits.
"""

from __future__ import annotations

from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal
from functools import lru_cache

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
