"""Running sums: the matrices of the tree and of the square root, and the law of the noise that the event states.

False alarms: the statistical tests are seeded, with limits of 6 standard errors or at level 1e-4.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from discreet.privacy.mechanisms import Sensitivity
from discreet.privacy.mechanisms.additive import NoisyGrid
from discreet.privacy.mechanisms.aggregation import (
    RunningSumGaussian,
    SquareRootSums,
    TreeSums,
    nodes_above,
    row_norm,
    running_sums,
    square_root_column,
)
from discreet.privacy.random.generator import seeded_generator
from tests.running_sums import matrix, nodes_of_tree, weights_on_draws
from tests.statistics import both_arms

KINDS = ["tree", "square-root"]
SIZES = [*range(1, 301), 1024]


@pytest.mark.parametrize("kind", KINDS)
def test_a_vector_moves_a_pass_by_at_most_its_noise_over_the_multiplier_of_the_event(kind):
    """The draws have the multiplier of the event times the farthest that one vector of size 2 can move a pass."""
    mechanism, sensitivity = RunningSumGaussian(3.0, kind, 7, count=5), Sensitivity(l2=2.0, l1=9.0)
    assert mechanism.event.count == 5
    farthest = 2.0 * np.linalg.norm(matrix(kind, 7), axis=0).max()
    stated = stats.norm(scale=mechanism.event.event.noise_multiplier * farthest)
    both_arms(mechanism.grid(sensitivity, 1, 100).noise(seeded_generator(1), 4_000), stated)
    assert mechanism.deviation(sensitivity) == pytest.approx(stated.std())


@pytest.mark.parametrize("kind", KINDS)
def test_the_noise_of_a_pass_is_made_for_its_leaves_and_is_zero_without_a_multiplier(kind):
    mechanism = RunningSumGaussian(0.0, kind, 3)
    assert type(mechanism.event).__name__ == "NonPrivateDpEvent"
    rng, zero = seeded_generator(2), np.zeros(2)
    sums, grid = mechanism.begin((2,)), mechanism.grid(Sensitivity(math.inf, math.inf), 2, 3)
    assert all(not sums.next(zero, grid, rng).any() for _ in range(3))
    with pytest.raises(ValueError, match="3 running sums"):
        sums.next(zero, grid, rng)
    noisy = replace(mechanism, multiplier=1.0)
    assert noisy.begin((2,)).next(zero, noisy.grid(Sensitivity(1.0, 1.0), 2, 3), rng).all()


class Recorded:
    """A grid without noise that writes down what is released."""

    def __init__(self):
        self.values = []

    def release(self, rng, value):
        self.values.append(np.array(value))
        return value


@pytest.mark.parametrize("kind", KINDS)
def test_running_sums_are_combinations_of_what_the_matrix_releases(kind):
    """Without noise they are the sums, and what was released is the matrix times the vectors: nothing else leaves."""
    for leaves in SIZES if kind == "tree" else (1, 2, 3, 50):
        g = np.arange(1.0, leaves + 1.0) ** 2
        sums, grid = running_sums(kind, leaves, ()), Recorded()
        np.testing.assert_allclose([sums.next(v, grid, None) for v in g], np.cumsum(g), rtol=1e-12)
        np.testing.assert_allclose(grid.values, matrix(kind, leaves) @ g, rtol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_running_sums_depend_on_the_vectors_only_through_releases(kind):
    """Other vectors, but the same released numbers: the running sums are the same to the last bit."""

    class Forced:
        def __init__(self):
            self.rng = np.random.default_rng(3)

        def release(self, rng, value):
            return self.rng.normal(size=2)

    found = []
    for size in (1.0, 1e6):
        sums, grid = running_sums(kind, 13, (2,)), Forced()
        found.append([sums.next(np.full(2, size * t), grid, None) for t in range(13)])
    np.testing.assert_array_equal(*found)


def test_no_leaf_is_in_more_nodes_than_the_noise_is_made_for():
    for leaves in SIZES:
        counts = np.zeros(leaves, dtype=int)
        for first, last in nodes_of_tree(leaves):
            counts[first - 1 : last] += 1
        assert counts.max() == counts[0] == math.floor(math.log2(leaves)) + 1 == nodes_above(leaves)


@pytest.mark.parametrize("leaves", [1, 2, 3, 16, 100])
def test_the_square_root_is_one_and_its_first_column_is_the_longest(leaves):
    B = matrix("square-root", leaves)
    np.testing.assert_allclose(B @ B, np.tril(np.ones((leaves, leaves))), atol=1e-12)
    assert np.linalg.norm(B, axis=0).max() == pytest.approx(row_norm("square-root", leaves), rel=1e-12)
    np.testing.assert_allclose(weights_on_draws(SquareRootSums(leaves, (2 * leaves,))), B, atol=1e-12)


@pytest.mark.parametrize("leaves", [1, 2, 7, 64, 100])
def test_nodes_known_twice_have_the_least_variance_and_stay_unbiased(leaves):
    plain, reduced = (weights_on_draws(TreeSums(leaves, (2 * leaves,), flag)) for flag in (False, True))
    variance, less = (plain**2).sum(axis=1), (reduced**2).sum(axis=1)
    tiles = [[1 << h for h in range(20) if t >> h & 1] for t in range(1, leaves + 1)]
    np.testing.assert_allclose(variance, [len(tile) for tile in tiles])
    np.testing.assert_allclose(less, [sum(size / (2 * size - 1) for size in tile) for tile in tiles])
    # Unbiased: the combination must hold for the nodes' true sums, whatever the leaves are.
    np.testing.assert_allclose(reduced @ matrix("tree", leaves), np.tril(np.ones((leaves, leaves))), atol=1e-12)


def test_other_weights_on_nodes_known_twice_are_noticed():
    """Half and half is unbiased as well, but has more variance; weights that do not sum to 1 are biased."""

    class Mixed(TreeSums):
        def __init__(self, own, below):
            super().__init__(8, (16,))
            self.mix = own, below

        def _joined(self, own, below, variance_below):
            return self.mix[0] * own + self.mix[1] * below, 0.0

    best = (weights_on_draws(TreeSums(8, (16,))) ** 2).sum(axis=1)
    half = weights_on_draws(Mixed(0.5, 0.5))
    assert ((half**2).sum(axis=1)[[1, 3, 7]] > best[[1, 3, 7]] + 0.01).all()
    np.testing.assert_allclose(half @ matrix("tree", 8), np.tril(np.ones((8, 8))), atol=1e-12)
    assert not np.allclose(weights_on_draws(Mixed(0.5, 0.6)) @ matrix("tree", 8), np.tril(np.ones((8, 8))))


def sampled_deviation(sums, runs=4_000, seed=0):
    rng, grid = seeded_generator(seed), NoisyGrid(2.0**-30, 1.0, "normal")
    last = np.zeros(0)
    for _ in range(sums.leaves):
        last = sums.next(np.zeros(runs), grid, rng)
    return last.std()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("leaves", [1, 2, 7, 32])
def test_the_noise_has_its_law_and_a_wrong_law_is_noticed(kind, leaves):
    runs = 4_000
    found = sampled_deviation(running_sums(kind, leaves, (runs,)))
    if kind == "tree":
        wanted = math.sqrt(sum((1 << h) / ((2 << h) - 1) for h in range(8) if leaves >> h & 1))
    else:
        wanted = row_norm(kind, leaves)
    error = wanted / math.sqrt(2 * runs)
    assert abs(found - wanted) < 6 * error
    assert abs(0.8 * found - wanted) > 6 * error


@pytest.mark.parametrize("leaves", [128, 1024, 16_384])
def test_the_square_root_needs_much_less_noise_than_the_plain_tree(leaves):
    ones = np.array([t.bit_count() for t in range(1, leaves + 1)])
    tree = row_norm("tree", leaves) * math.sqrt(ones.mean())
    square = np.cumsum(square_root_column(leaves) ** 2)
    root = row_norm("square-root", leaves) * math.sqrt(square.mean())
    assert 2.15 <= tree / root <= 2.6  # root mean square over the sums: 2.16, 2.39, 2.57


def test_more_leaves_than_planned_are_refused():
    for kind in KINDS:
        sums = running_sums(kind, 2, (1,))
        sums.next(np.zeros(1), Recorded(), None), sums.next(np.zeros(1), Recorded(), None)
        with pytest.raises(ValueError, match="2 running sums"):
            sums.next(np.zeros(1), Recorded(), None)
