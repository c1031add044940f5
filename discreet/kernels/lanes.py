"""Eight doubles side by side, as Numba compiles them: sums over the columns of a row in an order that is written down.

Left to LLVM, a sum vectorises only if it may be reordered, and then its order and its last digits depend on the
processor. Here lane k adds up the columns k, k + 8, k + 16, ..., then halves of the lanes are added to each other:
with AVX-512 the lanes are one register, elsewhere several, and every product and sum is rounded alike.

The rows of a table, of which loops ask for products with weights and add multiples, are (table,) or, compressed,
(indptr, columns, values); Numba compiles a loop for each of the two.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic, models, overload, register_model

from discreet.kernels.small_rows import LANES

_NUMBER = ir.IntType(32)


class _Lanes(types.Type):
    def __init__(self, count: int) -> None:
        self.vector = ir.VectorType(ir.DoubleType(), count)
        super().__init__(name=f"Lanes({count})")


@register_model(_Lanes)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, manager, kind):
        super().__init__(manager, kind, kind.vector)


_LANES, _FOUR = _Lanes(LANES), _Lanes(4)
_VECTOR = _LANES.vector
_ZEROS = ir.Constant(_VECTOR, [0.0] * LANES)


@intrinsic
def no_lanes(typingctx):
    """Zeros."""

    def codegen(context, builder, signature, args):
        return _ZEROS

    return _LANES(), codegen


@intrinsic
def lanes_of(typingctx, array, place):
    """Eight entries of an array, in double precision, from a place on: the caller sees to it that there are so many."""
    if not isinstance(array, types.Array) or array.ndim != 1 or not isinstance(array.dtype, types.Float):
        return None

    def codegen(context, builder, signature, args):
        values = context.make_array(array)(context, builder, args[0])
        first = context.cast(builder, args[1], place, types.intp)
        if array.layout in "CF":
            start = builder.gep(values.data, [first])
            kind = ir.VectorType(context.get_data_type(array.dtype), LANES)
            lanes = builder.load(builder.bitcast(start, kind.as_pointer()), align=array.dtype.bitwidth // 8)
        else:
            shape, stride = builder.extract_value(values.shape, 0), builder.extract_value(values.strides, 0)
            lanes = ir.Constant(ir.VectorType(context.get_data_type(array.dtype), LANES), ir.Undefined)
            for k in range(LANES):
                at = [builder.add(first, first.type(k))]
                entry = cgutils.get_item_pointer2(context, builder, values.data, [shape], [stride], "A", at)
                lanes = builder.insert_element(lanes, builder.load(entry), ir.IntType(32)(k))
        return lanes if array.dtype == types.float64 else builder.fpext(lanes, _VECTOR)

    return _LANES(array, place), codegen


@intrinsic
def four(typingctx, first, second, third, fourth):
    """Four numbers side by side: those of four rows."""

    def codegen(context, builder, signature, args):
        lanes = ir.Constant(_FOUR.vector, ir.Undefined)
        for k, number in enumerate(args):
            lanes = builder.insert_element(lanes, number, _NUMBER(k))
        return lanes

    return _FOUR(*[types.float64] * 4), codegen


@intrinsic
def numbers_of(typingctx, lanes):
    """The four numbers."""
    numbers = types.UniTuple(types.float64, 4)

    def codegen(context, builder, signature, args):
        return context.make_tuple(builder, numbers, [builder.extract_element(args[0], _NUMBER(k)) for k in range(4)])

    return numbers(lanes), codegen


@intrinsic
def add_products(typingctx, sums, first, second):
    """sums + first * second, rounded twice."""

    def codegen(context, builder, signature, args):
        return builder.fadd(args[0], builder.fmul(args[1], args[2]))

    return sums(sums, first, second), codegen


@intrinsic
def rounded_products(typingctx, first, second):
    """first * second, rounded to integers."""

    def codegen(context, builder, signature, args):
        kind = ir.FunctionType(first.vector, [first.vector])
        rint = cgutils.get_or_insert_function(builder.module, kind, f"llvm.rint.v{first.vector.count}f64")
        return builder.call(rint, [builder.fmul(*args)])

    return first(first, second), codegen


@intrinsic
def scaled_lanes(typingctx, value, low, high, shift, gain):
    """(clip(value, low, high) - shift) * gain."""

    def codegen(context, builder, signature, args):
        value, low, high, shift, gain = args
        value = builder.select(builder.fcmp_ordered(">", value, low), value, low)
        value = builder.select(builder.fcmp_ordered("<", value, high), value, high)
        return builder.fmul(builder.fsub(value, shift), gain)

    return value(value, low, high, shift, gain), codegen


@intrinsic
def sum_of_lanes(typingctx, lanes):
    """The sum: the second half of the lanes is added to the first, until one is left."""

    def codegen(context, builder, signature, args):
        values, size = args[0], lanes.vector.count
        while size > 1:
            size //= 2
            halves = [_places(range(size)), _places(range(size, 2 * size))]
            undefined = ir.Constant(values.type, ir.Undefined)
            values = builder.fadd(*(builder.shuffle_vector(values, undefined, half) for half in halves))
        return builder.extract_element(values, _NUMBER(0))

    return types.float64(lanes), codegen


def _places(places):
    return ir.Constant(ir.VectorType(_NUMBER, len(places)), list(places))


@njit(cache=True, error_model="numpy", forceinline=True)
def dot(x, w):
    """The product of two vectors: by lanes, then the entries that are left over, one after the other."""
    even, lanes = w.size // LANES * LANES, no_lanes()
    for j in range(0, even, LANES):
        lanes = add_products(lanes, lanes_of(x, j), lanes_of(w, j))
    total = sum_of_lanes(lanes)
    for j in range(even, w.size):
        total += x[j] * w[j]
    return total


@njit(cache=True, error_model="numpy", forceinline=True)
def sparse_dot(values, columns, first, end, w):
    """The product of the entries first..end of compressed rows with w: four sums side by side, then what is left."""
    a = b = c = d = 0.0
    even = first + (end - first) // 4 * 4
    for q in range(first, even, 4):
        a += values[q] * w[columns[q]]
        b += values[q + 1] * w[columns[q + 1]]
        c += values[q + 2] * w[columns[q + 2]]
        d += values[q + 3] * w[columns[q + 3]]
    total = (a + b) + (c + d)
    for q in range(even, end):
        total += values[q] * w[columns[q]]
    return total


_OPTIONS = {"error_model": "numpy", "forceinline": True}


def arrays_of(X: Any) -> tuple[Any, ...]:
    """The rows of a matrix as the loops take them."""
    return (X.indptr, X.indices, X.data) if sp.issparse(X) else (X,)


def margin_of(rows, i, w):
    """The product of row i with the weights."""


@overload(margin_of, jit_options=_OPTIONS)
def _margin_of(rows, i, w):
    if len(rows) == 1:
        return lambda rows, i, w: dot(rows[0][i], w)
    return lambda rows, i, w: sparse_dot(rows[2], rows[1], rows[0][i], rows[0][i + 1], w)


def add_rounded(rows, i, factor, sums):
    """Add row i times a factor, every entry rounded to an integer, to the sums."""


@overload(add_rounded, jit_options=_OPTIONS)
def _add_rounded(rows, i, factor, sums):
    def of_table(rows, i, factor, sums):
        row = rows[0][i]
        for j in range(sums.size):
            sums[j] += np.rint(factor * row[j])

    def of_compressed(rows, i, factor, sums):
        starts, columns, values = rows
        for q in range(starts[i], starts[i + 1]):
            sums[columns[q]] += np.rint(factor * values[q])

    return of_table if len(rows) == 1 else of_compressed
