"""Derivatives of the losses with respect to the margin, in the form LLVM vectorises.

Losses with a number of their own are written out here; others come as `CompiledForms`, for which Numba compiles the
same loops around their functions. A number that no branch knows gives NaN.

So are slopes at the proximal points of single rows. The proximal point of gam * weight_i * loss(x_i . w, y_i) at v is
v - gam * weight_i * s_i x_i, where the slope s_i solves one equation in one unknown t, the margin at that point,

    s_i = loss'(t),   t = margin_i - stiffness_i * loss'(t),   stiffness_i = gam * weight_i * |x_i|^2 >= 0,

whose right-hand side falls and left-hand side grows, so that there is exactly one solution. It is in closed form for
the squared, Huber and smoothed hinge losses, and found by Newton steps for the logistic loss and, unless they bring a
form of their own, for others.
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


SHORT_STEP = 1e-8  # a Newton step so short leaves an error below its square, which is that of rounding
MOST_STEPS = 100  # in the search for one row; about five are needed


@njit(cache=True, error_model="numpy")
def fill_proximal_slopes(code, parameter, margins, y, stiffness, slopes):
    """The slopes of all rows; numbers that are not finite give slopes that are not finite."""
    n = margins.size
    if code == LOGISTIC:
        fill_logistic(margins, y, stiffness, slopes)
    elif code == SMOOTHED_HINGE:
        for i in range(n):
            steepness = (1.0 + parameter - y[i] * margins[i]) / (2.0 * parameter + stiffness[i])
            slopes[i] = -y[i] * min(max(steepness, 0.0), 1.0)
    elif code == HUBER:
        for i in range(n):
            slopes[i] = min(max((margins[i] - y[i]) / (1.0 + stiffness[i]), -parameter), parameter)
    elif code == SQUARED:
        for i in range(n):
            slopes[i] = (margins[i] - y[i]) / (1.0 + stiffness[i])
    else:
        for i in range(n):
            slopes[i] = own_proximal_slope(code, parameter, margins[i], y[i], stiffness[i])


def own_proximal_slope(code, parameter, margin, y, stiffness):
    """The slope at the proximal point by the function of the loss; without one from its slope and curvature."""


@overload(own_proximal_slope)
def _own_proximal_slope(code, parameter, margin, y, stiffness):
    proximal_slope = own_form(code, "proximal_slope")
    if proximal_slope is None:
        return slope_at_point
    return lambda code, parameter, margin, y, stiffness: proximal_slope(parameter, margin, y, stiffness)


def slope_at_point(code, parameter, margin, y, stiffness):
    """The slope at the solution t of t = margin - stiffness * slope(t): Newton steps between two bounds.

    The solution lies between the margin and where the slope at the margin leads: a slope never falls. A step that
    leaves the bounds, and every eighth, goes to their middle. NaN for a loss without slope or curvature.
    """
    t, end = margin, margin - stiffness * own_slope(code, parameter, margin, y)
    low, high = min(t, end), max(t, end)
    for turn in range(MOST_STEPS):
        excess = t - margin + stiffness * own_slope(code, parameter, t, y)
        if excess > 0.0:
            high = t
        else:
            low = t
        before, t = t, t - excess / (1.0 + stiffness * own_curvature(code, parameter, t, y))
        if turn % 8 == 7 or not low <= t <= high:
            t = 0.5 * (low + high)
        if not abs(t - before) > 2.0**-52 * abs(t):  # also for NaN
            break
    return own_slope(code, parameter, t, y)


@njit(cache=True, error_model="numpy")
def fill_logistic(margins, y, stiffness, slopes):
    """The logistic slopes: four Newton steps for all rows, which vectorise, then more for the rows that need them.

    With u = y * margin the point t = y * (margin at the proximal point) solves t = u + a / (1 + exp(t)). Where it is
    negative the mirror image -t solves the same equation for -(u + a), so only t >= 0 has to be found.
    """
    n = margins.size
    last = np.empty(n)
    for i in range(n):
        u, a = y[i] * margins[i], stiffness[i]
        c = max(u, -(u + a))
        t = first_point(c, a)
        t += newton_step(c, a, t)  # written out: LLVM does not vectorise a loop around a loop
        t += newton_step(c, a, t)
        t += newton_step(c, a, t)
        last[i] = newton_step(c, a, t)
        t += last[i]
        slopes[i] = y[i] * minus_sigmoid(t if u + 0.5 * a >= 0.0 else -t)
    for i in range(n):
        if not abs(last[i]) <= SHORT_STEP:
            u, a = y[i] * margins[i], stiffness[i]
            t = logistic_point(max(u, -(u + a)), a)
            slopes[i] = y[i] * minus_sigmoid(t if u + 0.5 * a >= 0.0 else -t)


@njit(cache=True, error_model="numpy", inline="always")
def newton_step(c, a, t):
    """One Newton step for t - c - a / (1 + exp(t)) = 0."""
    s = -minus_sigmoid(t)
    return (c - t + a * s) / (1.0 + a * s * (1.0 - s))


@njit(cache=True, error_model="numpy", inline="always")
def first_point(c, a):
    """A point below the solution t >= 0 from which Newton steps rise to it.

    On t >= 0 the function t - c - a / (1 + exp(t)) grows and is concave, so that steps from below never overshoot.
    One Newton step from 0 is below, and so is c.
    """
    return max(c, max(c + 0.5 * a, 0.0) / (1.0 + 0.25 * a), 0.0)


@njit(cache=True, error_model="numpy")
def logistic_point(c, a):
    """The solution t >= 0 of t = c + a / (1 + exp(t)), for c >= -a / 2: Newton steps between two bounds.

    The equation is t = log((a + c - t) / (t - c)), whose right-hand side falls, so that an upper bound gives a lower
    one. A step that leaves the bounds, and every eighth, goes to their middle: the search ends whatever rounding does.
    """
    high = c + np.log1p(a * np.exp(-c)) if c >= 0.0 else min(np.log1p(a), np.log(max((a + c) / -c, 1.0)))
    low = first_point(c, a)
    if a + c - high > 0.0 and high > c:
        low = max(low, np.log((a + c - high) / (high - c)))
    high = max(high, low) * (1.0 + SHORT_STEP) + SHORT_STEP  # both bounds are rounded
    low, t = max(0.0, low * (1.0 - SHORT_STEP) - SHORT_STEP), low
    for turn in range(MOST_STEPS):
        step = newton_step(c, a, t)
        if abs(step) <= SHORT_STEP:
            return t + step
        if step > 0.0:
            low = t
        else:
            high = t
        t = t + step
        if turn % 8 == 7 or not low <= t <= high:
            t = 0.5 * (low + high)
    return t
