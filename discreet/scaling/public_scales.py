"""Ranges and scales of the columns from a public table: they cost nothing, and no private row is read."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from discreet._common.types import FloatArray
from discreet.data.validation import LARGEST_BOUND, SMALLEST_BOUND, column_ends

if TYPE_CHECKING:
    from discreet.data.public import Public
    from discreet.data.public_inputs import PublicTable
    from discreet.problem.column_scaling import ColumnScaling

# Private values are clipped at this many half-widths of the bulk of the public ones: docs/defaults.md.
PUBLIC_MARGIN = 2.0
TAIL = 0.01  # of the public rows at either end of a column, which do not count as its bulk
UNKNOWN_RADIUS = 1.0  # of a column that is constant in the public table, which most often marks a rare category


def tells_target(table: PublicTable | None) -> bool:
    """Whether a public table shows how the target of a regression spreads."""
    return table is not None and table.y is not None and bool(np.ptp(table.y) > 0.0)


def public_ranges(table: PublicTable) -> tuple[FloatArray, FloatArray]:
    """The ends of the bulk of the columns of a public table; a constant column gets some room."""
    return _bulk(table.X)


def with_public_scales(
    scaling: ColumnScaling, public: Public, centred: bool, target: bool, least_spread: float = 0.0,
    target_centred: bool = False,
) -> ColumnScaling:  # fmt: skip
    """The scaling with ranges, centres and widths of the public table, inside the declared bounds.

    No width is below `least_spread` radii of the bulk of its column.
    """
    table = public.table
    assert table is not None
    low, high = public_ranges(table)
    mean, spread = _moments(table.X, centred, table.rows)
    spread = np.maximum(spread, 0.5 * least_spread * (high - low))
    outer_low, outer_high = _outer(low, high)
    if public.low is not None and public.high is not None:
        outer_low, outer_high = (np.clip(end, public.low, public.high) for end in (outer_low, outer_high))
    if public.sparse:  # the entries that are not stored are 0
        outer_low, outer_high = np.minimum(outer_low, 0.0), np.maximum(outer_high, 0.0)
    known = outer_high > outer_low
    lost = target and not tells_target(table) and scaling.frozen.all()  # of a lost target columns can tell nothing
    scaling = replace(
        scaling,
        low=outer_low,
        high=outer_high,
        shift=np.clip(mean, outer_low, outer_high) if centred else mean,
        scale=np.where(known, spread, 1.0),
        second_moment=np.ones(public.columns),
        frozen=~known | lost,
    )
    return (
        _with_public_target(scaling, public, centred or target_centred) if target and tells_target(table) else scaling
    )


def _with_public_target(scaling: ColumnScaling, public: Public, centred: bool) -> ColumnScaling:
    assert public.table is not None
    y = np.clip(np.asarray(public.table.y, dtype=np.float64), -LARGEST_BOUND, LARGEST_BOUND)[:, None]
    (low,), (high,) = _outer(*_bulk(y))
    if public.target_low is not None and public.target_high is not None:
        low, high = (min(max(end, public.target_low), public.target_high) for end in (low, high))
    (mean,), (spread,) = _moments(y, centred, public.table.rows)
    return replace(
        scaling,
        target_low=float(low),
        target_high=float(high),
        target_shift=float(mean),
        target_scale=float(spread),
        target_noise=float(spread),  # the private mean may well be a deviation away: gradients decide
    )


def _bulk(X: Any) -> tuple[FloatArray, FloatArray]:
    """The ends of the columns without their tails, or of all of a column where nothing else is left.

    The latter is so for rare categories. A constant column gets some room.
    """
    low, high = column_ends(X)
    if not sp.issparse(X):
        inner_low, inner_high = np.quantile(np.clip(X, low, high), [TAIL, 1.0 - TAIL], axis=0)
        wide = inner_high - inner_low >= SMALLEST_BOUND
        low, high = np.where(wide, inner_low, low), np.where(wide, inner_high, high)
    constant = high - low < SMALLEST_BOUND
    return np.where(constant, low - UNKNOWN_RADIUS, low), np.where(constant, high + UNKNOWN_RADIUS, high)


def _outer(low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Where private values are clipped: far outside the public ones, which may miss or be shifted from them."""
    more = 0.5 * (PUBLIC_MARGIN - 1.0) * (high - low)
    return np.maximum(low - more, -LARGEST_BOUND), np.minimum(high + more, LARGEST_BOUND)


def _moments(X: Any, centred: bool, rows: int) -> tuple[FloatArray, FloatArray]:
    """Means (0 unless centred) and spreads; that of a constant column is so large that steps stay safe."""
    low, high = column_ends(X)
    unit = np.maximum(np.maximum(np.abs(low), np.abs(high)), SMALLEST_BOUND)  # squares must not overflow
    if sp.issparse(X):
        scaled = X @ sp.diags_array(1.0 / unit)
        mean = np.asarray(scaled.mean(axis=0), dtype=np.float64).ravel()
        variance = np.asarray(scaled.multiply(scaled).mean(axis=0), dtype=np.float64).ravel() - mean**2
    else:
        scaled = np.clip(X, low, high) / unit
        mean, variance = scaled.mean(axis=0), scaled.var(axis=0)
    # Two different values among so many have at least this spread, whatever rounding says.
    spread = np.maximum(unit * np.sqrt(np.maximum(variance, 0.0)), 0.5 * (high - low) / np.sqrt(rows))
    unknown = high - low < SMALLEST_BOUND
    if not centred:
        spread, unknown, mean = np.hypot(spread, unit * mean), unit <= SMALLEST_BOUND, np.zeros_like(mean)
    return mean * unit, np.where(unknown, UNKNOWN_RADIUS, spread)
