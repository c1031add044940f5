"""Releases lie on a grid: multiples of its step, noise for the rounded value, nothing rounded without noise."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from discreet.kernels.gradient import clipped_gradient_sum, row_norms
from discreet.privacy import mechanisms
from discreet.privacy.mechanisms.additive import EXACT, FINEST, noisy_grid
from discreet.privacy.mechanisms.perturbations import SphericalLaplace
from discreet.privacy.random.generator import seeded_generator

MULTIPLIERS = st.floats(1e-4, 1e6)
SENSITIVITIES = st.floats(1e-250, 1e250)


def is_power_of_two(number):
    return math.frexp(number)[0] == 0.5


@given(multiplier=MULTIPLIERS, sensitivity=SENSITIVITIES, rows=st.integers(1, 10**10), entries=st.integers(1, 10**6))
def test_the_step_is_a_power_of_two_and_the_noise_covers_the_rounding(multiplier, sensitivity, rows, entries):
    grid = noisy_grid("normal", multiplier, sensitivity, math.sqrt(entries), rows)
    assert is_power_of_two(grid.step)
    assert grid.scale >= multiplier * (sensitivity + grid.step * math.sqrt(entries)) * (1 - 1e-15)
    assert grid.scale / grid.step <= 1.01 / FINEST + multiplier * math.sqrt(entries)
    assert rows * sensitivity / grid.step <= 1.01 / EXACT


@pytest.mark.parametrize("size", [5e-324, 1e-310, 1e-300])
def test_a_tiny_sensitivity_never_loses_its_noise(size):
    """The step cannot vanish; the noise is then larger than it need be, and values below a step are rounded away."""
    grid = noisy_grid("normal", 1.0, size, 1.0, 1)
    assert grid.step > 0.0
    assert grid.noise(seeded_generator(0), 100).any()
    assert grid.scale >= size


def test_noise_beyond_double_precision_is_refused():
    with pytest.raises(OverflowError, match="too large for double precision"):
        noisy_grid("normal", 1e6, 1e305, 1.0, 1)


@pytest.mark.parametrize(
    "mechanism",
    [mechanisms.Gaussian(3.0), mechanisms.Laplace(3.0), SphericalLaplace(3.0)],
    ids=lambda m: type(m).__name__,
)
def test_a_release_is_a_multiple_of_the_step_near_the_value(mechanism):
    sensitivity = mechanisms.Sensitivity(0.7, 1.1)
    value = np.random.default_rng(0).normal(size=1_000) * 100.0
    grid = mechanism.grid(sensitivity, value.size)
    released = mechanism.release(seeded_generator(1), value, sensitivity)
    counts = released / grid.step
    np.testing.assert_array_equal(counts, np.rint(counts))
    noise = mechanism.grid(sensitivity, value.size).noise(seeded_generator(1), value.size)
    assert np.abs(released - noise - value).max() <= 0.51 * grid.step


def test_without_noise_nothing_is_rounded():
    value = np.random.default_rng(0).normal(size=10)
    released = mechanisms.Gaussian(0.0).release(seeded_generator(1), value, mechanisms.Sensitivity(math.inf, math.inf))
    np.testing.assert_array_equal(released, value)


@given(
    seed=st.integers(0, 10**6),
    outputs=st.sampled_from([1, 3]),
    form=st.sampled_from(["C", "F", "sparse", "single"]),
    clip=st.sampled_from([1e-3, 0.7, 1e5]),
)
def test_clipped_sums_are_the_integer_sums_of_their_rows_in_any_order(seed, outputs, form, clip):
    """Each row's term is rounded on its own, so a permutation changes no bit, and one row moves nothing but its own."""
    rng = np.random.default_rng(seed)
    rows, columns, step = 37, 5, 2.0**-30 * 2.0 ** math.floor(math.log2(clip))
    X = rng.standard_normal((rows, columns)) * 10.0 ** rng.integers(-3, 4, (rows, 1))
    X = {"C": X, "F": np.asfortranarray(X), "sparse": sp.csr_array(X), "single": X.astype(np.float32)}[form]
    slopes = rng.standard_normal((rows, outputs))
    slopes = slopes[:, 0] if outputs == 1 else slopes
    weight, norms = rng.random(rows), row_norms(X)
    whole = clipped_gradient_sum(X, slopes, norms, clip, weight, step)
    order = rng.permutation(rows)
    again = clipped_gradient_sum(X[order], slopes[order], norms[order], clip, weight[order], step)
    np.testing.assert_array_equal(whole, again)
    terms = [
        clipped_gradient_sum(X[i : i + 1], slopes[i : i + 1], norms[i : i + 1], clip, weight[i : i + 1], step)
        for i in range(rows)
    ]
    np.testing.assert_array_equal(whole, np.sum(terms, axis=0))
    lengths = np.linalg.norm(np.reshape(terms, (rows, -1)), axis=1)
    assert (lengths <= weight * clip + 0.51 * step * math.sqrt(columns * outputs)).all()
    plain = clipped_gradient_sum(X, slopes, norms, clip, weight)
    assert np.abs(whole - plain).max() <= 0.51 * step * rows
    assert np.array_equal(np.rint(whole / step), whole / step)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("slopes", [np.empty(0), np.empty((0, 3))])
def test_no_rows_have_a_sum_of_zero(form, slopes):
    """A random batch or leaf may be empty; under add_remove an error would tell something about the number of rows."""
    found = clipped_gradient_sum(form(np.empty((0, 4))), slopes, np.empty(0), 1.0, None, 2.0**-30)
    np.testing.assert_array_equal(found, np.zeros((4,) if slopes.ndim == 1 else (3, 4)))


def test_plain_sums_depend_on_the_order_and_so_on_other_rows():
    """What the rounding is for: the same rows in another order have another sum in doubles."""
    rng = np.random.default_rng(0)
    X, slopes = rng.standard_normal((20_000, 3)), rng.standard_normal(20_000)
    order = rng.permutation(slopes.size)
    norms = row_norms(X)
    plain = [clipped_gradient_sum(X[o], slopes[o], norms[o], 1.0, None) for o in (np.arange(order.size), order)]
    assert not np.array_equal(*plain)
