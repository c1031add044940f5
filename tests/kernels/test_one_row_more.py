"""A row more changes a sum by the term of that row alone, also where compiled loops take over from NumPy by it."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from discreet.data.rows import Data, limits_between, moment_sums
from discreet.kernels import small_rows
from discreet.kernels.gradient import row_norms
from discreet.problem.losses import Huber, Logistic, SmoothedHinge, Squared
from discreet.problem.scaled_block import ScaledRows
from discreet.scaling import histograms

HOSTILE = [0.0, -0.0, 5e-324, -5e-324, 1e-310, 1e-162, 1e-154, 1e154, 1e308, -1e308, 1.79e308]
LOSSES = [Logistic(), Squared(), Huber(1e-50), SmoothedHinge(0.4), SmoothedHinge(1e50)]
SIZES = [(2, 1), (5, 8), (64, 3), (65, 17), (129, 9)]
FORMS = {"C": np.ascontiguousarray, "F": np.asfortranarray, "strided": lambda X: np.repeat(X, 2, axis=1)[:, ::2]}


def hostile_table(rng, n, p):
    """Rows of which half of the entries are hostile."""
    X = rng.normal(size=(n, p))
    chosen = rng.random((n, p)) < 0.5
    X[chosen] = rng.choice(HOSTILE, chosen.sum())
    return X


def exact_square(vector):
    return sum(Fraction(float(entry)) ** 2 for entry in vector)


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: f"{loss.name}-{loss.parameter:g}")
@pytest.mark.parametrize(("n", "p"), SIZES)
def test_gradients_and_outer_products(n, p, loss, monkeypatch):
    rng, everyone = np.random.default_rng(n), np.arange(n)
    scales, clips = (1.0, 1e-100, 1e100), (0.3, 1e-100, 1e100)
    for form, scale, clip in zip(FORMS.values(), scales, clips, strict=True):
        X, intercept = form(hostile_table(rng, n, p)), bool(rng.integers(2))
        low, gain = np.full(p, -scale), (0.5 + rng.random(p)) / scale
        columns, w = np.stack([low, -2.0 * low, 0.3 * low, gain]), 3.0 * rng.normal(size=p + intercept)
        y, weight = np.where(rng.random(n) < 0.5, 1.0, -1.0), 10.0 ** rng.uniform(-9.0, 0.0, n)
        step, unit = 2.0 ** (np.floor(np.log2(clip)) - 30), 2.0 ** (np.floor(np.log2(clip)) - 18)

        def found(chosen, entries, step=step):
            """The sums over some rows: compiled if 0 entries are few, by NumPy otherwise."""
            monkeypatch.setattr(small_rows, "SMALL", entries)
            rows = ScaledRows(X[chosen], columns, intercept)  # noqa: B023
            norms, loss_code = rows.norms(), (loss.code, float(loss.parameter))
            share = np.minimum(clip / norms, 1.0)  # noqa: B023
            arguments = (w, y[chosen], loss_code, norms, clip, weight[chosen], step)  # noqa: B023
            return rows.gradient_sum(*arguments), rows.outer_products(share, unit)  # noqa: B023

        at = int(rng.integers(n))
        more, fewer = found(everyone, 0), found(np.delete(everyone, at), 1 << 18)
        alone = found(everyone[[at]], 1 << 18)
        for with_row, without, of_row in zip(more, fewer, alone, strict=True):
            assert np.isfinite(with_row).all()
            assert np.array_equal(with_row, without + of_row)
        for entries in (0, 1 << 18):
            before_rounding = found(everyone[[at]], entries, step=0.0)[0]
            bound = Fraction(clip) * Fraction(weight[at]) * (1 + Fraction(p + 9, 2**53))
            assert exact_square(before_rounding) <= bound**2


@pytest.mark.parametrize("kind", [np.float64, np.float32])
@pytest.mark.parametrize("weighted", [False, True])
def test_histograms_and_moments(kind, weighted, monkeypatch):
    """Entries at the edges of bins and at the ends of doubles fall where they fell, however many rows there are."""
    rng, edges = np.random.default_rng(0), [2.0**-65, 2.0**-64, 2.0**63, 2.0**64, 5e-20, 1e19]
    X = np.clip(rng.choice(HOSTILE + edges, size=(200, 4)), -3e38, 3e38 if kind is np.float32 else 1e308).astype(kind)
    data = Data(X, X[:, 0].astype(np.float64), rng.random(200) if weighted else None)
    groups, limits = [range(j, j + 1) for j in range(5)], np.array([1.0, 1e100, 1e-100, 2.0**60, 5.0])
    between = limits_between(-limits, limits)
    few = [histograms.exponent_counts(data, groups, origin) for origin in (np.zeros(5), limits)]
    few.append(moment_sums(data, between, slice(0, 5)))
    monkeypatch.setattr(small_rows, "SMALL", 0)
    many = [histograms.exponent_counts(data, groups, origin) for origin in (np.zeros(5), limits)]
    many.append(moment_sums(data, between, slice(0, 5)))
    assert all(map(np.array_equal, few, many))


@pytest.mark.parametrize("columns", [7, 8_193, 20_000])
def test_norms_of_wide_rows(columns):
    X = np.random.default_rng(columns).normal(size=(20, columns))
    norms = row_norms(X)
    for rows in (slice(0, 1), slice(7, 8), slice(18, 20)):
        assert np.array_equal(row_norms(X[rows]), norms[rows])
