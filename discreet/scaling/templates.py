"""Centres and widths of columns about which nothing is declared, from counts that noise may hide: by templates.

No bin has to stand out of the noise. The noisy counts of a column, by sign and binary exponent, are held against a few
hundred public templates: indicators, positive, negative and symmetric numbers of many sizes and widths. Centre and
width are those of the templates that fit; a column is multiplied by the root of the probability that they hold, so that
one which is not seen fades away instead of forcing its scale on others: docs/guarantees/scales.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import ndtr, ndtri

from discreet._common.types import FloatArray
from discreet.privacy import mechanisms
from discreet.scaling.histograms import BINS, LOWEST_EXPONENT, signed_exponent_counts
from discreet.scaling.plan import counted_columns

if TYPE_CHECKING:
    from discreet.problem.column_scaling import ColumnScaling
    from discreet.scaling.learn import Counter, Ranges
    from discreet.scaling.plan import ScalingPlan

# Where these come from: docs/defaults.md.
LEAST, MOST = -10, 22  # binary exponents that are told apart; smaller numbers count as 0
USUAL_SIZE, SIZES = 3.0, 4.5  # the median of the binary logarithm of a size, and its deviation
INDICATORS, POSITIVE, SYMMETRIC, NEGATIVE = 0.3, 0.45, 0.22, 0.03  # how probable kinds of columns are
SHARES = (0.03, 0.08, 0.15, 0.3, 0.5, 0.7, 0.85)  # of ones, in indicators
WIDTHS = ((0.12, 0.25), (0.35, 0.3), (0.8, 0.3), (1.6, 0.15))  # deviations of binary logarithms, how probable they are
HALF_ZEROS = 0.3  # part of the columns of positive numbers of which half are 0
TAIL = 0.97  # the quantile at which positive numbers are cut, for their centre and width
MISFIT = 0.03  # how far the share of a bin may be from that of a template
ROUNDS, BELIEF = 2, 4.0  # how often all columns together say which templates are usual, against so many columns
NEAR = 2.0  # the factor in width, and the distance in widths, within which templates are alike
REACH = 2.5  # widths from the centre, at which entries are clipped
INVISIBLE = 1e-6  # a column that fits so badly is left out


@dataclass(frozen=True, eq=False)
class Templates:
    """Shares of the rows by signed bin (one template a row), centres, widths and prior probabilities."""

    shares: FloatArray
    centre: FloatArray
    width: FloatArray
    prior: FloatArray


@cache
def templates() -> Templates:
    """All of them; they are public."""
    exponents, sizes = np.arange(LEAST, MOST + 1.0), np.arange(LEAST + 1.0, MOST, 0.5)
    usual = np.exp(-0.5 * ((sizes - USUAL_SIZE) / SIZES) ** 2)
    usual /= usual.sum()
    normal = ndtri((np.arange(400) + 0.5) / 400)
    found: list[tuple[FloatArray, float, float, float]] = []

    def add(kind: float, below: FloatArray, centre: float, width: float, zeros: float = 0.0, sign: int = 1) -> None:
        """A template from the shares of positive numbers below each power of two."""
        parts = (1.0 - zeros) * np.diff(below, append=1.0)
        row = np.zeros(2 * parts.size + 1)
        row[parts.size] = zeros + (1.0 - zeros) * below[0]
        if sign >= 0:
            row[parts.size + 1 :] = parts if sign else 0.5 * parts
        if sign <= 0:
            row[: parts.size] = parts[::-1] if sign else 0.5 * parts[::-1]
        found.append((row, centre, width, kind))

    for share in SHARES:
        add(
            INDICATORS / len(SHARES),
            np.heaviside(exponents, 0.0),
            share,
            math.sqrt(share * (1.0 - share)),
            zeros=1.0 - share,
        )
    for size, probable in zip(sizes, usual, strict=True):
        unit = 2.0**size
        for spread, part in WIDTHS:
            for zeros, share in ((0.0, 1.0 - HALF_ZEROS), (0.5, HALF_ZEROS)):
                values = 2.0 ** (size + spread * normal) * (np.arange(400) * 0.618034 % 1.0 >= zeros)
                values = np.minimum(values, np.quantile(values, TAIL))
                width = max(float(values.std()), 0.2 * unit)
                kind = POSITIVE * probable * part * share
                add(kind, ndtr((exponents - size) / spread), float(values.mean()), width, zeros)
        add(SYMMETRIC * probable, 2.0 * ndtr(2.0 ** (exponents - size)) - 1.0, 0.0, unit, sign=0)
        add(NEGATIVE * probable, ndtr(2.0 * (exponents - size)), -unit, 0.4 * unit, sign=-1)
    shares, centre, width, prior = (np.array(each) for each in zip(*found, strict=True))
    return Templates(shares, centre, width, prior / prior.sum())


@dataclass(frozen=True, eq=False)
class Fitted:
    """Centre and width of each column, and how probable they are."""

    centre: FloatArray
    width: FloatArray
    trust: FloatArray


def fitted(shares: FloatArray, noise: float) -> Fitted:
    """What noisy shares of the rows by signed bin, one column a row, tell of the columns."""
    public, inner = templates(), inner_bins(shares)
    variance = noise**2 + MISFIT**2
    fits = (inner @ public.shares.T - 0.5 * (public.shares**2).sum(axis=1)) / variance
    prior = public.prior
    for _ in range(ROUNDS):
        probable = np.exp(fits + np.log(prior) - (fits + np.log(prior)).max(axis=1, keepdims=True))
        probable /= probable.sum(axis=1, keepdims=True)
        prior = (probable.sum(axis=0) + BELIEF * public.prior) / (probable.shape[0] + BELIEF)
    best, logs = probable.argmax(axis=1), np.log2(public.width)
    alike = np.abs(logs - logs[best][:, None]) <= math.log2(NEAR)
    alike &= np.abs(public.centre - public.centre[best][:, None]) <= NEAR * public.width[best][:, None]
    near = probable * alike
    trust = near.sum(axis=1)
    near /= trust[:, None]
    return Fitted(near @ public.centre, 2.0 ** (near @ logs), trust)


def inner_bins(shares: FloatArray) -> FloatArray:
    """The bins of numbers that are told apart, and that of 0, of all signed bins; what lies beyond is not looked at."""
    zero = BINS - 1
    first, last = zero + 1 + LEAST - LOWEST_EXPONENT, zero + 1 + MOST - LOWEST_EXPONENT
    positive, negative = shares[:, first : last + 1], shares[:, 2 * zero - last : 2 * zero - first + 1]
    return np.concatenate([negative, shares[:, zero : zero + 1], positive], axis=1)


def with_templates(scaling: ColumnScaling, scaling_plan: ScalingPlan, found: Ranges, counter: Counter) -> ColumnScaling:
    """The scaling with centres and widths from templates for the columns without declared bounds.

    Guarantee: costs one event of the planned counts and one of the planned means.
    """
    public, histogram = counter.public, scaling_plan.histogram
    if histogram is None:
        raise RuntimeError("templates were planned without counts.")
    columns = counted_columns(public, scaling_plan.method)
    counts, noise = counter.noisy(signed_exponent_counts(counter.data, columns), len(columns), histogram)
    fit = fitted(counts / public.rows, histogram.deviation(noise.sensitivity) / public.rows)
    centre, width = fit.centre, fit.width
    if not scaling_plan.centred:
        centre, width = np.zeros(len(columns)), np.hypot(centre, width)
    low = np.clip(centre - REACH * width, found.outer_low[columns], found.outer_high[columns])
    high = np.clip(centre + REACH * width, low, found.outer_high[columns])
    found.low[columns], found.high[columns] = low, high
    if scaling_plan.location is not None:
        centre = centre + _means_off(found, columns, centre, scaling_plan.location, counter)
    lost = scaling_plan.target and scaling.target_low == scaling.target_high
    frozen = (fit.trust < INVISIBLE) | (low >= high) | lost
    scale = width / np.sqrt(np.maximum(fit.trust, INVISIBLE))
    names = ("low", "high", "shift", "scale", "second_moment", "frozen")
    made: dict[str, Any] = {name: np.array(getattr(scaling, name)) for name in names}
    for name, part in zip(names, (low, high, centre, scale, fit.trust, frozen), strict=True):
        made[name][columns] = part
    return replace(scaling, **made)


def _means_off(
    found: Ranges, columns: list[int], centre: FloatArray, mechanism: mechanisms.Additive, counter: Counter
) -> FloatArray:
    """How far noisy means lie from the centres, shortened to what is not noise."""
    half = np.maximum(0.5 * (found.high - found.low)[columns], np.finfo(float).tiny)
    off = counter.means(found, columns, mechanism)[columns] - np.clip(centre, found.low[columns], found.high[columns])
    noise = mechanism.deviation(mechanisms.bounded_values(counter.public.relation, len(columns))) / counter.public.rows
    signal = max(float(np.mean((off / half) ** 2)) - noise**2, 0.0)
    return np.asarray(off * (signal / (signal + noise**2)))
