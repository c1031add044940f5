"""Passes over dense rows that lie on a GPU, or in any PyTorch tensor: the same as `row_passes` makes over arrays.

Rows are scaled in double precision, a piece at a time, and never copied as a whole. Where every row is rounded to
multiples of a power of two, sums are exact whatever the order in which the threads of the device add: they are those of
the other kernels wherever the factors of the rows are the same numbers. What is computed of a row depends on that row
alone, to the last bit: no library adds up its entries in an order of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import torch

from discreet._common.types import FloatArray
from discreet.kernels.forms import HUBER, LOGISTIC, SMOOTHED_HINGE, SQUARED, CompiledForms
from discreet.kernels.gradient import SMALLEST_FACTOR, SMALLEST_NORM

PIECE_ENTRIES = 1 << 24  # of the rows that are held scaled at once: 128 MiB


def pieces(X: Any) -> Iterator[slice]:
    """The rows in pieces that bound the memory of what is computed of them."""
    size = max(1, PIECE_ENTRIES // max(1, X.shape[1]))
    return (slice(start, min(start + size, X.shape[0])) for start in range(0, X.shape[0], size))


def all_finite(X: Any) -> bool:
    """Whether all entries are finite numbers."""
    return all(bool(torch.isfinite(X[rows]).all()) for rows in pieces(X))


def slopes_of(code, parameter, margins, y):
    """The slopes of the losses with these codes, as `fill_slopes` has them."""
    if code == LOGISTIC:
        return -y * torch.sigmoid(-y * margins)
    if code == SMOOTHED_HINGE:
        return -y * ((1.0 + parameter - y * margins) * (0.5 / parameter)).clamp(0.0, 1.0)
    if code == HUBER:
        return (margins - y).clamp(-parameter, parameter)
    if code == SQUARED:
        return margins - y
    if isinstance(code, CompiledForms) and code.tensor_slope is not None:
        return code.tensor_slope(parameter, margins, y)
    raise ValueError(f"tensors have no slope of a loss with code {code!r}.")


def clipped(slopes, norms, clip, weight):
    """Slopes shortened so that no gradient exceeds the norm `clip`, times the weights: see `clipped_slopes`."""
    size = slopes.abs() * norms
    factor = torch.where(size > clip, clip / size, 1.0)
    short = torch.where((size < np.inf) & (factor >= SMALLEST_FACTOR), slopes * factor, 0.0)
    return short if weight is None else short * weight


class TensorRows:
    """Dense rows in a tensor and the map of their columns; vectors that it takes and gives lie on the same device.

    `columns` holds low, high, shift and gain of each column; `intercept` says whether a last column of ones belongs to
    the rows.
    """

    def __init__(self, X: Any, columns: FloatArray, intercept: bool) -> None:
        self.X, self.intercept = X, intercept
        self.columns = self.tensor(columns)

    def tensor(self, values: Any) -> Any:
        """Numbers in double precision on the device of the rows."""
        return torch.as_tensor(values, dtype=torch.float64, device=self.X.device)

    def scaled(self, rows: slice) -> Any:
        """The scaled rows of a piece, column by column, the column of ones last."""
        low, high, shift, gain = self.columns[:, :, None]
        piece, p = self.X[rows].T, self.X.shape[1]
        Z = torch.ones(p + self.intercept, piece.shape[1], dtype=torch.float64, device=piece.device)
        inner = Z[:p]
        inner.copy_(piece)
        torch.maximum(inner, low, out=inner)
        torch.minimum(inner, high, out=inner)
        inner.sub_(shift).mul_(gain)
        return Z

    def _mapped(self, rows: slice, matrix: Any) -> Any:
        """The scaled rows of a piece times a matrix, column by column: see `mapped`."""
        if not runs_fused(self.X):
            return mapped(self.scaled(rows), matrix)
        from discreet.kernels.fused_gradient import mapped_rows

        return mapped_rows(self.X[rows], self.columns, self._with_last(matrix).T.contiguous())

    def _with_last(self, weights: Any) -> Any:
        """Weights of the columns and of the last entry of the rows, which is 0 times a 1 that is not there."""
        return weights if self.intercept else torch.cat([weights, torch.zeros_like(weights[:1])])

    def matrix(self) -> FloatArray:
        """The scaled rows as an array in the memory of the host."""
        return np.concatenate([_on_host(self.scaled(rows).T) for rows in pieces(self.X)])

    def margins(self, w: FloatArray) -> Any:
        """The margins of the rows: (n,), or (n, outputs)."""
        weights = self.tensor(np.atleast_2d(w).T)
        margins = torch.cat([self._mapped(rows, weights).T for rows in pieces(self.X)])
        return margins if w.ndim > 1 else margins[:, 0]

    def norms(self, maps: FloatArray | None = None) -> Any:
        """Euclidean norms of the rows, or of the rows times a matrix; never understated: see `row_norms`."""
        matrix, squares = None if maps is None else self.tensor(maps), []
        for rows in pieces(self.X):
            squares.append(_square_sum(self.scaled(rows) if matrix is None else self._mapped(rows, matrix)))
        return torch.cat(squares).sqrt_().clamp_(min=SMALLEST_NORM)

    def outer_products(self, factors: Any, unit: float, maps: FloatArray | None = None) -> FloatArray:
        """The sum of a a', a being the rows, times the matrix, times their factors, cut to multiples of the unit."""
        matrix, size = None if maps is None else self.tensor(maps), self.X.shape[1] + self.intercept
        total = torch.zeros(size, size, dtype=torch.float64, device=self.X.device)
        for rows in pieces(self.X):
            Z = (self.scaled(rows) if matrix is None else self._mapped(rows, matrix)).mul_(factors[rows])
            if unit > 0.0:
                Z.mul_(1.0 / unit).trunc_().mul_(unit)
            total += Z @ Z.T
        return _on_host(torch.triu(total) + torch.triu(total, 1).T)

    def slopes(self, w: FloatArray, y: Any, loss: tuple[Any, float]) -> Any:
        """The slopes of the losses whose code the kernels know."""
        return slopes_of(*loss, self.margins(w), y)

    def gradient_sum(
        self, w: FloatArray, y: Any, loss: tuple[Any, float], norms: Any, clip: float, weight: Any, step: float
    ) -> FloatArray:
        """Sum over the rows of weight_i * clip(slope_i x_i, norm <= clip), each row rounded to multiples of the step.

        Guarantee: every row contributes a vector of norm at most weight_i * clip before it is rounded.
        """
        if step > 0.0 and runs_fused(self.X) and loss[0] in _fused().CODES:
            from discreet.kernels.fused_gradient import clipped_gradient_steps

            weights = self._with_last(self.tensor(w))
            sums = _on_host(clipped_gradient_steps(self.X, y, norms, weight, self.columns, weights, loss, clip, step))
            return (sums if self.intercept else sums[:-1]) * step
        factors = clipped(self.slopes(w, y, loss), norms, clip, weight)
        return self.factor_sum(factors[:, None], step)[0]

    def factor_sum(self, factors: Any, step: float) -> FloatArray:
        """Sum of the rows times their factors, (n, outputs), every entry rounded to a multiple of the step."""
        size, total = self.X.shape[1] + self.intercept, []
        for rows in pieces(self.X):
            Z, each = self.scaled(rows), factors[rows].T
            if step > 0.0:
                total.append(torch.stack([(Z * (k / step)).round_().sum(dim=1) for k in each]))
            else:
                total.append(each @ Z.T)
        sums = _on_host(torch.stack(total).sum(dim=0)).reshape(-1, size)
        return sums * step if step > 0.0 else sums


def mapped(Z: Any, matrix: Any) -> Any:
    """The rows times a matrix, both column by column, as sums in a fixed order of products that are rounded first.

    A product of matrices from a library may add in another order elsewhere in a table, or in a table with a row less.
    """
    total = matrix[0][:, None] * Z[0]
    for j in range(1, Z.shape[0]):
        total += matrix[j][:, None] * Z[j]
    return total


def _square_sum(Z: Any) -> Any:
    """The sum of the squares of each row, in a fixed order as well."""
    total = Z[0] * Z[0]
    for column in Z[1:]:
        total += column * column
    return total


def _on_host(values: Any) -> FloatArray:
    return np.asarray(values.cpu().numpy(), dtype=np.float64)


def runs_fused(X: Any) -> bool:
    """Whether the kernel that needs one pass can read these rows: Triton is here, and few enough columns for it."""
    fused = _fused()
    return fused is not None and (X.is_cuda or fused.INTERPRETED) and 0 < X.shape[1] <= fused.MOST_COLUMNS


@cache
def _fused() -> Any:
    try:
        from discreet.kernels import fused_gradient
    except ImportError:
        return None
    return fused_gradient


def exponent_counts(X, groups, origin, weight, lowest, highest):
    """For each group of columns, the weighted number of rows by the binary exponent of their largest distance.

    Distances are from the origin; zeros go to the last bin and exponents beyond the ends to these.
    """
    bins, device = highest - lowest + 2, X.device
    start = torch.as_tensor(origin[: X.shape[1]], dtype=torch.float64, device=device)
    places = bins * torch.arange(len(groups), device=device)
    weight = None if weight is None else torch.as_tensor(weight, dtype=torch.float64, device=device)
    counts = torch.zeros(bins * len(groups), dtype=torch.float64, device=device)
    for rows in pieces(X):
        distance = (X[rows].double() - start).abs_()
        if len(groups) != X.shape[1] or any(len(group) > 1 for group in groups):
            distance = torch.stack([distance[:, g.start : g.stop].amax(dim=1) for g in groups], dim=1)
        distance.clamp_(max=2.0 ** (highest + 1))
        exponents = torch.frexp(distance).exponent.long() - 1
        found = torch.where(distance > 0.0, exponents.clamp(lowest, highest) - lowest, bins - 1) + places
        each = None if weight is None else weight[rows, None].expand_as(found).reshape(-1)
        counts += torch.bincount(found.reshape(-1), weights=each, minlength=counts.numel())
    return _on_host(counts).reshape(len(groups), bins)


def moment_sums(X, low, high, centre, radius, weight, step):
    """Sums of u and u^2, u = (clip(x) - centre) / radius, each weighted term rounded to multiples of the step.

    A radius of 0 gives u = 0; a step of 0 rounds nothing.
    """
    device = X.device
    low, high, centre, radius = (
        torch.as_tensor(each, dtype=torch.float64, device=device) for each in (low, high, centre, radius)
    )
    weight = None if weight is None else torch.as_tensor(weight, dtype=torch.float64, device=device)
    known, sums = radius > 0.0, torch.zeros(2, X.shape[1], dtype=torch.float64, device=device)
    for rows in pieces(X):
        u = X[rows].double().maximum(low).minimum(high).sub_(centre).div_(torch.where(known, radius, 1.0))
        u.clamp_(-1.0, 1.0).mul_(known)
        for k, terms in enumerate((u, u * u)):
            each = terms if weight is None else terms * weight[rows, None]
            sums[k] += (each / step).round_().sum(dim=0) if step > 0.0 else each.sum(dim=0)
    return _on_host(sums) * (step if step > 0.0 else 1.0)
