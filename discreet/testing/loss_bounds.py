"""Laws of what a loss promises for every margin: bounds on slope and curvature, flags, behaviour at extremes."""

from __future__ import annotations

import warnings

import numpy as np

from discreet._common.types import FloatArray
from discreet.testing.laws import broken, skipped
from discreet.testing.lines import Line, LossCase
from discreet.testing.loss_laws import EPS

ROUNDING = 1e-14  # what a bound may be exceeded by, relative to it
ATTAINED = 0.99  # of a bound must be reached somewhere: a looser one would waste noise
LARGE = 1e3  # what a slope or curvature that is said to have no bound must exceed
EXTREMES = np.array([0.0, 5e-324, 1e-300, 1.0, 40.0, 800.0, 1e150, 1e300, 1e308, 1.7e308])


def slope_is_bounded_by_lipschitz(case: LossCase) -> None:
    """No slope is longer than `lipschitz`: the noise of several solvers is in proportion to it."""
    for line, t in case.far_lines:
        norms = _norms(line.gradient(t))
        i = int(np.argmax(norms))
        if not norms[i] <= case.loss.lipschitz * (1.0 + ROUNDING):
            broken(f"{line.at(t[i])} the slope has norm {norms[i]:.12g}, but lipschitz is {case.loss.lipschitz:.12g}")


def curvature_is_bounded_by_smoothness(case: LossCase) -> None:
    """Neither curvature() nor the rise of the slope between two margins exceeds `smoothness`."""
    bound = case.loss.smoothness
    for line, t in case.far_lines:
        entries = np.asarray(case.loss.curvature(line.margins(t), line.targets(t))).reshape(t.size, -1)
        wrong = ~((entries >= 0.0) & (entries <= bound * (1.0 + ROUNDING))).all(axis=1)
        for i in np.flatnonzero(wrong):
            broken(f"{line.at(t[i])} curvature() is {entries[i]}, but smoothness is {bound:.12g}")
    for line, t in case.lines:
        rise, slack = _rises(line, t)
        wrong = ~(rise <= bound * (1.0 + 1e-9) + slack)
        if wrong.any():
            k = int(np.argmax(np.where(wrong, rise, -np.inf)))
            broken(f"{line.at(t[k])} the slope rises by {rise[k]:.12g} per unit, but smoothness is {bound:.12g}")


def bounds_are_attained(case: LossCase) -> None:
    """Some margin comes within 1 % of each bound; where a bound is infinite, slopes or curvatures are large."""
    slope = max(float(_norms(line.gradient(t)).max()) for line, t in case.far_lines)
    curvature = 0.0
    for line, t in case.lines:
        rise, slack = _rises(line, t)
        curvature = max(curvature, float(np.where(slack <= 1e-3 * rise, rise, 0.0).max()))
    found = {"lipschitz": slope, "smoothness": curvature}
    for name, largest in found.items():
        bound = getattr(case.loss, name)
        if not largest >= (LARGE if np.isinf(bound) else ATTAINED * bound):
            broken(f"{name} is {bound:.12g}, but at no margin and no target was more than {largest:.12g} found")


def monotone_losses_have_slopes_of_one_sign(case: LossCase) -> None:
    """A loss that says `monotone` never has, for one target, slopes of both signs."""
    if not case.loss.monotone:
        skipped("the loss does not say that it is monotone")
    for line, t in case.far_lines:
        slopes = line.gradient(t)
        low, high = int(np.argmin(slopes.min(axis=1))), int(np.argmax(slopes.max(axis=1)))
        if slopes[low].min() < 0.0 < slopes[high].max():
            found = f"{line.at(t[high])} the slope is {slopes[high].max():.12g}"
            broken(f"{found}, and {line.at(t[low])} it is {slopes[low].min():.12g}")


def discontinuous_curvature_jumps(case: LossCase) -> None:
    """A loss that says `discontinuous_curvature` has a curvature that jumps by half of its bound or more."""
    if not case.loss.discontinuous_curvature:
        skipped("the loss does not say that its curvature is discontinuous")
    largest = max(_largest_jump(line, t) for line, t in case.lines if line.follows_one_margin)
    if not largest >= 0.5 * case.loss.smoothness:
        broken(f"its curvature changes by at most {largest:.12g} between margins that lie close together")


def extreme_numbers_give_no_nan(case: LossCase) -> None:
    """Margins and targets up to 1.7e308 give numbers or infinity, never NaN and never a warning."""
    loss = case.loss
    margins, y = _extreme_rows(case)
    for name in ("value", "slope", "curvature", "conjugate"):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found = np.asarray(getattr(loss, name)(margins, y)).reshape(len(y), -1)
        wrong = np.isnan(found).any(axis=1)
        for i in np.flatnonzero(wrong):
            broken(f"at margin {margins[i]} and target {y[i]:.12g} {name}() is NaN")


def _extreme_rows(case: LossCase) -> tuple[FloatArray, FloatArray]:
    """Margins and targets, every extreme number with every other where the loss has one output."""
    loss = case.loss
    numbers = np.concatenate([EXTREMES, -EXTREMES])
    if loss.outputs > 1:
        rng = np.random.default_rng(0)
        return rng.choice(numbers, (400, loss.outputs)), np.arange(400.0) % loss.outputs
    admitted = np.unique([line.target for line, _ in case.far_lines])
    targets = admitted if loss.classification or case.targets is not None else numbers
    margins, y = np.meshgrid(numbers, targets)
    return margins.ravel(), y.ravel()


def _norms(gradients: FloatArray) -> FloatArray:
    """Lengths of slopes; those too long for a number are infinite."""
    if gradients.shape[1] == 1:
        return np.abs(gradients[:, 0])
    with np.errstate(over="ignore"):
        return np.sqrt((gradients * gradients).sum(axis=1))


def _largest_jump(line: Line, t: FloatArray) -> float:
    """How much the curvature changes between two points that bisection has brought close together."""
    curvature = line.curvature(t)
    i = int(np.argmax(np.abs(np.diff(curvature))))
    ends, values = t[i : i + 2].copy(), curvature[i : i + 2].copy()
    for _ in range(40):
        middle = np.array([ends.mean()])
        value = line.curvature(middle)[0]
        side = int(abs(value - values[1]) < abs(value - values[0]))  # the end that is moved to the middle
        ends[side], values[side] = middle[0], value
    return float(abs(values[1] - values[0]))


def _rises(line: Line, t: FloatArray) -> tuple[FloatArray, FloatArray]:
    """How much the slope rises per unit between neighbouring points, and what of it may be rounding."""
    margins = line.margins(t).reshape(t.size, -1)
    width, gradient = np.diff((margins - line.start) @ line.direction), line.gradient(t)
    width = np.where(width > 0.0, width, np.inf)
    rise = np.diff(gradient @ line.direction) / width
    size = np.abs(gradient).max(axis=1) + np.abs(margins).max(axis=1) * np.append(np.abs(rise), 0.0)
    return rise, 16.0 * EPS * (size[1:] + size[:-1]) / width
