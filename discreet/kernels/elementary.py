"""Elementary functions and draws whose every rounding is written down: of arrays with NumPy, of one number by Numba.

The same text serves both: `vectormath` tells Numba what the first few functions mean for one number, and the others are
made of them. A product is rounded before it is added to anything, and no sum is reordered, so that NumPy and the
compiled loops, on any processor, give the same bits. The draws at the end are those of `sampling`, for few of them.
Nothing here needs Numba, which is slow to import.
"""

from __future__ import annotations

import numpy as np

MANTISSA_BITS, EXPONENT_BIAS = 52, 1023  # of a double

_LOG2_E = 1.4426950408889634
# The high part of ln 2 has 21 significant bits, so that its product with an exponent is exact.
_LN2_HIGH = float.fromhex("0x1.62e42p-1")
_LN2_LOW = 4.7493250390316726e-07
_LN2 = 0.6931471805599453
# Adding 1.5 * 2^52 rounds to an integer and leaves it in the low bits of the result; conversions
# between floats and 64-bit integers have no vector instruction before AVX-512.
_ROUND = 6755399441055744.0
_OFFSET = 4503599627370496.0 + 1023.0  # of the exponents of `split`
_FAR = 695.0  # 60480 exp(695), which minus_sigmoid meets, is still a double

MANTISSA = np.uint64(0x000FFFFFFFFFFFFF)
ONE = np.uint64(0x3FF0000000000000)
_TWO_52_BITS = np.uint64(0x4330000000000000)
_SQRT_HALF = np.uint64(0x3FE6A09E667F3BCD)
_ABOVE_SQRT_HALF = np.uint64(0x3FF0000000000000 - 0x3FE6A09E667F3BCD)
_SECOND_BIT, _TOP_BIT, _NO_BIT = np.uint64(1 << 62), np.uint64(1 << 63), np.uint64(0)
_2, _12, _52 = np.uint64(2), np.uint64(12), np.uint64(MANTISSA_BITS)
_FIRST_BIT, _SIGN = np.uint64(1), np.uint64(63)
# Of the scale and of the draw: more than what the transforms can be wrong by, see docs/guarantees/randomness.md.
GUARD = 2.0**-46
# Radius words outside these bounds leave the radius open by more than the guard allows.
FIRST_WORD, LAST_WORD = np.uint64(1 << 44), np.uint64((1 << 64) - (1 << 30))


def bits_to_float(bits):
    """Read the 64 bits of an unsigned integer as a double."""
    return bits.view(np.float64)


def float_to_bits(number):
    """Read the 64 bits of a double as an unsigned integer."""
    return number.view(np.uint64)


def as_float(word):
    """The double nearest to an unsigned integer."""
    return word.astype(np.float64)


def either(condition, first, second):
    """The first where the condition holds, the second elsewhere."""
    return np.where(condition, first, second)


def lesser_of(x, limit):
    """The lesser of a number and a constant; NaN counts as large."""
    return np.fmin(x, limit)


def greater_of(x, limit):
    """The greater of a number and a constant; NaN counts as small."""
    return np.fmax(x, limit)


def exp_fast(x):
    """Exponential, relative error below 1e-15; saturates outside [-700, 700]; NaN gives NaN."""
    clipped = either(x < 700.0, x, 700.0)
    clipped = either(clipped > -700.0, clipped, -700.0)
    shifted = clipped * _LOG2_E + _ROUND
    q = shifted - _ROUND
    r = (clipped - q * _LN2_HIGH) - q * _LN2_LOW
    tail = 2.7620075879983367e-07 + r * 2.5100375832561234e-08
    tail = 2.4801521322368692e-05 + r * (2.7557268480310024e-06 + r * tail)
    tail = 0.0013888888917196719 + r * (0.00019841269863040545 + r * tail)
    tail = 0.041666666666624164 + r * (0.008333333333330065 + r * tail)
    tail = 0.5000000000000001 + r * (0.16666666666666669 + r * tail)
    power = float_to_bits(1.0 + (r + r * r * tail)) + (float_to_bits(shifted) << _52)
    return either(x == x, bits_to_float(power), x)  # noqa: PLR0124 - only NaN differs from itself


def minus_sigmoid(x):
    """-1 / (1 + exp(x)), relative error below 1e-15 (1 + |x|) for |x| < 695; NaN counts as a large x.

    With x = q ln 2 + r and the Pade approximant exp(r) = (even + odd) / (even - odd) of degree 5, one
    division gives the whole fraction.
    """
    clipped = greater_of(lesser_of(x, _FAR), -_FAR)
    shifted = clipped * _LOG2_E + _ROUND
    r = clipped - (shifted - _ROUND) * _LN2
    z = r * r
    odd = r * (15120.0 + z * (420.0 + z))
    even = 30240.0 + z * (3360.0 + z * 30.0)
    below = odd - even
    above = bits_to_float(float_to_bits(even + odd) + (float_to_bits(shifted) << _52))
    return below / (above - below)


def log_of_parts(exponent, f):
    """exponent * ln 2 + ln(1 + f) for |f| < 0.42, from ln(1 + f) = 2 artanh(f / (2 + f))."""
    s = f / (2.0 + f)
    z = s * s
    tail = 0.18182889158299903 + z * (0.15331720502376558 + z * 0.1461646325895801)
    tail = 0.2857142862597826 + z * (0.22222211134341624 + z * tail)
    tail = z * (0.666666666666667 + z * (0.399999999998995 + z * tail))
    half_square = 0.5 * f * f
    small = s * (half_square + tail) + exponent * _LN2_LOW
    return exponent * _LN2_HIGH - ((half_square - small) - f)


def split(bits):
    """Of a positive normal double 2^e * m, with m in [sqrt(1/2), sqrt(2)): the bits of e + _OFFSET, and those of m."""
    above = bits + _ABOVE_SQRT_HALF
    return (above >> _52) | _TWO_52_BITS, (above & MANTISSA) + _SQRT_HALF


def log_fast(x):
    """Natural logarithm of a positive, normal, finite double, within about 1 ulp; garbage elsewhere."""
    exponent, m = split(float_to_bits(x))
    return log_of_parts(bits_to_float(exponent) - _OFFSET, bits_to_float(m) - 1.0)


def exponential_from_bits(word):
    """-ln((word + 1/2) / 2^64): a standard exponential draw, from 2^-65 up to 45.05.

    Close to 1 the uniform is replaced by its distance from 1, which a double holds exactly where the
    uniform itself would have been rounded: small draws are as accurate as large ones.
    """
    uniform = as_float(word) + 0.5
    distance = (as_float(~word) + 0.5) * 5.421010862427522e-20
    exponent, m = split(float_to_bits(uniform))
    f = either(distance < 0.25, -distance, bits_to_float(m) - 1.0)
    return -log_of_parts(bits_to_float(exponent) - (_OFFSET + 64.0), f)


def uniform_from_bits(word):
    """(k + 1/2) / 2^52 for the top 52 bits k of the word: never 0, never 1, symmetric about 1/2."""
    return bits_to_float((word >> _12) | ONE) - 0.9999999999999999


def cos_sin_of_turn(word):
    """Cosine and sine of the angle whose fraction of a whole turn is given by the word.

    The top two bits choose the quarter turn, the next 52 the place inside it, so that the argument
    reduction is exact; neither result is ever 0.
    """
    place = bits_to_float(((word << _2) >> _12) | ONE) - 1.5
    x = (place + 1.1102230246251565e-16) * 1.5707963267948966
    z = x * x
    tail = 2.7557316102551507e-06 + z * (-2.5051131844808866e-08 + z * 1.5918129280835e-10)
    tail = 0.008333333333330948 + z * (-0.00019841269836758574 + z * tail)
    sine = x + x * (z * (-0.16666666666666666 + z * tail))
    tail = -2.755731727172921e-07 + z * (2.087614626828136e-09 + z * -1.1382632416743667e-11)
    tail = -0.0013888888888887398 + z * (2.4801587298765686e-05 + z * tail)
    cosine = 1.0 + z * (-0.5 + z * (0.041666666666666664 + z * tail))
    swap, sign = (word & _SECOND_BIT) != _NO_BIT, word & _TOP_BIT
    first, second = either(swap, -sine, cosine), either(swap, cosine, sine)
    return bits_to_float(float_to_bits(first) ^ sign), bits_to_float(float_to_bits(second) ^ sign)


def normal_pair_from_bits(radius_word, angle_word):
    """Two independent standard normal draws by the Box-Muller transform, up to 9.49 in size."""
    radius = np.sqrt(2.0 * exponential_from_bits(radius_word))
    cosine, sine = cos_sin_of_turn(angle_word)
    return radius * cosine, radius * sine


def fill_uniform(words, out):
    """Uniform draws on the open interval (0, 1); one word each."""
    out[:] = uniform_from_bits(words[: out.size])


def fill_normal(words, out):
    """Standard normal draws; one word each, one more when the number of draws is odd."""
    half, pairs = out.size // 2, (out.size + 1) // 2
    first, second = normal_pair_from_bits(words[:pairs], words[pairs : 2 * pairs])
    out[:half], out[half : 2 * half] = first[:half], second[:half]
    out[2 * half :] = first[half:]


def fill_laplace(words, out):
    """Laplace draws of scale 1; the top bit of a word is the sign, the other 63 the size."""
    size = exponential_from_bits(words[: out.size] << _FIRST_BIT)
    out[:] = np.where(words[: out.size] >> _SIGN, -size, size)


def fill_gumbel(words, out):
    """Standard Gumbel draws -ln(-ln U); one word each."""
    out[:] = -log_fast(exponential_from_bits(words[: out.size]))


def round_normal(words, scale, out, undecided):
    """Round normal draws made of these words to integers, times the scale; see `sampling.round_normal`."""
    half = out.size // 2
    radius_words = np.concatenate([words[:half], words[: out.size - half]])
    return _round(scale, out, undecided, (radius_words < FIRST_WORD) | (radius_words > LAST_WORD))


def round_laplace(words, scale, out, undecided):
    """The same for Laplace draws, made as by `fill_laplace`."""
    return _round(scale, out, undecided, (words[: out.size] << _FIRST_BIT) < FIRST_WORD)


def _round(scale, out, undecided, far):
    """Round the draws, and write where double precision does not tell to which integer; returns how many there are."""
    out *= scale
    rounded = np.rint(out)
    places = np.flatnonzero((np.abs(out - rounded) + GUARD * (np.abs(out) + scale) > 0.5) | far)
    undecided[: places.size] = places
    out[:] = rounded
    return places.size
