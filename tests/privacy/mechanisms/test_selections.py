"""Selections: every choice has the law of the exponential mechanism with the epsilon of its event.

With errors of sensitivity D the mechanism of bounded range epsilon draws in proportion to exp(-epsilon error / (2 D)).
Tests at level 1e-4 with fixed seeds: the law that the event states is accepted, that of 3/2 of its epsilon (2/3 of the
noise) is rejected.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from discreet.privacy import mechanisms
from discreet.privacy.mechanisms import Sensitivity
from discreet.privacy.random.generator import seeded_generator
from discreet.solvers.frank_wolfe.vertices import Choice
from tests.statistics import LEVEL, both_arms

ERRORS = np.array([0.0, 1.0, 2.0, -3.0, 1.5, 0.3])
SENSITIVITY = Sensitivity(l2=0.8, l1=0.8)
DRAWS = 20_000


def check_choices(counts, epsilon, sensitivity, places=1):
    """The stated law is accepted and that of more epsilon rejected."""

    def p_value(stated):
        weights = places * np.exp(-stated * ERRORS / (2.0 * sensitivity))
        return stats.chisquare(counts, counts.sum() * weights / weights.sum()).pvalue

    assert p_value(epsilon) > LEVEL
    assert p_value(1.5 * epsilon) < LEVEL


def test_vertices_are_selected_with_the_epsilon_of_the_event():
    mechanism = mechanisms.VertexSelections(2.0, DRAWS)
    choice = Choice(False, mechanism.scale(SENSITIVITY), ERRORS.copy())
    uniforms = mechanism.uniforms(seeded_generator(1), choice.uniforms)
    assert len(uniforms) == mechanism.event.count
    counts = np.bincount([choice.draw(row)[0] for row in uniforms], minlength=ERRORS.size)
    check_choices(counts, mechanism.event.event.epsilon, SENSITIVITY.l2)


@pytest.mark.parametrize(("kind", "law"), [("gaussian", stats.norm), ("laplace", stats.laplace)])
def test_the_intercept_gets_the_noise_of_the_event(kind, law):
    sensitivity = Sensitivity(l2=2.0, l1=2.0)
    mechanism = mechanisms.VertexSelections(2.0, 3_000, kind)
    events = mechanism.event.events
    assert [type(event).__name__ for event in events[:2]] == [
        "BoundedRangeDpEvent",
        "GaussianDpEvent" if kind == "gaussian" else "LaplaceDpEvent",
    ]
    assert len(events) == 2 * mechanism.count
    noise = mechanism.intercept_grid(sensitivity, 100).noise(seeded_generator(2), 4_000)
    both_arms(noise, law(scale=events[1].noise_multiplier * 2.0))


class Exponentials:
    """An exact sampler of the density proportional to exp(-rate u) on [0, 1], one point at a time."""

    def __init__(self, rate):
        self.rate = rate

    def draw(self, rng, count=1):
        return -np.log1p(rng.uniform((count, 1)) * np.expm1(-self.rate)) / self.rate


def test_points_are_drawn_with_the_epsilon_of_the_event():
    """The energy is u on [0, 1], and its differences move by D: the density is proportional to exp(-epsilon u / D)."""
    mechanism, rng = mechanisms.PointSelection(0.5), seeded_generator(3)
    draws = np.concatenate([mechanism.draw(rng, Exponentials, SENSITIVITY) for _ in range(4_000)])
    epsilon = mechanism.event.epsilon
    for stated, accepted in ((epsilon, True), (1.5 * epsilon, False)):
        law = stats.truncexpon(stated / SENSITIVITY.l2, scale=SENSITIVITY.l2 / stated)
        assert (stats.kstest(draws, law.cdf).pvalue > LEVEL) == accepted


def test_a_set_of_one_point_needs_no_rate():
    assert mechanisms.PointSelection(0.5).rate(Sensitivity(0.0, 0.0)) == 0.0


def test_places_are_selected_with_the_epsilon_of_the_event():
    """Runs of several places of equal error, one of them empty; places of a run are equally likely."""
    mechanism, rng = mechanisms.QuantileSelection(2.0, 1), seeded_generator(4)
    error, places = np.append(ERRORS, -50.0), np.array([3, 1, 4, 1, 5, 2, 0])
    chosen = np.array([mechanism.choose(rng, error, places, SENSITIVITY) for _ in range(DRAWS)])
    counts = np.bincount(chosen[:, 0], minlength=places.size)
    assert counts[-1] == 0
    check_choices(counts[:-1], mechanism.event.epsilon, SENSITIVITY.l1, places[:-1])
    within = np.bincount(chosen[chosen[:, 0] == 0, 1], minlength=3)
    assert within.size == 3
    assert stats.chisquare(within).pvalue > LEVEL
    assert stats.chisquare(np.array([2, 1, 1]) * within.sum() / 4).pvalue < LEVEL


def test_coordinates_are_selected_with_the_epsilon_of_the_event():
    mechanism, rng = mechanisms.GumbelGreedy(2.0, 1), seeded_generator(5)
    counts = np.bincount([mechanism.choose(rng, -ERRORS, SENSITIVITY) for _ in range(DRAWS)], minlength=ERRORS.size)
    check_choices(counts, mechanism.event.events[0].epsilon, SENSITIVITY.l2)


def test_the_laplace_selection_has_the_noise_of_its_event():
    """Two scores: the better one loses if a difference of two Laplace draws of scale b exceeds the gap."""
    mechanism, rng, gap = mechanisms.LaplaceGreedy(2.0, 1), seeded_generator(6), 2.0
    choices = [mechanism.choose(rng, np.array([gap, 0.0]), SENSITIVITY) for _ in range(DRAWS)]

    def p_value(scale):
        worse = math.exp(-gap / scale) * (0.5 + gap / (4.0 * scale))
        return stats.binomtest(sum(choices), DRAWS, worse).pvalue

    scale = 2.0 * SENSITIVITY.l1 / mechanism.event.events[0].epsilon
    assert p_value(scale) > LEVEL
    assert p_value(scale * 2 / 3) < LEVEL


@pytest.mark.parametrize("kind", [mechanisms.GumbelGreedy, mechanisms.LaplaceGreedy])
def test_the_chosen_entry_gets_the_noise_of_the_event(kind):
    mechanism, sensitivity = kind(2.0, 1), Sensitivity(l2=0.8, l1=1.3)
    release = mechanism.event.events[1]
    law = stats.norm(scale=release.noise_multiplier * 0.8) if kind is mechanisms.GumbelGreedy else None
    law = law or stats.laplace(scale=release.noise_multiplier * 1.3)
    noise = mechanism.grid(sensitivity, 1).noise(seeded_generator(7), 4_000)
    both_arms(noise, law)
    assert law.std() == pytest.approx(mechanism.deviation(sensitivity))


NOISELESS = [
    mechanisms.GumbelGreedy(0.0, 1),
    mechanisms.LaplaceGreedy(0.0, 1),
    mechanisms.VertexSelections(0.0, 1, "gaussian"),
    mechanisms.PointSelection(0.0),
    mechanisms.QuantileSelection(0.0, 1),
]


@pytest.mark.parametrize("mechanism", NOISELESS, ids=str)
def test_without_noise_the_event_is_not_private(mechanism):
    assert type(mechanism.event).__name__ == "NonPrivateDpEvent"


def test_without_noise_the_best_is_chosen_even_if_nothing_is_clipped():
    unbounded = Sensitivity(math.inf, math.inf)
    for greedy in NOISELESS[:2]:
        assert greedy.choose(seeded_generator(8), -ERRORS, unbounded) == int(ERRORS.argmin())
    assert NOISELESS[2].scale(unbounded) == 0.0
    best = Choice(False, 0.0, ERRORS.copy())
    assert best.draw(np.full(best.uniforms, 0.5)) == (int(ERRORS.argmin()), 1.0)
