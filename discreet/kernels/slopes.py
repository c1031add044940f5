"""Derivatives of the losses with respect to the margin, in the form LLVM vectorises.

Losses with a number of their own are written out here; others come as `CompiledForms`, for which Numba compiles the
same loops around their functions. A number that no branch knows gives NaN.
"""

from __future__ import annotations

import operator
from functools import cache
from typing import Any

import numpy as np
from numba import njit, types
from numba.extending import NativeValue, models, overload, register_model, typeof_impl, unbox

from discreet.kernels.forms import HUBER, LOGISTIC, MULTINOMIAL, SMOOTHED_HINGE, SQUARED, CompiledForms
from discreet.kernels.vectormath import exp_fast, minus_sigmoid

# The one licence to reorder that any kernel has: for sums of integers, which are exact in any order and then vectorise.
# Whatever else is computed in such a loop is a function of its own, with `forceinline` and with `fastmath=False`, for
# a function without it takes the licence of the first loop that it is compiled for, and keeps it for all others.
ANY_ORDER = {"reassoc"}

_OWN: dict[str, CompiledForms] = {}  # of types that Numba has met, by key


class _FormsType(types.Type):
    """The type of a loss with functions of its own: a loop is compiled once for each."""

    def __init__(self, own_key: str) -> None:
        self.own_key = own_key
        super().__init__(name=f"CompiledForms({own_key})")


register_model(_FormsType)(models.OpaqueModel)


@typeof_impl.register(CompiledForms)
def _typeof(forms: CompiledForms, _: Any) -> _FormsType:
    _OWN[forms.key] = forms
    return _FormsType(forms.key)


@unbox(_FormsType)
def _unbox(_type: Any, _forms: Any, unboxing: Any) -> NativeValue:
    return NativeValue(unboxing.context.get_dummy_value())


@cache
def _jitted(function: Any) -> Any:
    return njit(error_model="numpy", fastmath=False)(function)


def own_form(code: Any, form: str) -> Any:
    """The compiled function of a loss that has it; None for numbers, and for losses without it."""
    function = getattr(_OWN[code.own_key], form) if isinstance(code, _FormsType) else None
    return None if function is None else _jitted(function)


@overload(operator.eq)
def _equal(code, number):
    return (lambda code, number: False) if isinstance(code, _FormsType) and isinstance(number, types.Integer) else None


def _own(form: str) -> Any:
    """The form of one row, by the function of its loss; NaN without one."""

    def own(code, parameter, margin, y):
        """For compiled code only."""

    @overload(own)
    def _compiled(code, parameter, margin, y):
        function = own_form(code, form)
        if function is None:
            return lambda code, parameter, margin, y: np.nan
        return lambda code, parameter, margin, y: function(parameter, margin, y)

    return own


own_slope, own_curvature = _own("slope"), _own("curvature")


@njit(cache=True, error_model="numpy", inline="always")
def slope_of(code, parameter, margin, y):
    """The slope of one row."""
    if code == LOGISTIC:
        return y * minus_sigmoid(y * margin)
    if code == SMOOTHED_HINGE:
        return -y * min(max((1.0 + parameter - y * margin) / (2.0 * parameter), 0.0), 1.0)
    residual = margin - y
    if code == HUBER:
        return min(max(residual, -parameter), parameter)
    if code == SQUARED:
        return residual
    return own_slope(code, parameter, margin, y)


@njit(cache=True, error_model="numpy", inline="always")
def curvature_of(code, parameter, margin, y, slope):
    """The second derivative of one row's loss, whose slope is known; the larger one at a kink."""
    if code == LOGISTIC:
        size = abs(slope)
        return size * (1.0 - size)
    if code == SMOOTHED_HINGE:
        return 0.5 / parameter if abs(1.0 - y * margin) <= parameter else 0.0
    if code == HUBER:
        return 1.0 if abs(margin - y) <= parameter else 0.0
    if code == SQUARED:
        return 1.0
    return own_curvature(code, parameter, margin, y)


@njit(cache=True, error_model="numpy", nogil=True)
def fill_slopes(code, parameter, margins, y, slopes):
    """The slopes of all rows; the branch is outside the loops so that each of them vectorises."""
    n = margins.size
    if code == LOGISTIC:
        for i in range(n):
            slopes[i] = y[i] * minus_sigmoid(y[i] * margins[i])
    elif code == SMOOTHED_HINGE:
        half = 0.5 / parameter
        for i in range(n):
            slopes[i] = -y[i] * min(max((1.0 + parameter - y[i] * margins[i]) * half, 0.0), 1.0)
    elif code == HUBER:
        for i in range(n):
            slopes[i] = min(max(margins[i] - y[i], -parameter), parameter)
    elif code == SQUARED:
        for i in range(n):
            slopes[i] = margins[i] - y[i]
    else:
        for i in range(n):
            slopes[i] = own_slope(code, parameter, margins[i], y[i])


@njit(cache=True, error_model="numpy", nogil=True)
def fill_curvatures(code, parameter, margins, y, curvatures):
    """The second derivatives of all rows, of a loss with one output; at a kink the larger one."""
    n = margins.size
    if code == LOGISTIC:
        for i in range(n):
            less = abs(minus_sigmoid(abs(y[i] * margins[i])))  # the probability of the less likely label
            curvatures[i] = less * (1.0 - less)
    elif code == SMOOTHED_HINGE:
        for i in range(n):
            curvatures[i] = 0.5 / parameter if abs(1.0 - y[i] * margins[i]) <= parameter else 0.0
    elif code == HUBER:
        for i in range(n):
            curvatures[i] = 1.0 if abs(margins[i] - y[i]) <= parameter else 0.0
    elif code == SQUARED:
        curvatures[:] = 1.0
    else:
        for i in range(n):
            curvatures[i] = own_curvature(code, parameter, margins[i], y[i])


@njit(cache=True, error_model="numpy")
def fill_vector_slope(code, parameter, margins, y, slopes):
    """The slopes of one row with several outputs; y is the index of its class."""
    outputs = margins.size
    if code == MULTINOMIAL:
        top = margins.max()
        total = 0.0
        for k in range(outputs):
            slopes[k] = exp_fast(margins[k] - top)
            total += slopes[k]
        for k in range(outputs):
            slopes[k] = slopes[k] / total - (1.0 if k == int(y) else 0.0)
    else:
        for k in range(outputs):
            slopes[k] = slope_of(code, parameter, margins[k], 1.0 if k == int(y) else -1.0)


@njit(cache=True, error_model="numpy", inline="always")
def prox_entry(value, step, l1, l2, low, high):
    """Proximal map of step * (l1 |w| + l2 w^2 / 2) restricted to [low, high]."""
    threshold = step * l1
    if value > threshold:
        value -= threshold
    elif value < -threshold:
        value += threshold
    else:
        value = 0.0
    value /= 1.0 + step * l2
    return min(max(value, low), high)


@njit(cache=True, error_model="numpy", inline="always")
def clamp(value, limit):
    """value clipped to [-limit, limit]; a NaN becomes -limit, so it never exceeds its bound."""
    value = value if value > -limit else -limit
    return value if value < limit else limit
