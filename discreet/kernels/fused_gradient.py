"""The clipped gradient sum of dense rows on a GPU with Triton: the table is read twice, and scaled in registers.

One kernel computes the margins of the rows (`mapped_rows`), one the factors of their gradients, one row a thread, and
one adds up rows times factors: each entry is rounded to an integer, in steps, before it is added. Every program adds
its rows to sums of its own, and the sums of the programs are added in turn. All of these are integers below 2^53, so
that no order of additions changes a bit. One kernel that reads the table once is slower, as all threads of a row
compute its exponential: 92 ms against 25 ms for 10^8 rows of 50 columns on an H200.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from discreet.kernels.forms import HUBER, LOGISTIC, SMOOTHED_HINGE, SQUARED
from discreet.kernels.gradient import SMALLEST_FACTOR

MOST_COLUMNS = 512  # a tile of rows lies in the registers of one program
# Of a tile: the fastest on an H200 with 50 columns, by a few per cent (benchmarks/scale/gpu_kernels.py).
MAP_ENTRIES, MAP_WARPS = 4096, 4
SUM_ENTRIES, SUM_WARPS = 512, 1
TILES_EACH = 128  # tiles that a program adds up
FACTORS = 1024  # rows of a program that computes factors

CODES = (SQUARED, LOGISTIC, HUBER, SMOOTHED_HINGE)  # of the losses whose slopes the kernel computes
# What the kernel itself reads must be of this kind.
_SQUARED, _LOGISTIC, _HUBER, _SMOOTHED_HINGE = (tl.constexpr(code) for code in CODES)
_ROUND = tl.constexpr(1.5 * 2.0**52)
_SMALLEST_FACTOR = tl.constexpr(SMALLEST_FACTOR)


@triton.jit
def _scaled(X, columns, i, there, j, P: tl.constexpr):
    """(clip(x, low, high) - shift) * gain of the entries of the rows i; 0 beyond the last column."""
    inside = j < P
    low, high = tl.load(columns + j, inside, 0.0), tl.load(columns + P + j, inside, 0.0)
    shift, gain = tl.load(columns + 2 * P + j, inside, 0.0), tl.load(columns + 3 * P + j, inside, 0.0)
    x = tl.load(X + i[:, None] * P + j[None, :], there[:, None] & inside[None, :], 0.0).to(tl.float64)
    x = tl.where(x > low[None, :], x, low[None, :])
    x = tl.where(x < high[None, :], x, high[None, :])
    return (x - shift[None, :]) * gain[None, :]


@triton.jit
def _fill_mapped(
    X, columns, matrix, mapped, rows,
    P: tl.constexpr, OUTPUTS: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """mapped[k] = the rows, with a last entry of 1, times column k of the matrix."""
    i = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    j = tl.arange(0, COLUMNS)
    z = _scaled(X, columns, i, i < rows, j, P)
    for k in range(OUTPUTS):
        weights = tl.load(matrix + k * (P + 1) + j, j < P, 0.0)
        value = tl.sum(z * weights[None, :], axis=1) + tl.load(matrix + k * (P + 1) + P)
        tl.store(mapped + i, value, i < rows)
        mapped += rows


@triton.jit
def _slope(CODE: tl.constexpr, parameter, margin, y):
    if CODE == _LOGISTIC:
        slope = -y / (1.0 + tl.exp(y * margin))
    elif CODE == _SMOOTHED_HINGE:
        part = (1.0 + parameter - y * margin) * (0.5 / parameter)
        slope = -y * tl.where(part > 0.0, tl.where(part < 1.0, part, 1.0), tl.where(part <= 0.0, 0.0, part))
    elif CODE == _HUBER:
        residual = margin - y
        slope = tl.where(residual > parameter, parameter, tl.where(residual < -parameter, -parameter, residual))
    elif CODE == _SQUARED:
        slope = margin - y
    else:
        slope = margin * float("nan")
    return slope


@triton.jit
def _margins_to_factors(
    margins, y, norms, weight, numbers, rows, CODE: tl.constexpr, WEIGHTED: tl.constexpr, SIZE: tl.constexpr
):
    """Overwrite margins by slopes, shortened so that no gradient exceeds the norm `clip`, in steps."""
    i = tl.program_id(0).to(tl.int64) * SIZE + tl.arange(0, SIZE)
    there = i < rows
    parameter, clip, per_step = tl.load(numbers), tl.load(numbers + 1), tl.load(numbers + 2)
    slope = _slope(CODE, parameter, tl.load(margins + i, there, 0.0), tl.load(y + i, there, 0.0))
    size = tl.abs(slope) * tl.load(norms + i, there, 0.0)
    shorter = tl.where(size > clip, clip / size, 1.0)
    factor = slope * shorter * per_step
    factor = tl.where((size < float("inf")) & (shorter >= _SMALLEST_FACTOR), factor, 0.0)  # 0 also for NaN
    if WEIGHTED:
        factor = factor * tl.load(weight + i, there, 0.0)
    tl.store(margins + i, factor, there)


@triton.jit
def _rint(value):
    """The nearest integer, to even where two are as near, of numbers up to 2^51; terms stay below 2^50 steps."""
    return (value + _ROUND) - _ROUND


@triton.jit
def _add_rows(
    X, columns, factors, sums, rows,
    P: tl.constexpr, EACH: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    program = tl.program_id(0)
    j = tl.arange(0, COLUMNS)
    total = tl.zeros((ROWS, COLUMNS), dtype=tl.float64)
    ones = tl.zeros((ROWS,), dtype=tl.float64)
    for k in range(EACH):
        i = (program.to(tl.int64) * EACH + k) * ROWS + tl.arange(0, ROWS)
        factor = tl.load(factors + i, i < rows, 0.0)
        total += _rint(factor[:, None] * _scaled(X, columns, i, i < rows, j, P))
        ones += _rint(factor)
    tl.store(sums + program * (P + 1) + j, tl.sum(total, axis=0), j < P)
    tl.store(sums + program * (P + 1) + P, tl.sum(ones, axis=0))


INTERPRETED = not isinstance(_add_rows, triton.JITFunction)  # by NumPy, which needs no GPU: for tests


def clipped_gradient_steps(X, y, norms, weight, columns, w, loss, clip, step):
    """Sum over the rows of weight_i * clip(slope_i x_i, norm <= clip), each row rounded; in steps, the intercept last.

    All arguments but the last three are tensors on one device, in double precision but for X. `clip` is finite.

    Guarantee: every row contributes a vector of norm at most weight_i * clip before it is rounded.
    """
    with torch.cuda.device(X.device) if X.is_cuda else torch.no_grad():
        margins = mapped_rows(X, columns, w[None])[0]
        return rounded_row_sum(X, columns, row_factors(margins, y, norms, weight, loss, clip, step))


def row_factors(margins, y, norms, weight, loss, clip, step):
    """The margins, overwritten by the slopes of the rows, which are clipped, weighted and counted in steps."""
    rows, (code, parameter) = margins.shape[0], loss
    numbers = torch.tensor([parameter, clip, 1.0 / step], dtype=torch.float64).to(margins.device)
    _margins_to_factors[(triton.cdiv(rows, FACTORS),)](
        margins, y, norms, norms if weight is None else weight, numbers, rows,
        CODE=code, WEIGHTED=weight is not None, SIZE=FACTORS, enable_fp_fusion=False,
    )  # fmt: skip
    return margins


def mapped_rows(X, columns, matrix, entries=MAP_ENTRIES, warps=MAP_WARPS):
    """The scaled rows, with a last entry of 1, times each row of the matrix: (its rows, those of the table)."""
    (rows, p), outputs = X.shape, matrix.shape[0]
    width = triton.next_power_of_2(p)
    height = max(entries // width, 1)
    mapped = torch.empty(outputs, rows, dtype=torch.float64, device=X.device)
    with torch.cuda.device(X.device) if X.is_cuda else torch.no_grad():
        _fill_mapped[(triton.cdiv(rows, height),)](
            X, columns, matrix, mapped, rows,
            P=p, OUTPUTS=outputs, ROWS=height, COLUMNS=width, num_warps=warps, enable_fp_fusion=False,
        )  # fmt: skip
    return mapped


def rounded_row_sum(X, columns, factors, entries=SUM_ENTRIES, warps=SUM_WARPS, each=TILES_EACH):
    """The sum of the rows times their factors, every entry rounded to an integer; that of the factors last."""
    rows, p = X.shape
    width = triton.next_power_of_2(p)
    height = max(entries // width, 1)
    programs = triton.cdiv(rows, height * each)
    sums = torch.empty(programs, p + 1, dtype=torch.float64, device=X.device)
    # Without contraction a product is rounded before it is rounded to an integer, as on the processor.
    _add_rows[(programs,)](
        X, columns, factors, sums, rows,
        P=p, EACH=each, ROWS=height, COLUMNS=width, num_warps=warps, enable_fp_fusion=False,
    )  # fmt: skip
    return sums.sum(dim=0)
