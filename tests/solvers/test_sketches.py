"""The sketches: unbiased, of the law that the derivations assume, and with steps that are safe and no shorter.

Statistical tests have two arms and fixed seeds; were the seeds redrawn, one run of this file in 1,000 would raise
a false alarm.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import stats

from discreet.privacy.random.generator import seeded_generator
from discreet.solvers.sketched.sketches import Independent, Nice, Partition, Sets, Singletons, complete_partition

SKETCHES = {
    "uniform": Singletons(6),
    "importance": Singletons(6, np.array([1.0, 2.0, 3.0, 4.0, 5.0, 1e-3])),
    "nice": Nice(6, 3),
    "independent": Independent(6, 2),
    "blocks": Partition(((0, 3), (1,), (5, 2, 4))),
    "proportional blocks": Partition(((0, 3), (1,), (5, 2, 4)), np.array([1.0, 0.5, 2.0, 1.0, 0.1, 0.2])),
    "full": Partition((tuple(range(6)),)),
}


def held(sets, coordinates):
    """One row per set: which coordinates it holds."""
    result = np.zeros((sets.starts.size - 1, coordinates))
    np.add.at(result, (np.repeat(np.arange(len(result)), sets.sizes), sets.members), 1.0)
    return result


@pytest.mark.parametrize("name", SKETCHES)
def test_sketches_are_unbiased(name):
    """How often each coordinate is held is binomial with p_j: 42 tests at level 1e-5, and 1.25 p_j is rejected."""
    sketch, count = SKETCHES[name], 40_000
    sets = sketch.draw(seeded_generator(7), count)
    inside = held(sets, 6)
    assert sets.starts[-1] == sets.members.size
    assert (sets.sizes > 0).all(), "no set is empty"
    assert inside.max() == 1.0, "no coordinate is twice in a set"
    p = sketch.probabilities()
    assert sketch.mean_size == pytest.approx(p.sum())
    for hits, chance in zip(inside.sum(axis=0).astype(int), p, strict=True):
        if chance == 1.0:
            assert hits == count
            continue
        assert stats.binomtest(int(hits), count, chance).pvalue > 1e-5
        if chance > 0.05:
            assert stats.binomtest(int(hits), count, min(0.99, 1.25 * chance)).pvalue < 1e-5


def law_of(sketch):
    """Every set with its probability, by enumeration; checked against draws elsewhere."""
    d = sketch.coordinates
    if isinstance(sketch, Singletons):
        return [((j,), p) for j, p in enumerate(sketch.probabilities())]
    if isinstance(sketch, Partition):
        return list(zip(sketch.blocks, sketch._chances(), strict=True))
    if isinstance(sketch, Nice):
        sets = list(itertools.combinations(range(d), sketch.size))
        return [(S, 1.0 / len(sets)) for S in sets]
    sets = [S for size in range(1, d + 1) for S in itertools.combinations(range(d), size)]
    chances = np.array([sketch.rate ** len(S) * (1.0 - sketch.rate) ** (d - len(S)) for S in sets])
    return list(zip(sets, chances / chances.sum(), strict=True))


@pytest.mark.parametrize("name", SKETCHES)
def test_sets_have_the_law_that_the_derivations_assume(name):
    """Chi-square over all sets at level 1e-5; a law tilted by up to a fifth is rejected."""
    sketch, count = SKETCHES[name], 40_000
    law = law_of(sketch)
    inside = held(sketch.draw(seeded_generator(8), count), 6) @ 2 ** np.arange(6)
    found = np.array([(inside == sum(2**j for j in S)).sum() for S, _ in law])
    assert found.sum() == count
    np.testing.assert_allclose(sum(p * held(Sets(np.array([0, len(S)]), np.array(S)), 6)[0] for S, p in law),
                               sketch.probabilities())  # fmt: skip
    if len(law) > 1:
        expected = count * np.array([p for _, p in law])
        assert stats.chisquare(found, expected).pvalue > 1e-5
        with_linear_term = expected * np.linspace(0.8, 1.2, len(law))
        assert stats.chisquare(found, count * with_linear_term / with_linear_term.sum()).pvalue < 1e-5


def expected_square(sketch, rows):
    """E over S of sum_i Z_iS' Z_iS, zero outside S: the matrix whose quadratic form must stay below."""
    total = np.zeros((sketch.coordinates, sketch.coordinates))
    for S, chance in law_of(sketch):
        index = np.ix_(S, S)
        total[index] += chance * (rows.T @ rows)[index]
    return total


def is_safe(sketch, rows, inflation):
    """E f(w + h_S) <= f + <p grad, h> + the separable bound, for all h: a matrix inequality."""
    bound = np.diag(sketch.probabilities() * inflation * (rows**2).sum(axis=0))
    return np.linalg.eigvalsh(bound - expected_square(sketch, rows)).min() >= -1e-9 * np.abs(bound).max()


@pytest.mark.parametrize("support", [2, 4, 6])
@pytest.mark.parametrize("name", SKETCHES)
def test_inflated_steps_are_safe_and_plain_ones_are_not(name, support):
    """The inequality (*) of the guarantee page by enumeration, on random rows and on the worst ones."""
    sketch = SKETCHES[name]
    inflation = sketch.inflation(support)
    rng = np.random.default_rng(support)
    for _ in range(20):
        rows = rng.standard_normal((8, 6)) * 10.0 ** rng.integers(-2, 3, 6)
        for row in rows:
            row[rng.permutation(6)[support:]] = 0.0
        assert is_safe(sketch, rows, inflation)
    worst = [held(Sets(np.array([0, support]), np.array(S)), 6) for S in itertools.combinations(range(6), support)]
    assert all(is_safe(sketch, rows, inflation) for rows in worst)
    if isinstance(sketch, Singletons):
        assert (inflation == 1.0).all()
        return
    assert not all(is_safe(sketch, rows, np.ones(6)) for rows in worst)
    assert not all(is_safe(sketch, rows, 0.98 * inflation) for rows in worst), "the constants are sharp"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: complete_partition(((0, 1),), 3, True), "exactly once, and 3, the intercept"),
        (lambda: complete_partition(((0, 1), (1, 2)), 3, False), "0 to 2 exactly once\\.$"),
        (lambda: complete_partition(((0, 1), (2, 3)), 3, False), "exactly once"),
        (lambda: complete_partition(((0, 1), (2,), (3,), (3,)), 3, True), "exactly once"),
        (lambda: complete_partition(((0, 1, 2), ()), 3, False), "empty block"),
        (lambda: complete_partition(((0, 1, 1.5), (2,)), 3, False), "exactly once"),
        (lambda: complete_partition((0, 1, 2), 3, False), "list of lists"),
        (lambda: complete_partition((("a",),), 3, False), "list of lists"),
    ],
)
def test_blocks_that_are_no_partition_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_an_unlisted_intercept_gets_a_block_of_its_own():
    assert complete_partition([[2, 0], [1]], 3, True) == ((2, 0), (1,), (3,))
    assert complete_partition(((2, 3), (0, 1)), 3, True) == ((2, 3), (0, 1))
    assert complete_partition(((2,), (0, 1)), 3, False) == ((2,), (0, 1))
