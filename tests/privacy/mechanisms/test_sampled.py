"""Sampled mechanisms: batches have the rate and sums the noise that the event states.

Tests at level 1e-4 with fixed seeds; a doubled rate and 2/3 of the noise are rejected.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from discreet.privacy.mechanisms import AnchoredGaussian, FixedSizeGaussian, PoissonGaussian, anchored_ratio
from discreet.privacy.random.generator import seeded_generator
from discreet.privacy.relation import Relation
from tests.statistics import LEVEL, both_arms

ROWS, STEPS, CLIP = 200, 300, 0.7
POISSON = PoissonGaussian(3.0, 0.05, STEPS)
FIXED = {batch: FixedSizeGaussian(3.0, ROWS, batch, STEPS) for batch in (1, 12)}


def members(mechanism, seed):
    """Which row is in which batch, (steps, rows)."""
    indptr, indices = mechanism.batches(seeded_generator(seed), ROWS, STEPS)
    assert indptr.size == STEPS + 1
    inside = np.zeros((STEPS, ROWS), dtype=int)
    np.add.at(inside, (np.repeat(np.arange(STEPS), np.diff(indptr)), indices), 1)
    return inside


def p_value_of_rate(inside, rate):
    """Every row is in every batch independently, with this probability: the numbers of batches of the rows."""
    expected, variance = STEPS * rate, STEPS * rate * (1.0 - rate)
    statistic = float(((inside.sum(axis=0) - expected) ** 2).sum() / variance)
    below = stats.chi2.cdf(statistic, ROWS)
    return 2.0 * min(below, 1.0 - below)


def test_poisson_batches_have_the_rate_of_the_event():
    stated = POISSON.event.event.sampling_probability
    inside = members(POISSON, 1)
    assert inside.max() == 1
    assert p_value_of_rate(inside, stated) > LEVEL
    assert p_value_of_rate(members(replace(POISSON, rate=2 * stated), 1), stated) < LEVEL


def test_rows_join_a_poisson_batch_independently_of_each_other():
    """The sizes of the batches are binomial; batches of one size, or rows that come in pairs, would be rejected."""

    def p_value(sizes):
        deviations = (sizes - ROWS * POISSON.rate) ** 2 / (ROWS * POISSON.rate * (1.0 - POISSON.rate))
        below = stats.chi2.cdf(float(deviations.sum()), STEPS)
        return 2.0 * min(below, 1.0 - below)

    sizes = members(POISSON, 2).sum(axis=1)
    assert p_value(sizes) > LEVEL
    assert p_value(np.full(STEPS, ROWS * POISSON.rate)) < LEVEL
    paired = members(POISSON, 2)[:, : ROWS // 2].sum(axis=1) * 2
    assert p_value(paired) < LEVEL


@pytest.mark.parametrize("batch", FIXED)
def test_batches_of_fixed_size_are_uniform_sets_of_the_size_of_the_event(batch):
    mechanism = FIXED[batch]
    sampled = mechanism.event.event
    assert (sampled.source_dataset_size, sampled.sample_size) == (ROWS, batch)
    inside = members(mechanism, 3)
    assert inside.max() == 1
    assert (inside.sum(axis=1) == sampled.sample_size).all()
    statistic = stats.chisquare(inside.sum(axis=0)).statistic * (ROWS - 1) / (ROWS - batch)
    assert stats.chi2.sf(statistic, ROWS - 1) > LEVEL
    one_half = np.append(2 * inside.sum(axis=0)[: ROWS // 2], np.zeros(ROWS // 2))  # half of the rows are never drawn
    assert stats.chisquare(one_half).pvalue < LEVEL


def test_a_batch_of_fixed_size_is_refused_for_another_number_of_rows():
    """The rate that is priced is batch / rows: fewer rows would be drawn more often."""
    for rows in (ROWS - 1, ROWS + 1):
        with pytest.raises(ValueError, match="priced for 200 rows"):
            FIXED[12].batches(seeded_generator(4), rows, 1)


@pytest.mark.parametrize(("mechanism", "size"), [(POISSON, CLIP), (FIXED[1], 2 * CLIP), (FIXED[12], 2 * CLIP)])
def test_sums_get_the_noise_of_the_event(mechanism, size):
    """The multiplier is std / C for Poisson batches and std / (2 C) for batches of fixed size."""
    noise = mechanism.grid(CLIP, 20).noise(seeded_generator(5), (STEPS, 4, 5))
    assert noise.shape == (STEPS, 4, 5)
    stated = mechanism.event.event.event.noise_multiplier
    both_arms(noise, stats.norm(scale=stated * size))


def test_the_parts_of_an_anchored_mechanism_are_those_of_its_event():
    mechanism = AnchoredGaussian(2.0, 0.5, 0.1, anchors=3, steps=4)
    full, sampled = mechanism.event.events
    assert mechanism.full.event == full
    assert mechanism.sampled.event == sampled
    assert (full.count, full.event.noise_multiplier) == (3, 2.0)
    assert (sampled.count, sampled.event.sampling_probability) == (12, 0.1)
    assert sampled.event.event.noise_multiplier == 1.0


@pytest.mark.parametrize("relation", list(Relation))
def test_the_ratio_of_an_anchored_mechanism_divides_the_cost_as_asked(relation):
    """By its rule of thumb: a full sum costs 1 / z^2, a sampled one (rate D / (ratio z))^2."""
    rate, steps, share = 0.05, 10, 0.7
    ratio = anchored_ratio(relation, rate, steps, share)
    distance = 2.0 if relation is Relation.REPLACE else 1.0
    assert 1.0 / (1.0 + steps * (rate * distance / ratio) ** 2) == pytest.approx(share)


@pytest.mark.parametrize("mechanism", [POISSON, *FIXED.values()], ids=str)
def test_without_noise_the_event_is_not_private_and_there_is_none_even_without_a_clip(mechanism):
    noiseless = replace(mechanism, multiplier=0.0)
    assert type(noiseless.event).__name__ == "NonPrivateDpEvent"
    assert not noiseless.grid(math.inf, 2).noise(seeded_generator(6), (3, 2)).any()
