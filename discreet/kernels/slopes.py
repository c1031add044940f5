"""Derivatives of the losses with respect to the margin, in the form LLVM vectorises.

The codes and parameters are those of `discreet.problem.losses`; a test holds the two together.
"""

from __future__ import annotations

from numba import njit

from discreet.kernels.vectormath import exp_fast, minus_sigmoid

# Sums may be reordered so that they vectorise; NaN and infinity keep their meaning (no nnan, no ninf).
FAST = {"reassoc", "contract", "arcp", "nsz"}

SQUARED, LOGISTIC, HUBER, SMOOTHED_HINGE, MULTINOMIAL = range(5)


@njit(cache=True, fastmath=FAST, error_model="numpy", inline="always")
def slope_of(code, parameter, margin, y):
    """The slope of one row."""
    if code == LOGISTIC:
        return y * minus_sigmoid(y * margin)
    if code == SMOOTHED_HINGE:
        return -y * min(max((1.0 + parameter - y * margin) / (2.0 * parameter), 0.0), 1.0)
    residual = margin - y
    if code == HUBER:
        return min(max(residual, -parameter), parameter)
    return residual


@njit(cache=True, fastmath=FAST, error_model="numpy", nogil=True)
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
    else:
        for i in range(n):
            slopes[i] = margins[i] - y[i]


@njit(cache=True, fastmath=FAST, error_model="numpy", nogil=True)
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
    else:
        curvatures[:] = 1.0


@njit(cache=True, fastmath=FAST, error_model="numpy")
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
