"""Generators: no noise is ever drawn twice, seeds reproduce, and everything else is refused."""

from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys
import threading
import warnings

import numpy as np
import pytest

from discreet._common.exceptions import InsecureRandomnessWarning
from discreet.privacy.random import generator
from discreet.privacy.random.generator import generator_from, secure_generator, seeded_generator
from tests.forks import in_child


def words_of(rng, count=50_000):
    return np.frombuffer(rng.bytes(8 * count), np.uint64)


def repeated_words(generators):
    # Chance of any repetition among 300,000 uniform words: below 3e-9.
    words = np.concatenate([words_of(rng) for rng in generators])
    return words.size - np.unique(words).size


def test_generators_never_share_words_unless_they_share_a_seed():
    parent = seeded_generator(9)
    assert repeated_words([parent, *parent.spawn(3), seeded_generator(10), secure_generator()]) == 0
    assert repeated_words([secure_generator(), secure_generator(), *secure_generator().spawn(2)]) == 0
    assert repeated_words([seeded_generator(9), seeded_generator(9)]) == 50_000


def test_the_key_is_changed_and_the_old_generator_does_not_go_on(monkeypatch):
    def pieces():
        rng = seeded_generator(12)
        return [rng.bytes(8_000) for _ in range(12)]

    one_key = pieces()
    monkeypatch.setattr(generator, "BYTES_PER_KEY", 40_000)
    changed = pieces()
    assert [a == b for a, b in zip(one_key, changed, strict=True)] == [True] * 5 + [False] * 7
    assert len(set(one_key + changed)) == 12 + 7


@pytest.mark.parametrize("attempt", [copy.copy, copy.deepcopy, pickle.dumps])
@pytest.mark.parametrize("make", [secure_generator, lambda: seeded_generator(1)])
def test_copies_are_refused(attempt, make):
    with pytest.raises(TypeError, match=r"spawn\(\)"):
        attempt(make())


needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
allow_fork = pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")


@needs_fork
@allow_fork
def test_a_secure_generator_takes_a_new_key_after_a_fork(monkeypatch):
    monkeypatch.setattr(os, "getpid", lambda: 1)  # the child may have the number of its parent, in a container
    rng = secure_generator()
    rng.bytes(8)
    children = [in_child(lambda: rng.bytes(64)) for _ in range(2)]
    own = rng.bytes(64)
    assert all(len(child) == 64 for child in children)
    assert len({own, *children}) == 3
    # Without a new key the child would go on in the parent's buffer: this is what it would have drawn.
    old_key = seeded_generator(1)
    old_key._forget_key = lambda: None
    assert in_child(lambda: old_key.bytes(64)) == old_key.bytes(64)


@needs_fork
@allow_fork
def test_a_seeded_generator_refuses_to_draw_after_a_fork():
    rng = seeded_generator(1)
    assert in_child(lambda: rng.bytes(8)).startswith(b"RuntimeError: a seeded RandomGenerator")
    assert len(rng.bytes(8)) == 8


@needs_fork
@allow_fork
def test_a_lock_held_by_another_thread_does_not_block_the_child():
    rng, held, release = secure_generator(), threading.Event(), threading.Event()

    def hold():
        with rng._lock:
            held.set()
            release.wait()

    holder = threading.Thread(target=hold)
    holder.start()
    held.wait()
    try:
        assert len(in_child(lambda: rng.bytes(8))) == 8
    finally:
        release.set()
        holder.join()


def test_threads_share_a_generator_without_repeating_words():
    rng, found = seeded_generator(24), []

    def work():
        found.extend(rng.bytes(80) for _ in range(2_000))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    alone = seeded_generator(24)
    # Together the threads received the very pieces that one thread would have received.
    assert sorted(found) == sorted(alone.bytes(80) for _ in range(8_000))


EVERYTHING = """
import hashlib, numpy as np
from discreet.privacy.random.generator import seeded_generator
s = seeded_generator(2024)
parts = [s.normal((3, 5)), s.laplace(7), s.gumbel(20_000), s.uniform(4), s.integers(3 << 60, 50),
         s.permutation(600), s.choice([0.2, 0.8], 9), *s.poisson_batches(50, 0.1, 7)]
parts += [child.normal(3) for child in s.spawn(2)]
digest = hashlib.sha256(b"".join(p.tobytes() for p in parts) + s.bytes(5)).hexdigest()
"""


def test_a_seed_gives_the_same_numbers_in_a_new_process():
    here: dict[str, str] = {}
    exec(EVERYTHING, here)
    command = [sys.executable, "-c", EVERYTHING + "print(digest)"]
    there = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    assert there == here["digest"]
    again: dict[str, str] = {}
    exec(EVERYTHING.replace("2024", "2025"), again)
    assert again["digest"] != there


def test_integers_and_numpy_generators_give_seeded_generators_with_a_warning():
    for state in (7, np.int64(7), 2**100, np.random.default_rng(1), np.random.RandomState(1)):
        with pytest.warns(InsecureRandomnessWarning, match="seed") as caught:
            assert not generator_from(state).secure
        assert len(caught) == 1
        assert caught[0].filename == __file__
    with pytest.warns(InsecureRandomnessWarning):
        same = [generator_from(state).bytes(16) for state in (7, np.uint8(7))]
    assert same[0] == same[1] == seeded_generator(7).bytes(16)
    with pytest.warns(InsecureRandomnessWarning):
        pair = [generator_from(np.random.default_rng(seed)).bytes(16) for seed in (1, 1)]
    assert pair[0] == pair[1]


def test_none_is_secure_and_a_generator_is_itself_without_a_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert generator_from(None).secure
        rng = seeded_generator(1)
        assert generator_from(rng) is rng
    assert "key" not in repr(rng)


@pytest.mark.parametrize("bad", [-1, 1.0, "1", True, [1], np.random])
def test_other_random_states_are_refused_in_one_line(bad):
    with pytest.raises(TypeError, match="random_state must be None, an integer >= 0"):
        generator_from(bad)


@pytest.mark.parametrize("bad", [-1, 1.5, None, False])
def test_other_seeds_are_refused(bad):
    with pytest.raises(TypeError, match="seed must be an integer"):
        seeded_generator(bad)


@pytest.mark.parametrize("size", [0, 1, 5, (3, 4), (0, 2), (), np.int64(6), 40_001])
@pytest.mark.parametrize("name", ["normal", "laplace", "gumbel", "uniform"])
def test_shapes(name, size):
    assert getattr(seeded_generator(1), name)(size).shape == np.empty(size).shape


def test_out_is_filled_in_place_and_checked():
    out = np.zeros((2, 30_000))
    returned = seeded_generator(1).normal((2, 30_000), out=out)
    assert returned is out
    assert np.array_equal(out, seeded_generator(1).normal((2, 30_000)))
    frozen = np.zeros(4)
    frozen.flags.writeable = False
    for bad in (np.zeros(5), np.zeros(4, np.float32), np.zeros(8)[::2], frozen):
        with pytest.raises(ValueError, match="out must be"):
            seeded_generator(1).normal(4, out=bad)


def test_importing_the_module_does_not_import_numba_or_openssl():
    code = "import sys, discreet.privacy.random.generator; print({'numba', 'cryptography'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
