"""Private choices of vertices: the booked range, the law of the draws, and the tree of sums behind them."""

from __future__ import annotations

import math
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from discreet.privacy.mechanisms import VertexSelections, clipped_sum
from discreet.privacy.random.generator import seeded_generator
from discreet.privacy.relation import Relation
from discreet.solvers.frank_wolfe.vertices import Choice, Hull


@settings(max_examples=100)
@given(changes=st.lists(st.floats(-0.3, 0.3), min_size=5, max_size=5), seed=st.integers(0, 1000), paired=st.booleans())
def test_moved_levels_change_log_probabilities_within_the_booked_range(changes, seed, paired):
    """The bounded range that VertexSelections books, from the weights that the draws really use."""
    mechanism, sensitivity = VertexSelections(3.0, 1), clipped_sum(Relation.ZERO_OUT) * 0.3
    levels = np.random.default_rng(seed).standard_normal(5)
    logs = []
    for moved in (levels, levels + np.array(changes)):
        choice = Choice(paired, mechanism.scale(sensitivity), moved)
        up = 1.0 / (1.0 + np.exp(2.0 * choice.rate * moved)) if paired else np.ones(5)
        shares = choice.tree[:5] / choice.tree[-1]
        logs.append(np.log(np.concatenate([shares * up, shares * (1.0 - up)] if paired else [shares])))
    ratios = logs[0] - logs[1]
    assert ratios.max() - ratios.min() <= 2.0 / mechanism.multiplier + 1e-9


def test_the_booked_range_is_attained_and_cannot_be_lowered():
    mechanism, sensitivity = VertexSelections(3.0, 1), clipped_sum(Relation.REPLACE) * 0.3
    shares = []
    for moved in (np.zeros(2), np.array([0.6, -0.6])):  # a row with entries (-C, C) replaced by (C, -C)
        choice = Choice(False, mechanism.scale(sensitivity), moved)
        shares.append(np.log(choice.tree[:2]))
    ratios = shares[0] - shares[1]
    assert ratios.max() - ratios.min() == pytest.approx(2.0 / 3.0)


@pytest.mark.parametrize("paired", [True, False])
def test_draws_follow_the_exponential_mechanism(paired):
    """Chi-square at level 1e-4 a form, after updates of single weights; two thirds of the noise are rejected."""
    rng, draws, scale = np.random.default_rng(0), 20_000, 0.8
    levels = rng.standard_normal(40)
    choice = Choice(paired, scale, levels)
    for _ in range(50):
        changed = rng.choice(40, 3, replace=False)
        levels[changed] = rng.standard_normal(3)
        choice.follow_some(changed)
    uniforms = seeded_generator(1).uniform((draws, choice.uniforms))
    chosen = [choice.draw(u) for u in uniforms]
    counts = np.bincount([j + (40 if sign < 0 else 0) for j, sign in chosen], minlength=80 if paired else 40)
    utilities = np.concatenate([-levels, levels]) if paired else -levels

    def p_value(assumed):
        weights = np.exp(utilities / assumed)
        return stats.chisquare(counts, draws * weights / weights.sum()).pvalue

    assert p_value(scale) > 1e-4
    assert p_value(scale * 2 / 3) < 1e-4


@pytest.mark.parametrize("size", [1, 2, 15, 16, 17, 256, 257, 5_000])
def test_the_tree_of_sums_stays_exact_through_huge_swings(size):
    """Weights rise and fall by 1e200 and more: no rounding of a weight long gone is left in any sum."""
    rng = np.random.default_rng(size)
    levels = rng.standard_normal(size)
    choice = Choice(True, 0.01, levels)
    for _ in range(30):
        changed = rng.choice(size, min(size, 5), replace=False)
        levels[changed] = rng.standard_normal(changed.size) * rng.choice([1e-3, 1.0, 7.0])
        choice.follow_some(changed)
        fresh = Choice(True, 0.01, levels)
        for floor in range(1, choice.floors.size - 1):
            below = choice.tree[choice.floors[floor - 1] : choice.floors[floor]]
            sums = np.add.reduceat(below, np.arange(0, below.size, choice.kernel.FAN))
            here = choice.tree[choice.floors[floor] : choice.floors[floor + 1]]
            np.testing.assert_allclose(here, sums, rtol=1e-13)
        for u in rng.uniform(size=(20, choice.uniforms)):
            assert choice.draw(u) == fresh.draw(u)
    assert 1e-100 < choice.tree[-1] < 1e100


def test_weights_beyond_any_exponent_still_give_the_best_vertex():
    for paired in (True, False):
        levels = np.zeros(300)
        choice = Choice(paired, 1e-6, levels)
        for j, value in ((7, -1e6), (7, 0.0), (200, -1.0)):
            levels[j] = value
            choice.follow_some(np.array([j]))
        assert choice.draw(np.full(choice.uniforms, 0.5)) == (200, 1.0)


def test_a_draw_does_not_scan_the_vertices():
    """A thousand times more vertices may cost a few more floors of the tree, not a thousand times the work."""
    seconds = []
    for size in (2_000, 2_000_000):
        levels = np.random.default_rng(0).standard_normal(size)
        choice = Choice(True, 1.0, levels)
        uniforms = seeded_generator(0).uniform((2_000, choice.uniforms))
        choice.draw(uniforms[0])
        best = math.inf
        for _ in range(3):
            start = time.perf_counter()
            for t in range(2_000):
                choice.draw(uniforms[t])
                levels[t] += 0.1
                choice.follow_some(np.array([t]))
            best = min(best, time.perf_counter() - start)
        seconds.append(best)
    assert seconds[1] < 10 * seconds[0]


def test_directions_of_a_hull_have_norm_at_most_one_wherever_it_lies():
    rng = np.random.default_rng(0)
    for offset in (0.0, 1e6):
        hull = Hull(rng.standard_normal((6, 3)) + offset)
        norms = np.abs(hull.directions).sum(axis=1)
        assert norms.max() == pytest.approx(1.0)
        gaps = np.abs(hull.points[:, None] - hull.points).sum(axis=2)
        shrunk = np.abs(hull.directions[:, None] - hull.directions).sum(axis=2)
        assert shrunk.max() > 0.5, "a far hull must not be drowned by its offset"
        np.testing.assert_allclose(shrunk * gaps.max(), gaps * shrunk.max(), atol=1e-6)
    assert not Hull(np.full((1, 3), 5.0)).directions.any()
