"""The regret bound of FTRL holds against adversaries who know the weights; the printed one does not.

Means over many runs may exceed a bound by 4.5 standard errors before a test fails (false alarms: below 1e-5).
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from discreet.privacy.mechanisms.aggregation import TreeSums, square_root_column
from discreet.theory import ftrl_bound
from discreet.theory.ftrl import running_deviations
from tests.bound_tools import mean_over, mean_under, seldom_over

RUNS = 500


class OneDraw:
    """A grid whose noise is a unit in one release, the one with the given number, and nothing else."""

    def __init__(self, number):
        self.number, self.released = number, 0

    def release(self, rng, exact):
        self.released += 1
        return exact + float(self.released - 1 == self.number)


@pytest.mark.parametrize("aggregation", ["square-root", "tree", "plain-tree"])
@pytest.mark.parametrize("leaves", [1, 2, 5, 8, 13])
def test_deviations_are_those_of_the_running_sums(aggregation, leaves):
    """The response of every running sum to every single draw, squared and summed."""
    if aggregation == "square-root":
        column = square_root_column(leaves)
        responses = np.array([[column[t - k] if k <= t else 0.0 for t in range(leaves)] for k in range(leaves)])
    else:
        responses = []
        for number in range(2 * leaves):
            grid, sums = OneDraw(number), TreeSums(leaves, (1,), reduced=aggregation == "tree")
            responses.append([float(sums.next(np.zeros(1), grid, None)[0]) for _ in range(leaves)])
        responses = np.array(responses)
    assert np.sqrt((responses**2).sum(axis=0)) == pytest.approx(running_deviations(aggregation, leaves))


def correlated_noise(rng, aggregation, leaves, columns, runs, passes):
    """Noise of the running sums with the right deviations at every time; how times are correlated does not matter."""
    deviations, total, parts = running_deviations(aggregation, leaves), 0.0, []
    for _ in range(passes):
        own = rng.normal(size=(runs, 1, columns)) * deviations[None, :, None]
        parts.append(total + own)
        total = parts[-1][:, -1:]
    return np.concatenate(parts, axis=1)


def pushed(w, size):
    """The gradient that costs most at w: along w itself."""
    length = np.linalg.norm(w, axis=1, keepdims=True)
    return size * np.divide(w, length, out=np.full_like(w, 1.0 / math.sqrt(w.shape[1])), where=length > 0.0)


def fixed(rng, steps, columns, size):
    """Gradients that do not look at w, of norm `size`."""
    vectors = rng.normal(size=(steps, columns)) + 0.5
    return size * vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def average_regrets(rng, noise, size, least, ridge, comparator, adversary):
    """Of linear losses, for all runs at once."""
    runs, steps, columns = noise.shape
    w, sums, regret = np.zeros((runs, columns)), np.zeros((runs, columns)), np.zeros(runs)
    chosen = fixed(rng, steps, columns, size)
    for t in range(steps):
        gradient = pushed(w, size) if adversary == "adaptive" else np.tile(chosen[t], (runs, 1))
        regret += (gradient * (w - comparator)).sum(axis=1)
        regret += 0.5 * ridge * ((w**2).sum(axis=1) - (comparator**2).sum())
        sums += gradient
        w = -(sums + noise[:, t]) / (least + (t + 1) * ridge)
    return regret / steps


@pytest.mark.parametrize("aggregation", ["square-root", "tree"])
@pytest.mark.parametrize("adversary", ["adaptive", "fixed"])
@pytest.mark.parametrize(("deviation", "ridge", "passes"), [(0.0, 0.0, 1), (0.5, 0.0, 2), (3.0, 0.0, 1), (0.7, 0.2, 2)])
def test_the_regret_stays_under_its_bounds(aggregation, adversary, deviation, ridge, passes):
    rng, leaves, columns, size = np.random.default_rng(3), 24, 4, 2.0
    comparator = np.array([1.0, -0.5, 0.0, 0.3])
    known = {
        "lipschitz": size, "noise": deviation, "radius": float(np.linalg.norm(comparator)),
        "aggregation": aggregation, "passes": passes, "ridge": ridge,
    }  # fmt: skip
    noise = deviation * correlated_noise(rng, aggregation, leaves, columns, RUNS, passes)
    for least in (1.0, 20.0):
        regrets = average_regrets(rng, noise, size, least, ridge, comparator, adversary)
        assert mean_under(regrets, ftrl_bound(leaves, columns, regularisation=least, **known))
        assert seldom_over(regrets, ftrl_bound(leaves, columns, regularisation=least, failure=0.05, **known))


def printed_bound(size, multiplier, columns, leaves, failure, least, radius):
    """Theorem 6.15 of the book: noise of deviation `multiplier` times the Lipschitz constant on every node."""
    spread = multiplier * math.sqrt(columns * math.ceil(math.log2(leaves)) * math.log(leaves / failure))
    return (size * spread + size**2) / least + 0.5 * least * radius**2


def test_the_printed_bound_and_less_noise_are_found_out():
    """One factor L is missing in print, beside the noise: an adversary with L = 30 shows it."""
    rng, leaves, columns, size, multiplier, least = np.random.default_rng(4), 64, 3, 30.0, 20.0, 1_000.0
    noise = size * multiplier * correlated_noise(rng, "plain-tree", leaves, columns, RUNS, 1)
    regrets = average_regrets(rng, noise, size, least, 0.0, np.zeros(columns), "adaptive")
    known = {"lipschitz": size, "radius": 0.0, "aggregation": "plain-tree", "regularisation": least}
    assert (regrets > printed_bound(size, multiplier, columns, leaves, 0.01, least, 0.0)).mean() > 0.5
    assert mean_under(regrets, ftrl_bound(leaves, columns, noise=size * multiplier, **known))
    assert seldom_over(regrets, ftrl_bound(leaves, columns, noise=size * multiplier, failure=0.01, **known))
    assert mean_over(regrets, ftrl_bound(leaves, columns, noise=size * multiplier / 4.0, **known))


def test_laws_of_scale_of_the_regret_bound():
    def bound(leaves=512, noise=0.0, **options):
        return ftrl_bound(leaves, 5, lipschitz=1.0, noise=noise, radius=1.0, **options)

    assert bound(512).value / bound(1024).value == pytest.approx(math.sqrt(2.0))  # the best step, without noise
    loud = bound(noise=1e6).value
    assert loud / bound(noise=2.5e5).value == pytest.approx(2.0, rel=1e-3)  # and the root of the noise
    for other in (0.5, 2.0):
        at = other * bound(noise=2.0).settings["regularisation"]
        assert bound(noise=2.0, regularisation=at).value > bound(noise=2.0).value
    assert bound(noise=2.0, aggregation="tree").value < bound(noise=2.0, aggregation="plain-tree").value
    kept = {"regularisation": 10.0, "ridge": 0.1, "noise": 2.0}
    assert bound(**kept).value < bound(unpenalised=True, **kept).value


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"lipschitz": 0.0}, "lipschitz"),
        ({"noise": -1.0}, "noise"),
        ({"ridge": 0.1}, "give regularisation"),
        ({"regularisation": 0.0}, "regularisation"),
        ({"aggregation": "line"}, "aggregation"),
        ({"failure": 1.5}, "failure"),
    ],
)
def test_assumptions_are_checked(change, words):
    with pytest.raises(ValueError, match=words):
        ftrl_bound(8, 2, **{"lipschitz": 1.0, "noise": 1.0, "radius": 1.0, **change})
