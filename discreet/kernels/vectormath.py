"""The functions of `elementary` for one number, in the form that LLVM inlines and vectorises inside another loop.

The functions of the C library are opaque calls: a loop that contains one runs an element at a time. These are
straight-line arithmetic on one number, so that a plain loop around them becomes SIMD code. LLVM inlines them
(`forceinline`), so that every instruction keeps its own flags, which are none, whatever the flags of the loop: to
reorder their sums would cancel the rounding constants.

Kernels import the functions from here. Numba's disk cache of a caller does not notice a change in this file or in
`elementary`; after an edit, delete the `__pycache__` folders.
"""

# ruff: noqa: PLW0108 - Numba takes functions of Python as meanings, no intrinsics

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.extending import intrinsic, overload, register_jitable

from discreet.kernels.elementary import (
    as_float,
    bits_to_float,
    cos_sin_of_turn,
    either,
    exp_fast,
    exponential_from_bits,
    float_to_bits,
    greater_of,
    lesser_of,
    log_fast,
    log_of_parts,
    minus_sigmoid,
    normal_pair_from_bits,
    split,
    uniform_from_bits,
)

_OPTIONS = {"forceinline": True, "error_model": "numpy", "fastmath": False}


def _means(function, meaning):
    """Tell Numba what a function of `elementary` means for one number, once it is inlined."""
    overload(function, jit_options=_OPTIONS, strict=False)(lambda *arguments: meaning)


def _cast(result, argument):
    """Read the bits of a number as a number of another type."""

    @intrinsic
    def cast(typingctx, number):
        def codegen(context, builder, signature, args):
            return builder.bitcast(args[0], context.get_value_type(result))

        return result(argument), codegen

    return cast


def _of_two(name):
    """The intrinsic llvm.minnum or llvm.maxnum: one instruction if the second number is a constant.

    Written with comparisons, LLVM would merge the two sides of an interval into four instructions.
    """

    @intrinsic
    def of_two(typingctx, x, limit):
        def codegen(context, builder, signature, args):
            double = ir.DoubleType()
            kind = ir.FunctionType(double, [double, double])
            return builder.call(builder.module.declare_intrinsic(name, [double], kind), args)

        return types.float64(types.float64, types.float64), codegen

    return of_two


@intrinsic
def multiply_high(typingctx, first, second):
    """High 64 bits of the 128-bit product of two unsigned 64-bit integers."""

    def codegen(context, builder, signature, args):
        wide = ir.IntType(128)
        product = builder.mul(builder.zext(args[0], wide), builder.zext(args[1], wide))
        return builder.trunc(builder.lshr(product, ir.Constant(wide, 64)), ir.IntType(64))

    return types.uint64(types.uint64, types.uint64), codegen


_float_of, _bits_of = _cast(types.float64, types.uint64), _cast(types.uint64, types.float64)
_lesser, _greater = _of_two("llvm.minnum"), _of_two("llvm.maxnum")


_means(bits_to_float, lambda bits: _float_of(bits))
_means(float_to_bits, lambda number: _bits_of(number))
_means(as_float, lambda word: float(word))
_means(either, lambda condition, first, second: first if condition else second)
_means(lesser_of, lambda x, limit: _lesser(x, limit))
_means(greater_of, lambda x, limit: _greater(x, limit))
for _function in (
    exp_fast, minus_sigmoid, log_of_parts, split, log_fast, exponential_from_bits, uniform_from_bits, cos_sin_of_turn,
    normal_pair_from_bits,
):  # fmt: skip
    register_jitable(**_OPTIONS)(_function)
