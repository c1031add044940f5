"""Elementary functions that LLVM can inline and vectorise inside another loop.

The functions of the C library are opaque calls: a loop that contains one runs an element at a time.
These are straight-line arithmetic on one number, so that a plain loop around them becomes SIMD code.

Two rules keep them exact whatever the caller's flags. They are inlined by LLVM (`forceinline`), which
keeps the fast-math flags of each instruction, and not by Numba (`inline="always"`), which would apply
the caller's. And they never allow `reassoc`: it would cancel the rounding constants below.

Numba's disk cache of a caller does not notice a change in this file; after an edit, delete the
`__pycache__` folders.
"""

from __future__ import annotations

import math

from llvmlite import ir
from numba import njit, types, uint64
from numba.extending import intrinsic

_helper = njit(forceinline=True, cache=True, error_model="numpy", fastmath={"contract", "nsz"})

MANTISSA_BITS, EXPONENT_BIAS = 52, 1023  # of a double

_LOG2_E = 1.4426950408889634
# The high part of ln 2 has 21 significant bits, so that its product with an exponent is exact.
_LN2_HIGH = float.fromhex("0x1.62e42p-1")
_LN2_LOW = 4.7493250390316726e-07
_LN2 = 0.6931471805599453
# Adding 1.5 * 2^52 rounds to an integer and leaves it in the low bits of the result; conversions
# between floats and 64-bit integers have no vector instruction before AVX-512.
_ROUND = 6755399441055744.0
_TWO_52 = 4503599627370496.0
_FAR = 695.0  # 60480 exp(695), which minus_sigmoid meets, is still a double

_MANTISSA = 0x000FFFFFFFFFFFFF
_ONE = 0x3FF0000000000000
_TWO_52_BITS = 0x4330000000000000
_SQRT_HALF = 0x3FE6A09E667F3BCD


@intrinsic
def bits_to_float(typingctx, bits):
    """Read the 64 bits of an unsigned integer as a double."""

    def codegen(context, builder, signature, args):
        return builder.bitcast(args[0], ir.DoubleType())

    return types.float64(types.uint64), codegen


@intrinsic
def float_to_bits(typingctx, number):
    """Read the 64 bits of a double as an unsigned integer."""

    def codegen(context, builder, signature, args):
        return builder.bitcast(args[0], ir.IntType(64))

    return types.uint64(types.float64), codegen


@intrinsic
def multiply_high(typingctx, first, second):
    """High 64 bits of the 128-bit product of two unsigned 64-bit integers."""

    def codegen(context, builder, signature, args):
        wide = ir.IntType(128)
        product = builder.mul(builder.zext(args[0], wide), builder.zext(args[1], wide))
        return builder.trunc(builder.lshr(product, ir.Constant(wide, 64)), ir.IntType(64))

    return types.uint64(types.uint64, types.uint64), codegen


def _either(name):
    """The intrinsic llvm.minnum or llvm.maxnum: one instruction if the second number is a constant.

    Written with comparisons, LLVM would merge the two sides of an interval into four instructions.
    """

    @intrinsic
    def either(typingctx, x, limit):
        def codegen(context, builder, signature, args):
            double = ir.DoubleType()
            kind = ir.FunctionType(double, [double, double])
            return builder.call(builder.module.declare_intrinsic(name, [double], kind), args)

        return types.float64(types.float64, types.float64), codegen

    return either


lesser_of, greater_of = _either("llvm.minnum"), _either("llvm.maxnum")


@_helper
def exp_fast(x):
    """Exponential, relative error below 1e-15; saturates outside [-700, 700]; NaN gives NaN."""
    clipped = x if x < 700.0 else 700.0
    clipped = clipped if clipped > -700.0 else -700.0
    shifted = clipped * _LOG2_E + _ROUND
    q = shifted - _ROUND
    r = (clipped - q * _LN2_HIGH) - q * _LN2_LOW
    tail = 2.7620075879983367e-07 + r * 2.5100375832561234e-08
    tail = 2.4801521322368692e-05 + r * (2.7557268480310024e-06 + r * tail)
    tail = 0.0013888888917196719 + r * (0.00019841269863040545 + r * tail)
    tail = 0.041666666666624164 + r * (0.008333333333330065 + r * tail)
    tail = 0.5000000000000001 + r * (0.16666666666666669 + r * tail)
    power = float_to_bits(1.0 + (r + r * r * tail)) + (float_to_bits(shifted) << uint64(52))
    return bits_to_float(power) if x == x else x  # noqa: PLR0124 - only NaN differs from itself


@_helper
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
    above = bits_to_float(float_to_bits(even + odd) + (float_to_bits(shifted) << uint64(52)))
    return below / (above - below)


@_helper
def _log_of_parts(exponent, f):
    """exponent * ln 2 + ln(1 + f) for |f| < 0.42, from ln(1 + f) = 2 artanh(f / (2 + f))."""
    s = f / (2.0 + f)
    z = s * s
    tail = 0.18182889158299903 + z * (0.15331720502376558 + z * 0.1461646325895801)
    tail = 0.2857142862597826 + z * (0.22222211134341624 + z * tail)
    tail = z * (0.666666666666667 + z * (0.399999999998995 + z * tail))
    half_square = 0.5 * f * f
    small = s * (half_square + tail) + exponent * _LN2_LOW
    return exponent * _LN2_HIGH - ((half_square - small) - f)


@_helper
def _split(x):
    """Write a positive normal x as 2^exponent * m, with m in [sqrt(1/2), sqrt(2))."""
    bits = float_to_bits(x) + uint64(_ONE - _SQRT_HALF)
    exponent = bits_to_float((bits >> uint64(52)) | uint64(_TWO_52_BITS)) - (_TWO_52 + 1023.0)
    return exponent, bits_to_float((bits & uint64(_MANTISSA)) + uint64(_SQRT_HALF))


@_helper
def log_fast(x):
    """Natural logarithm of a positive, normal, finite double, within about 1 ulp; garbage elsewhere."""
    exponent, m = _split(x)
    return _log_of_parts(exponent, m - 1.0)


@_helper
def exponential_from_bits(word):
    """-ln((word + 1/2) / 2^64): a standard exponential draw, from 2^-65 up to 45.05.

    Close to 1 the uniform is replaced by its distance from 1, which a double holds exactly where the
    uniform itself would have been rounded: small draws are as accurate as large ones.
    """
    uniform = float(word) + 0.5
    distance = (float(~word) + 0.5) * 5.421010862427522e-20
    exponent, m = _split(uniform)
    return -_log_of_parts(exponent - 64.0, -distance if distance < 0.25 else m - 1.0)


@_helper
def uniform_from_bits(word):
    """(k + 1/2) / 2^52 for the top 52 bits k of the word: never 0, never 1, symmetric about 1/2."""
    return bits_to_float((word >> uint64(12)) | uint64(_ONE)) - 0.9999999999999999


@_helper
def cos_sin_of_turn(word):
    """Cosine and sine of the angle whose fraction of a whole turn is given by the word.

    The top two bits choose the quarter turn, the next 52 the place inside it, so that the argument
    reduction is exact; neither result is ever 0.
    """
    place = bits_to_float(((word << uint64(2)) >> uint64(12)) | uint64(_ONE)) - 1.5
    x = (place + 1.1102230246251565e-16) * 1.5707963267948966
    z = x * x
    tail = 2.7557316102551507e-06 + z * (-2.5051131844808866e-08 + z * 1.5918129280835e-10)
    tail = 0.008333333333330948 + z * (-0.00019841269836758574 + z * tail)
    sine = x + x * (z * (-0.16666666666666666 + z * tail))
    tail = -2.755731727172921e-07 + z * (2.087614626828136e-09 + z * -1.1382632416743667e-11)
    tail = -0.0013888888888887398 + z * (2.4801587298765686e-05 + z * tail)
    cosine = 1.0 + z * (-0.5 + z * (0.041666666666666664 + z * tail))
    swap = (word & uint64(0x4000000000000000)) != uint64(0)
    sign = word & uint64(0x8000000000000000)
    first, second = (-sine, cosine) if swap else (cosine, sine)
    return bits_to_float(float_to_bits(first) ^ sign), bits_to_float(float_to_bits(second) ^ sign)


@_helper
def normal_pair_from_bits(radius_word, angle_word):
    """Two independent standard normal draws by the Box-Muller transform, up to 9.49 in size."""
    radius = math.sqrt(2.0 * exponential_from_bits(radius_word))
    cosine, sine = cos_sin_of_turn(angle_word)
    return radius * cosine, radius * sine
