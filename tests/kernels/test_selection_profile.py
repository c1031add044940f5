"""The compiled loop of the profile of selections gives the bits of the formula in NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from discreet.kernels.selection_profile import best_means


def in_numpy(slopes, intercepts, a, bounds, decay):
    best, cells = np.zeros(a.size), bounds.size - 1
    for s in range(cells):
        low, high = slice(cells - s, cells - s + a.size), slice(2 * cells - s, 2 * cells - s + a.size)
        falling = np.maximum(a * (slopes[high] - slopes[low]), 0.0)
        rising = np.maximum(decay * (intercepts[low] - intercepts[high]), 0.0)
        u = np.clip(np.sqrt(rising / np.maximum(falling, 1e-300)), bounds[s + 1], bounds[s])
        p = (1.0 - decay / u) / (1.0 - decay)
        here = p * (intercepts[low] + slopes[low] * a * u)
        np.maximum(best, here + (1.0 - p) * (intercepts[high] + slopes[high] * a * (u / decay)), out=best)
    return best


@pytest.mark.parametrize("cells", [1, 4, 64])
@pytest.mark.parametrize("step", [1e-4, 0.01, 0.3])
def test_it_is_the_formula_bit_for_bit(cells, step):
    x = step * np.arange(-300 - cells, 302 + cells)
    values = np.maximum(-np.expm1(x), 0.0) * np.random.default_rng(0).uniform(0.999, 1.0, x.size)  # chords of any kind
    slopes = np.diff(values) / np.diff(np.exp(x))
    intercepts = values[1:] - slopes * np.exp(x[1:])
    a, bounds = np.exp(step * np.arange(-300.0, 301.0)), np.exp(-step * np.arange(cells + 1.0))
    expected = in_numpy(slopes, intercepts, a, bounds, bounds[-1])
    np.testing.assert_array_equal(best_means(slopes, intercepts, a, bounds, bounds[-1]), expected)
    assert (best_means(slopes, intercepts, a, bounds[:-1], bounds[-1]) != expected).any()
