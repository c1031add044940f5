"""Laws of what compiled loops know of a loss: every form computes what the methods of the loss state."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from discreet._common.types import FloatArray
from discreet.kernels.forms import CompiledForms
from discreet.testing.laws import broken, skipped
from discreet.testing.lines import Kernel, Line, LossCase
from discreet.testing.loss_laws import EPS

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
