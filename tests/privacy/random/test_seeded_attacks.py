"""Attacks on seeded noise: one secret seed for two plans, copies of a NumPy generator, forks, signal handlers.

Each attack has two arms: it succeeds against a planted fault (streams keyed by the seed alone, a lock that a thread
may enter twice, no check of the process) and fails against the library.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import warnings

import numpy as np
import pytest
from scipy import stats
from sklearn.base import clone

from discreet import InsecureRandomnessWarning, LogisticRegression
from discreet.preprocessing import private_means
from discreet.privacy.random import generator
from discreet.privacy.random.generator import DrawLock, RandomGenerator, _Turn, secure_generator, seeded_generator
from tests.forks import fork_below_python, in_child

TRIALS, ROWS, COLUMNS = 200, 2_000, 8  # so many rows that no mean is cut off at the bounds
LEVEL = 1e-6  # false-alarm rate of each statistical test with a fresh seed
ALLOWED = np.exp(0.6) / (1.0 + np.exp(0.6))  # best share of right guesses against epsilon 0.2 + 0.4


def candidates():
    """Two tables that differ in one row; the attacker knows both and wants to know which one was used."""
    first = np.random.default_rng(5).uniform(-0.5, 0.5, (ROWS, COLUMNS))
    second = first.copy()
    second[0] = -second[0]
    return first, second


# What differs between the two releases. The noise of a release is proportional to radius / epsilon, nearly.
PLANS = {
    "epsilon": ({"epsilon": 0.2, "delta": 0.0}, {"epsilon": 0.4, "delta": 0.0}, 2.0),
    "bounds": ({"epsilon": 0.3, "bounds": (-2.0, 2.0)}, {"epsilon": 0.3}, 2.0),
}


def right_guesses(first_plan, second_plan, ratio):
    """In how many trials the attacker names the table, from two releases whose noises have this ratio."""
    tables, right = candidates(), 0
    means = [table.mean(axis=0) for table in tables]
    for trial in range(TRIALS):
        used = trial % 2
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", InsecureRandomnessWarning)
            seed = 1_000_003 + trial  # secret: the attacker does not use it
            one, two = (
                private_means(tables[used], **{"bounds": (-1.0, 1.0), **plan}, random_state=seed).values
                for plan in (first_plan, second_plan)
            )
        # Were the noises proportional, those left over for the true table would be so too.
        misfit = [np.abs((one - mean) - ratio * (two - mean)).sum() for mean in means]
        right += int(np.argmin(misfit)) == used
    return right


@pytest.mark.parametrize("difference", PLANS)
def test_one_secret_seed_for_two_plans_does_not_identify_the_table(difference, monkeypatch):
    guesses = right_guesses(*PLANS[difference])
    assert stats.binomtest(guesses, TRIALS, ALLOWED, alternative="greater").pvalue > LEVEL
    monkeypatch.setattr(RandomGenerator, "rekey", lambda self, context: None)  # the seed alone is the key
    assert right_guesses(*PLANS[difference]) == TRIALS


def fitted(model, seed=3):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, (300, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InsecureRandomnessWarning)
        return model.fit(X, X[:, 0] > 0.0)


@pytest.mark.filterwarnings("ignore:the noise in a prediction")  # a small table, for which that is not the point
def test_clones_with_one_numpy_generator_draw_other_noise_for_another_plan(monkeypatch):
    """`clone` deep-copies the generator, so that every point of a grid search starts from the same state."""
    original = LogisticRegression(
        solver="output-perturbation", alpha=0.1, bounds=(-1, 1), classes=[0, 1], random_state=np.random.default_rng()
    )
    keys = []
    honest = generator.Keystream._set_key

    def recorded(self, key):
        keys.append(key)
        honest(self, key)

    monkeypatch.setattr(generator.Keystream, "_set_key", recorded)

    def key_of_noise(epsilon):
        fitted(clone(original).set_params(epsilon=epsilon))
        return keys[-1]

    assert key_of_noise(1.0) == key_of_noise(1.0)  # a generator is a seed: the same plan repeats
    assert key_of_noise(1.0) != key_of_noise(2.0)
    monkeypatch.setattr(RandomGenerator, "rekey", lambda self, context: None)
    assert key_of_noise(1.0) == key_of_noise(2.0)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="calls fork of the C library")
def test_a_fork_below_python_does_not_repeat_noise(monkeypatch):
    secure, seeded = secure_generator(), seeded_generator(1)
    secure.bytes(8), seeded.bytes(8)
    children = [in_child(lambda: secure.bytes(64), fork_below_python) for _ in range(2)]
    assert len({secure.bytes(64), *children}) == 3
    assert all(len(words) == 64 for words in children)
    assert in_child(lambda: seeded.bytes(64), fork_below_python).startswith(b"RuntimeError: a seeded RandomGenerator")
    assert len(seeded.bytes(64)) == 64
    monkeypatch.setattr(os, "getpid", lambda: 1)  # without the check the child goes on in the parent's buffer
    secure.bytes(8)
    assert in_child(lambda: secure.bytes(64), fork_below_python) == secure.bytes(64)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="calls fork of the C library")
def test_a_fork_below_python_while_a_thread_draws_does_not_hang():
    rng, held, release = secure_generator(), threading.Event(), threading.Event()

    def hold():
        with rng._lock:
            held.set()
            release.wait()

    holder = threading.Thread(target=hold)
    holder.start()
    held.wait()
    try:
        assert len(in_child(lambda: rng.bytes(8), fork_below_python)) == 8
    finally:
        release.set()
        holder.join()


def enter_twice(self):
    """A lock that only keeps other threads out: a planted fault."""
    self._turn = self._turns.setdefault(self.process, _Turn())
    self._turn.lock.acquire()


class DrawsWhenInterrupted:
    """A signal that arrives while words are made, and a handler that draws from the same generator."""

    def __init__(self, rng, monkeypatch):
        self.drawn, self.rng = [], rng
        honest, self.armed = generator.Keystream.fill, True

        def interrupted(stream, words, count):
            honest(stream, words, count)
            if self.armed:
                self.armed = False
                signal.raise_signal(signal.SIGALRM)

        monkeypatch.setattr(generator.Keystream, "fill", interrupted)

    def __call__(self, *_):
        self.drawn.append(self.rng.bytes(64))


@pytest.fixture
def handler():
    """Set a handler of SIGALRM for one test."""
    before = signal.getsignal(signal.SIGALRM)
    yield lambda function: signal.signal(signal.SIGALRM, function)
    signal.signal(signal.SIGALRM, before)


needs_alarm = pytest.mark.skipif(not hasattr(signal, "SIGALRM"), reason="the system has no SIGALRM")


@needs_alarm
@pytest.mark.parametrize("make", [secure_generator, lambda: seeded_generator(4)])
def test_a_signal_handler_cannot_draw_during_a_draw(make, handler, monkeypatch):
    rng = make()
    attack = DrawsWhenInterrupted(rng, monkeypatch)
    handler(attack)
    with pytest.raises(RuntimeError, match="in the middle of another draw"):
        rng.bytes(64)
    assert attack.drawn == []
    assert rng.bytes(64) != rng.bytes(64)  # the refusal leaves the generator usable


@needs_alarm
def test_the_attack_of_a_signal_handler_succeeds_where_a_thread_may_enter_twice(handler, monkeypatch):
    rng = secure_generator()
    monkeypatch.setattr(DrawLock, "__enter__", enter_twice)
    attack = DrawsWhenInterrupted(rng, monkeypatch)
    handler(attack)
    assert rng.bytes(64) == attack.drawn[0]


@needs_alarm
def test_a_signal_handler_may_draw_from_a_generator_of_its_own(handler, monkeypatch):
    rng, own = secure_generator(), secure_generator()
    attack = DrawsWhenInterrupted(own, monkeypatch)
    handler(attack)
    assert len({rng.bytes(64), *attack.drawn, own.bytes(64)}) == 3
