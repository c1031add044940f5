"""The elementary functions, against 160-bit arithmetic, inside loops with looser flags than their own."""

from __future__ import annotations

import math
import platform

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import jit, njit

from discreet.kernels import sampling, vectormath

EDGES = np.array([0, 1, 2, 2**62 - 1, 2**62, 2**63 - 1, 2**63, 3 << 62, (3 << 62) - 1, 2**64 - 2, 2**64 - 1], "u8")


def looped(function):
    """The function inside somebody else's loop, with looser flags than its own."""

    @njit(fastmath={"reassoc", "contract", "arcp", "nsz"}, error_model="numpy")
    def loop(values, out):
        for i in range(values.size):
            out[i] = function(values[i])

    return loop


exp_loop, log_loop = looped(vectormath.exp_fast), looped(vectormath.log_fast)
sigmoid_loop = looped(vectormath.minus_sigmoid)


@njit(fastmath={"reassoc", "contract", "arcp", "nsz"})
def normal_loop(radius_words, angle_words, cosines, sines):
    for i in range(radius_words.size):
        cosines[i], sines[i] = vectormath.normal_pair_from_bits(radius_words[i], angle_words[i])


def applied(loop, values):
    out = np.empty(values.size)
    loop(values, out)
    return out


def worst_relative_error(found, exact, values):
    with mpmath.workprec(160):
        errors = [abs(float(f / exact(v) - 1)) for f, v in zip(map(float, found), values, strict=True) if exact(v) != 0]
    return max(errors)


rng = np.random.default_rng(5)
SPREAD = np.concatenate([rng.uniform(-699, 699, 1_500), rng.normal(size=500), rng.normal(size=200) * 1e-9])


def test_exponential_is_accurate():
    assert worst_relative_error(applied(exp_loop, SPREAD), lambda x: mpmath.exp(mpmath.mpf(float(x))), SPREAD) < 4e-16


def test_sigmoid_is_accurate():
    values = SPREAD[np.abs(SPREAD) < 695.0]
    with mpmath.workprec(160):
        for x, found in zip(values.tolist(), applied(sigmoid_loop, values).tolist(), strict=True):
            error = abs(float(found * (1 + mpmath.exp(mpmath.mpf(x))) + 1))
            assert error < 1e-15 * (1.0 + abs(x))  # the argument reduction loses digits of large arguments


@given(st.floats())
@settings(deadline=None, max_examples=300)
def test_sigmoid_of_any_float_lies_in_its_range_and_saturates(x):
    found = applied(sigmoid_loop, np.full(9, x))
    assert (found == found[0]).all()
    assert -1.0 <= found[0] < 0.0
    clipped = 695.0 if math.isnan(x) else min(max(x, -695.0), 695.0)
    assert found[0] == pytest.approx(-1.0 / (1.0 + math.exp(clipped)), rel=1e-12, abs=0.0)


def test_logarithm_is_accurate_everywhere_and_close_to_one():
    near_one = 1.0 + rng.normal(size=1_000) * 0.2 * 10.0 ** rng.uniform(-15, 0, 1_000)
    values = np.concatenate([np.exp(SPREAD), near_one[near_one > 0]])
    assert worst_relative_error(applied(log_loop, values), lambda x: mpmath.log(mpmath.mpf(float(x))), values) < 4e-16


@given(st.floats(allow_nan=False))
@settings(deadline=None, max_examples=300)
def test_exponential_of_any_float_is_finite_positive_and_saturates(x):
    found = applied(exp_loop, np.full(9, x))
    assert np.isfinite(found).all()
    assert (found == found[0]).all()
    assert found[0] == pytest.approx(math.exp(min(max(x, -700.0), 700.0)), rel=1e-15)


def test_nan_survives():
    assert np.isnan(applied(exp_loop, np.array([0.0, math.nan, 1.0]))).tolist() == [False, True, False]


def spread_words():
    """Words of every magnitude, from both ends of the range, and those where the method changes."""
    sizes = (2.0 ** rng.uniform(0, 63, 500)).astype(np.uint64)
    corners = [np.uint64(3 << 62) + np.arange(50, dtype="u8"), np.uint64(3 << 62) - np.arange(50, dtype="u8")]
    return np.concatenate([EDGES, sizes, ~sizes, *corners, rng.integers(0, 2**64, 500, dtype="u8")])


def test_exponential_draw_is_accurate_at_both_ends():
    words = spread_words()

    def exact(word):
        return -mpmath.log((mpmath.mpf(int(word)) + 0.5) / mpmath.mpf(2) ** 64)

    assert worst_relative_error(applied(looped(vectormath.exponential_from_bits), words), exact, words) < 6e-16


def test_gumbel_and_laplace_draws_are_accurate():
    words = spread_words()
    gumbel, laplace = applied(sampling.fill_gumbel, words), applied(sampling.fill_laplace, words)
    with mpmath.workprec(160):
        for i, word in enumerate(words.tolist()):
            exact = -mpmath.log(-mpmath.log((mpmath.mpf(word) + 0.5) / mpmath.mpf(2) ** 64))
            assert abs(float(gumbel[i] - exact)) < 1e-14
            size = -mpmath.log((mpmath.mpf(word % 2**63) + 0.25) / mpmath.mpf(2) ** 63)
            assert abs(float(laplace[i] / (-size if word >> 63 else size) - 1)) < 1e-15


def test_normal_pair_is_accurate():
    words = spread_words()
    angles = rng.permutation(words)
    cosines, sines = np.empty(words.size), np.empty(words.size)
    normal_loop(words, angles, cosines, sines)
    with mpmath.workprec(160):
        for i, (word, angle) in enumerate(zip(words.tolist(), angles.tolist(), strict=True)):
            radius = mpmath.sqrt(-2 * mpmath.log((mpmath.mpf(word) + 0.5) / mpmath.mpf(2) ** 64))
            place = (mpmath.mpf((angle % 2**62) >> 10) + 0.5) / mpmath.mpf(2) ** 52 - 0.5
            turn = ((angle >> 62) + place) * mpmath.pi / 2
            assert abs(float(cosines[i] / (radius * mpmath.cos(turn)) - 1)) < 1e-15
            assert abs(float(sines[i] / (radius * mpmath.sin(turn)) - 1)) < 1e-15


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="reads x86 assembly")
def test_the_loops_are_vectorised():
    words, out = spread_words(), np.empty(10)
    loops = [
        (sampling.fill_normal, "sqrtpd"),
        (sampling.fill_laplace, "divpd"),
        (sampling.fill_gumbel, "divpd"),
    ]
    for kernel, packed in loops:
        # Compiled afresh, as Numba shows no assembly of cached code.
        fresh = jit(**kernel.targetoptions)(kernel.py_func)
        fresh(words, out)
        assert packed in next(iter(fresh.inspect_asm().values()))
    sigmoid_loop(SPREAD, np.empty(SPREAD.size))
    assert "divpd" in next(iter(sigmoid_loop.inspect_asm().values()))
    careless = looped(math.exp)
    careless(SPREAD, np.empty(SPREAD.size))
    assert "mulpd" not in next(iter(careless.inspect_asm().values()))
