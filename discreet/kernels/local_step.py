"""The proximal step of a mean of losses of one margin: Newton's steps, kept from going too far.

Minimised is sum_i share_i loss_i(A_i . a) + |a - centre|^2 / (2 gamma), where the slope of row i is clipped to
[-limit_i, limit_i]: its loss goes on as a straight line beyond. No function values are needed: the
derivative of a convex function rises along a line, and says on which side of the minimum a point lies.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from discreet.kernels.slopes import curvature_of, slope_of

HALVINGS = 60


@njit(cache=True, error_model="numpy", inline="always")
def clipped(slope, limit):
    return min(max(slope, -limit), limit)


@njit(cache=True, error_model="numpy")
def residual_at(A, y, share, limit, code, parameter, gamma, centre, a, margins, residual):
    """Write margins and residual at a, and return the length of the residual."""
    margins[:] = np.dot(A, a)
    slopes = np.empty_like(margins)
    for i in range(margins.size):
        slopes[i] = share[i] * clipped(slope_of(code, parameter, margins[i], y[i]), limit[i])
    residual[:] = np.dot(slopes, A)
    total = 0.0
    for j in range(a.size):
        residual[j] += (a[j] - centre[j]) / gamma
        total += residual[j] * residual[j]
    return np.sqrt(total)


@njit(cache=True, error_model="numpy")
def derivative_at(y, share, limit, code, parameter, gamma, start, along, pull, square, t):
    """The derivative at t of the objective on a line; `start` and `along` are margins."""
    total = pull + t * square / gamma
    for i in range(start.size):
        slope = clipped(slope_of(code, parameter, start[i] + t * along[i], y[i]), limit[i])
        total += share[i] * slope * along[i]
    return total


@njit(cache=True, error_model="numpy")
def newton_step(A, y, share, limit, code, parameter, gamma, margins, residual):
    """The step to the minimum of the quadratic model."""
    rows, columns = A.shape
    scaled = np.empty_like(A)
    for i in range(rows):
        slope = slope_of(code, parameter, margins[i], y[i])
        bent = abs(slope) <= limit[i]
        root = np.sqrt(share[i] * curvature_of(code, parameter, margins[i], y[i], slope)) if bent else 0.0
        for j in range(columns):
            scaled[i, j] = root * A[i, j]
    hessian = np.dot(scaled.T, scaled)
    for j in range(columns):
        hessian[j, j] += 1.0 / gamma
    return np.linalg.solve(hessian, -residual)


@njit(cache=True, error_model="numpy")
def proximal_newton(A, y, share, limit, code, parameter, gamma, centre, start, tolerance, steps):
    """At most so many steps from `start`; the point reached, and whether its residual is within the tolerance."""
    a, margins, residual = start.copy(), np.empty(A.shape[0]), np.empty(A.shape[1])
    trial_margins, trial_residual = np.empty_like(margins), np.empty_like(residual)
    size = residual_at(A, y, share, limit, code, parameter, gamma, centre, a, margins, residual)
    for _ in range(steps):
        if not size > tolerance:
            break
        move = newton_step(A, y, share, limit, code, parameter, gamma, margins, residual)
        trial = a + move
        after = residual_at(A, y, share, limit, code, parameter, gamma, centre, trial, trial_margins, trial_residual)
        if not after <= 0.5 * size:  # a shorter step, down to the minimum along the line and not beyond it
            along = np.dot(A, move)
            pull, square, first = np.dot(a - centre, move) / gamma, np.dot(move, move), np.dot(residual, move)
            low, high, length = 0.0, 1.0, 0.0
            if derivative_at(y, share, limit, code, parameter, gamma, margins, along, pull, square, 1.0) <= 0.0:
                length = 1.0
            for _ in range(HALVINGS):
                if length > 0.0:
                    break
                middle = 0.5 * (low + high)
                rise = derivative_at(y, share, limit, code, parameter, gamma, margins, along, pull, square, middle)
                if 0.5 * first <= rise <= 0.0:
                    length = middle
                elif rise < 0.0:
                    low = middle
                else:
                    high = middle
            trial = a + (length if length > 0.0 else low) * move
            after = residual_at(
                A, y, share, limit, code, parameter, gamma, centre, trial, trial_margins, trial_residual
            )
        a, size = trial, after
        margins, trial_margins = trial_margins, margins
        residual, trial_residual = trial_residual, residual
    return a, size <= tolerance
