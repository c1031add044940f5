"""Laws of a loss.

As a function: its derivatives, its convexity and its conjugate belong together. Of what it promises for every margin:
bounds on slope and curvature, flags, behaviour at extremes. Of what compiled loops know of it: every form computes what
the methods of the loss state.
"""

from __future__ import annotations

import copy
import math
import warnings
from typing import Any

import numpy as np

from discreet._common.types import FloatArray
from discreet.kernels.forms import CompiledForms
from discreet.testing.laws import broken, skipped
from discreet.testing.tables import FAR, Kernel, Line, LossCase

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


SINGLE_ROWS = 40  # of each line, given one by one to kernels that take one row
STIFFNESS = (1e-3, 0.3, 2.0, 50.0, 1e4)


def kernel_computes_the_same_slope(case: LossCase) -> None:
    """The compiled loops compute the slope that the loss states, of all rows at once and of one row."""
    from discreet.kernels import slopes

    own, several = callable(case.kernel), case.loss.outputs > 1
    if not own:
        _needs(case, "slope")
    kernel: Any = case.kernel if own else slopes.fill_vector_slope if several else slopes.fill_slopes
    for line, t in case.far_lines:
        chosen = _some(t)
        if several:
            _compare(line, chosen, line.gradient(chosen), _rows_one_by_one(kernel, line, chosen))
            continue
        _compare(line, t, line.gradient(t), _filled(kernel, line, t)[:, None])
        if not own:
            rows = [slopes.slope_of(*_code(line), m, line.target) for m in line.margins(chosen)]
            _compare(line, chosen, line.gradient(chosen), np.array(rows)[:, None])


def kernel_computes_the_same_curvature(case: LossCase) -> None:
    """The compiled loops compute the curvature that the loss states; at a kink that of either side."""
    from discreet.kernels import slopes

    _needs(case, "curvature")
    for line, t in case.far_lines:
        _compare_curvatures(line, t, _filled(slopes.fill_curvatures, line, t))
        chosen = _some(t)
        rows = [
            slopes.curvature_of(*_code(line), m, line.target, slopes.slope_of(*_code(line), m, line.target))
            for m in line.margins(chosen)
        ]
        _compare_curvatures(line, chosen, np.array(rows))


def kernel_solves_for_the_proximal_slope(case: LossCase) -> None:
    """The compiled proximal slope s solves s = slope(margin - stiffness * s)."""
    from discreet.kernels.slopes import fill_proximal_slopes

    _needs(case, "proximal_slope")
    for line, t in case.lines:
        margins, y = np.ascontiguousarray(line.margins(t)), line.targets(t)
        for stiffness in STIFFNESS:
            s = np.empty(t.size)
            fill_proximal_slopes(*_code(line), margins, y, np.full(t.size, stiffness), s)
            size = np.abs(margins) + abs(line.target) + stiffness * np.abs(s) + 1.0
            slack = 1e-9 * np.abs(s) + 16.0 * EPS * max(1.0, case.loss.smoothness) * size
            # s - slope(margin - stiffness * s) rises with s by at least as much.
            low, high = (near - case.loss.slope(margins - stiffness * near, y) for near in (s - slack, s + slack))
            what = f"for stiffness {stiffness:g}, and slope() at the proximal point is"
            _hold((low <= 0.0) & (high >= 0.0), line, t, s, what, case.loss.slope(margins - stiffness * s, y))


def tensors_give_the_same_slope(case: LossCase) -> None:
    """On tensors, as rows on a GPU are computed, the slope is what the loss states."""
    _needs(case, "tensor_slope")
    try:
        import torch
    except ImportError:
        skipped("PyTorch is not installed; pip install discreet[gpu]")
    from discreet.kernels.tensors import slopes_of

    for line, t in case.far_lines:
        margins, y = torch.as_tensor(line.margins(t)), torch.as_tensor(line.targets(t))
        _compare(line, t, line.gradient(t), np.asarray(slopes_of(*_code(line), margins, y).numpy())[:, None])


def fused_kernel_gives_the_same_slope(case: LossCase) -> None:
    """The kernel that sums gradients on a GPU computes the slope that the loss states."""
    _needs(case, "tensor_slope")
    try:
        import torch

        from discreet.kernels import fused_gradient
    except ImportError:
        skipped("PyTorch or Triton is not installed; pip install discreet[gpu]")
    if case.loss.code not in fused_gradient.CODES:
        skipped("the fused kernel is for losses with a number; slopes of others are computed on tensors")
    if not (torch.cuda.is_available() or fused_gradient.INTERPRETED):
        skipped("there is no GPU")
    device = "cuda" if torch.cuda.is_available() else "cpu"
    for line, t in case.far_lines:
        margins, y = (torch.as_tensor(each, device=device) for each in (line.margins(t), line.targets(t)))
        factors = fused_gradient.row_factors(margins, y, torch.ones_like(y), None, _code(line), math.inf, 1.0)
        _compare(line, t, line.gradient(t), factors.cpu().numpy()[:, None])


def _needs(case: LossCase, form: str) -> None:
    """Skip a law about a form that the loss does not have."""
    loss, words = case.loss, form.replace("_", " ")
    if case.kernel is not None and loss.code is not None and not loss.forms:
        broken(f"code {loss.code!r} is unknown to the compiled loops; let code be a CompiledForms, or None")
    if case.kernel is None or form not in loss.forms:
        skipped(f"the loss has no compiled {words}; loops that need one refuse it, others call its methods")
    if form != "slope" and loss.outputs > 1:
        skipped("losses of several outputs are asked for no other form than slopes")


def _code(line: Line) -> tuple[int | CompiledForms | None, float]:
    return line.loss.code, float(line.loss.parameter)


def _filled(kernel: Kernel, line: Line, t: FloatArray) -> FloatArray:
    """What a kernel computes of all rows of a line."""
    values = np.empty(t.size)
    kernel(*_code(line), np.ascontiguousarray(line.margins(t)), line.targets(t), values)
    return values


def _rows_one_by_one(kernel: Kernel, line: Line, t: FloatArray) -> FloatArray:
    rows = np.ascontiguousarray(line.margins(t))
    values = np.empty(rows.shape)
    for i in range(t.size):
        kernel(*_code(line), rows[i], line.target, values[i])
    return values


def _some(t: FloatArray) -> FloatArray:
    return t[:: max(1, t.size // SINGLE_ROWS)]


def _rounding(line: Line, t: FloatArray) -> FloatArray:
    """By how much rounding an argument once moves it."""
    with np.errstate(over="ignore"):
        return 8.0 * EPS * (np.abs(line.margins(t)).reshape(t.size, -1).max(axis=1) + abs(line.target) + 1.0)


def _compare(line: Line, t: FloatArray, wanted: FloatArray, computed: FloatArray) -> None:
    """Equal to 12 digits, or as close as an argument that is rounded once allows."""
    with np.errstate(invalid="ignore", over="ignore"):
        rounding = min(line.loss.smoothness, 1e6) * _rounding(line, t)
        close = np.abs(computed - wanted) <= np.maximum(1e-12 * np.abs(wanted), rounding[:, None])
    _hold((close | (computed == wanted)).all(axis=1), line, t, computed, "and slope()", wanted)


def _compare_curvatures(line: Line, t: FloatArray, computed: FloatArray) -> None:
    """Between those at the neighbouring margins, to 9 digits and the rounding of numbers of the bound's size."""
    margins, move, y = line.margins(t), _rounding(line, t), line.targets(t)
    with np.errstate(over="ignore"):
        around = np.stack([line.loss.curvature(near, y) for near in (margins - move, margins, margins + move)])
    slack = 1e-9 * around.max(axis=0) + 16.0 * EPS * line.loss.smoothness
    right = (around.min(axis=0) - slack <= computed) & (computed <= around.max(axis=0) + slack)
    _hold(right, line, t, computed, "and curvature()", around[1])


def _hold(right: Any, line: Line, t: FloatArray, computed: FloatArray, what: str, wanted: FloatArray) -> None:
    if not right.all():
        i = int(np.argmin(right))
        broken(f"{line.at(t[i])} the kernel computes {computed[i]} {what} {wanted[i]}")
