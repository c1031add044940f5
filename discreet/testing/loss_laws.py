"""Laws of a loss as a function: its derivatives, its convexity and its conjugate belong together."""

from __future__ import annotations

import copy

import numpy as np

from discreet._common.types import FloatArray
from discreet.testing.laws import broken, skipped
from discreet.testing.lines import FAR, Line, LossCase

EPS = float(np.finfo(float).eps)
SMALLEST_NORMAL = float(np.finfo(float).tiny)  # smaller numbers lose digits
STEP = 1e-5  # of differences of values, relative to the margin
FINE_STEP = 1e-6  # of differences of slopes, whose rounding is smaller
DUALS = 25  # slopes on each line at which the conjugate is looked at
CONJUGATE_TOLERANCE = 1e-9


def loss_is_a_value(case: LossCase) -> None:
    """A copy is equal to its original and has the same hash, as plans compare problems."""
    twin = copy.deepcopy(case.loss)
    if twin != case.loss or hash(twin) != hash(case.loss):
        broken("a copy is not equal to the original; make the class a frozen dataclass")


def shapes_follow_the_margins(case: LossCase) -> None:
    """Values and conjugates are one number a row; slopes and curvatures have the shape of the margins."""
    loss, (line, _) = case.loss, case.lines[0]
    t = np.linspace(-1.0, 1.0, 7)
    margins, y = line.margins(t), line.targets(t)
    slope = np.asarray(loss.slope(margins, y))
    found = {
        "value": np.shape(loss.value(margins, y)) == t.shape,
        "slope": slope.shape == margins.shape and slope.dtype == np.float64,
        "curvature": np.shape(loss.curvature(margins, y)) == margins.shape,
        "conjugate": np.shape(loss.conjugate(slope, y)) == t.shape,
    }
    wrong = [name for name, right in found.items() if not right]
    if wrong:
        broken(f"{wrong[0]}() has the wrong shape or type for margins of shape {margins.shape}")


def slope_is_the_derivative_of_value(case: LossCase) -> None:
    """A convex function rises from a to b by between (b - a) slope(a) and (b - a) slope(b); kinks need no exception."""
    for line, t in case.lines:
        half = STEP * np.maximum(1.0, np.abs(t))
        a, b = t - half, t + half
        rise, left, right = line.value(b) - line.value(a), line.slope(a), line.slope(b)
        width = _along(line, b) - _along(line, a)
        size = np.abs(line.value(a)) + np.abs(line.value(b)) + (np.abs(left) + np.abs(right)) * _size(line, t)
        slack = 16.0 * EPS * size + SMALLEST_NORMAL * width
        with np.errstate(invalid="ignore"):
            wrong = ~((width * left - slack <= rise) & (rise <= width * right + slack))
        for i in np.flatnonzero(wrong):
            secant = rise[i] / width[i]
            broken(f"{line.at(t[i])} value() rises by {secant:.12g} per unit, and slope() is {line.slope(t)[i]:.12g}")


def curvature_is_the_derivative_of_slope(case: LossCase) -> None:
    """The slope rises by the curvature; where it jumps, by something between the values on both sides."""
    for line, t in case.lines:
        if not line.follows_one_margin:
            continue
        half = FINE_STEP * np.maximum(1.0, np.abs(t))
        around = np.stack([line.curvature(s) for s in (t - half, t, t + half)])
        slopes = line.slope(t - half), line.slope(t + half)
        width = _along(line, t + half) - _along(line, t - half)
        secant = (slopes[1] - slopes[0]) / width
        low, high = around.min(axis=0), around.max(axis=0)
        size = np.abs(slopes[0]) + np.abs(slopes[1]) + high * _size(line, t)
        slack = 1e-6 * high + 16.0 * EPS * (1.0 + size / width)
        wrong = ~((low - slack <= secant) & (secant <= high + slack))
        for i in np.flatnonzero(wrong):
            broken(
                f"{line.at(t[i])} slope() rises by {secant[i]:.12g} per unit, and curvature() is {around[1, i]:.12g}"
            )


def slope_never_decreases(case: LossCase) -> None:
    """The loss is convex: along every line the slope grows or stays."""
    for line, t in case.lines:
        slope = line.slope(t)
        slack = 16.0 * EPS * (1.0 + np.abs(slope[1:]) + np.abs(slope[:-1]))
        wrong = ~(np.diff(slope) >= -slack)
        for i in np.flatnonzero(wrong):
            broken(f"{line.at(t[i])} the slope is {slope[i]:.12g}, and a little further only {slope[i + 1]:.12g}")


def regression_losses_depend_on_the_residual(case: LossCase) -> None:
    """Margin and target moved together change nothing: solvers centre the targets of regressions."""
    loss = case.loss
    if loss.classification or loss.log_link:
        return
    margins, y = np.linspace(-3.0, 3.0, 25), np.full(25, 0.5)
    for shift in (-7.0, 0.25, 40.0):
        moved, kept = loss.slope(margins + shift, y + shift), loss.slope(margins, y)
        if not np.allclose(moved, kept, rtol=1e-9, atol=1e-9):
            i = int(np.argmax(np.abs(moved - kept)))
            broken(
                f"the slope at margin {margins[i]:g} and target {y[i]:g} changes when {shift:g} is added to both; a "
                "loss for real targets must depend on margin - target alone"
            )


def log_links_follow_the_unit_of_the_target(case: LossCase) -> None:
    """A target and a mean that are both c times as large multiply the slope by a power of c: the unit may be chosen."""
    loss = case.loss
    if not loss.log_link:
        skipped("the loss has no log link")
    margins, y = np.meshgrid(np.linspace(-6.0, 6.0, 25), [0.01, 0.5, 3.0])
    exact = loss.curvature(margins, y) < loss.smoothness * (1.0 - 1e-9)  # beyond it the loss is a parabola
    for factor in (0.25, 3.0):
        moved, target = margins + np.log(factor), factor * y
        both = exact & (loss.curvature(moved, target) < loss.smoothness * (1.0 - 1e-9))
        wanted = factor**loss.target_power * loss.slope(margins, y)[both]
        if not np.allclose(loss.slope(moved, target)[both], wanted, rtol=1e-9, atol=1e-9):
            broken(
                f"target and mean {factor:g} times as large do not multiply the slope by {factor:g} to the power of "
                f"target_power, {loss.target_power}; solvers divide the target of a log link by its mean"
            )


def conjugate_keeps_fenchel_young(case: LossCase) -> None:
    """value(m) + conjugate(s) >= <m, s> for every margin and dual, with equality where s is the slope at m."""
    for line, t in case.lines:
        near = t[np.abs(t) <= 1e3]
        chosen = near[:: max(1, near.size // DUALS)]
        slopes = line.gradient(chosen)
        at_slope = _conjugate(line, slopes)
        inner = (line.margins(chosen).reshape(slopes.shape) * slopes).sum(axis=1)
        value = line.value(chosen)
        gap = np.abs(value + at_slope - inner)
        wrong = ~(gap <= CONJUGATE_TOLERANCE * (1.0 + np.abs(value) + np.abs(inner)))
        for i in np.flatnonzero(wrong):
            broken(
                f"{line.at(chosen[i])} conjugate(slope) is {at_slope[i]:.12g}, and must be {inner[i] - value[i]:.12g}, "
                "the margin times the slope minus the value"
            )
        for factor in (1.0, 1.5, -1.0):
            _check_inequality(line, np.concatenate([t, -FAR[:2], FAR[:2]]), factor * slopes)


def _check_inequality(line: Line, t: FloatArray, duals: FloatArray) -> None:
    """No margin on the line gives more than the conjugate, inside its domain and outside."""
    margins = line.margins(t).reshape(t.size, -1)
    values, products, conjugates = line.value(t), duals @ margins.T, _conjugate(line, duals)
    # Slopes lie in the domain up to rounding only, so a conjugate may forgive 1e-12 per margin.
    forgiven = 1e-12 * line.loss.outputs * np.abs(margins).sum(axis=1)
    slack = CONJUGATE_TOLERANCE * (1.0 + np.abs(values) + np.abs(products)) + forgiven
    wrong = ~(conjugates[:, None] >= products - values - slack)
    if wrong.any():
        i, j = np.unravel_index(int(np.argmax(wrong)), wrong.shape)
        broken(
            f"{line.at(t[j])} conjugate({duals[i]}) is {conjugates[i]:.12g}, less than "
            f"{products[i, j] - values[j]:.12g}, the margin times the dual minus the value"
        )


def _conjugate(line: Line, duals: FloatArray) -> FloatArray:
    y = np.full(len(duals), line.target)
    return np.asarray(line.loss.conjugate(duals[:, 0] if line.loss.outputs == 1 else duals, y))


def _along(line: Line, t: FloatArray) -> FloatArray:
    """Where the rounded margins lie on the line: their differences are the true widths of intervals."""
    return (line.margins(t).reshape(t.size, -1) - line.start) @ line.direction


def _size(line: Line, t: FloatArray) -> FloatArray:
    """How large margins and target are: what is rounded is in proportion to it."""
    return np.abs(line.margins(t)).reshape(t.size, -1).max(axis=1) + abs(line.target) + 1.0
