"""Poisson samples by a key: the same members however they are asked for, and the law of independent trials."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from discreet.privacy.random import generator
from discreet.privacy.random.generator import PoissonSample, seeded_generator, stretch_length

LEVEL = 1e-6


@given(
    n=st.integers(1, 400),
    rate=st.one_of(st.floats(1e-3, 1.0), st.just(1.0)),
    steps=st.integers(1, 6),
    cuts=st.lists(st.integers(0, 400), max_size=6),
    members=st.sampled_from([1, 7, 15 << 10]),
)
@settings(deadline=None, max_examples=60)
def test_members_do_not_depend_on_how_rows_are_cut(n, rate, steps, cuts, members):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(generator, "MEMBERS", members)  # stretches of few trials as well
        sample = pickle.loads(pickle.dumps(seeded_generator(n).poisson_sample(n, rate)))
        indptr, indices = sample.batches(steps)
        ends = sorted({0, n, *(cut for cut in cuts if cut < n)})
        for step in range(steps):
            parts = [sample.members(step, *ends[k : k + 2]) for k in range(len(ends) - 1)]
            np.testing.assert_array_equal(np.concatenate(parts), indices[indptr[step] : indptr[step + 1]])


@pytest.mark.parametrize("members", [3, 15 << 10])
def test_the_law_is_that_of_independent_trials(monkeypatch, members):
    """Counts of rows and of neighbours, at stretches that end within a step too; false alarm 4e-6."""
    monkeypatch.setattr(generator, "MEMBERS", members)
    n, rate, steps = 50, 0.2, 8_000
    indptr, indices = PoissonSample(b"k" * 32, n, rate).batches(steps)
    joined = np.zeros((steps, n), dtype=bool)
    joined[np.repeat(np.arange(steps), np.diff(indptr)), indices] = True
    assert rate_pvalue(joined.sum(), steps * n, rate) > LEVEL
    assert rate_pvalue(joined.sum(), steps * n, 0.97 * rate) < LEVEL
    ends = np.arange(1, steps * n // stretch_length(rate)) * stretch_length(rate) if members == 3 else np.array([1])
    flat = joined.ravel()
    assert rate_pvalue(flat[ends].sum(), ends.size, rate) > LEVEL  # the first trial of a stretch
    assert rate_pvalue((flat[ends] & flat[ends - 1]).sum(), ends.size, rate**2) > LEVEL  # and its neighbour
    each = joined.sum(axis=0)
    assert stats.chi2.sf(((each - steps * rate) ** 2).sum() / (steps * rate * (1 - rate)), n) > LEVEL


def rate_pvalue(found, trials, rate):
    return stats.binomtest(int(found), int(trials), rate).pvalue


def test_keys_and_steps_give_other_samples():
    one, other = (PoissonSample(key * 32, 10_000, 0.1) for key in (b"a", b"b"))
    samples = [one.members(0, 0, 10_000), one.members(1, 0, 10_000), other.members(0, 0, 10_000)]
    for k in range(3):
        shared = np.intersect1d(samples[k], samples[k - 1]).size
        assert 50 < shared < 150  # 100 +- 10 if independent; about 1,000 if equal
    assert "a" not in repr(one).replace("PoissonSample", "").replace("rate", "")


@pytest.mark.parametrize(("start", "stop", "step"), [(-1, 5, 0), (0, 11, 0), (6, 5, 0), (0, 5, -1), (0, 5, 1 << 60)])
def test_rows_that_do_not_exist_have_no_members(start, stop, step):
    with pytest.raises(ValueError, match="there are 10 rows"):
        PoissonSample(bytes(32), 10, 0.5).members(step, start, stop)


def test_far_steps_and_rare_rows():
    sample = PoissonSample(bytes(32), 10**9, 1e-9)
    found = [sample.members(step, 0, 10**9).size for step in (0, 10**8, 10**9)]
    assert sum(found) < 30
    assert sample.members(10**9, 10, 20).size <= 10


def test_the_last_of_more_rows_than_doubles_can_count_is_as_rare_as_any():
    """2^53 + 1 is no double: a gap that was cut to it once made a member of the last row."""
    n = 2**53 + 1
    samples = [seeded_generator(seed).poisson_sample(n, 1e-18).members(0, 0, n) for seed in range(20)]
    assert sum(found.size for found in samples) <= 3  # 0.18 expected; more than 3 with probability 4e-5
