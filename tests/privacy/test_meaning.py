"""What a statement tells in percent: beliefs and guesses, against laws known in closed form."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import ndtr, ndtri

from discreet.privacy import accounting
from discreet.privacy.accounting import (
    excess_probability,
    gaussian_event,
    guess_accuracy,
    laplace_event,
    no_event,
    non_private_event,
    poisson_event,
    pure_event,
    randomised_response_event,
    selection_event,
)
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.relation import Relation
from discreet.privacy.statement import Meaning, belief_after, percent_at_most

EVENTS = {
    "gaussian": gaussian_event(2.0),
    "laplace": laplace_event(1.5),
    "selection": selection_event(0.7),
    "sampled": poisson_event(0.1, 2.0, 5),
    "pure": pure_event(0.3, 2),
    "mixed": accounting.compose([laplace_event(4.0), gaussian_event(5.0)]),
}


@pytest.mark.parametrize("mu", [0.1, 1.0, 3.0])
def test_the_best_guess_against_gaussian_noise_is_known(mu):
    assert guess_accuracy(gaussian_event(1.0 / mu), Relation.REPLACE) == pytest.approx(ndtr(mu / 2.0), rel=1e-9)


def test_the_best_guess_against_laplace_noise_is_known():
    assert guess_accuracy(laplace_event(2.0), Relation.ZERO_OUT) == pytest.approx(1.0 - 0.5 * math.exp(-0.25), rel=1e-3)


def test_nothing_and_everything():
    assert guess_accuracy(no_event(), Relation.REPLACE) == 0.5
    assert excess_probability(no_event(), 0.1, Relation.REPLACE) == 0.0
    assert guess_accuracy(non_private_event(), Relation.REPLACE) == 1.0
    assert excess_probability(non_private_event(), 9.0, Relation.REPLACE) == 1.0
    assert Meaning.of(math.inf, 0.0, non_private_event(), Relation.REPLACE).guess == 1.0


@pytest.mark.parametrize(("mu", "epsilon"), [(0.2, 0.5), (0.5, 1.0), (1.0, 2.0), (2.0, 3.0)])
def test_no_part_of_a_gaussian_release_passes_the_belief_more_often_than_stated(mu, epsilon):
    """An observer who is only told whether the release exceeds c; the tail of the privacy loss would be too small."""
    bound = excess_probability(gaussian_event(1.0 / mu), epsilon, Relation.REPLACE)
    c = np.linspace(-10.0, 10.0, 200_001)
    present, absent = ndtr(mu - c), ndtr(-c)
    passed = present[present > np.exp(epsilon) * absent].max()
    assert passed <= bound <= 1.05 * passed
    assert ndtr(0.5 * mu - epsilon / mu) < 0.9 * passed  # what who sees all of the release would suffer


def test_who_answers_at_random_is_believed_as_far_as_stated():
    """Randomised response, where everything is known: the loss is epsilon or -epsilon, and never more."""
    event, p = randomised_response_event(0.4, 2), 0.8  # the truth with probability 1 - 0.4 / 2
    epsilon = math.log(p / (1.0 - p))
    meaning = Meaning.of(epsilon, 0.0, event, Relation.REPLACE)
    assert meaning.failure == 0.0
    assert meaning.guess == pytest.approx(p, rel=1e-3)
    assert dict(meaning.beliefs)[0.5] == pytest.approx(p)


@pytest.mark.parametrize("name", EVENTS)
def test_beliefs_and_guesses_agree_with_the_accountant(name):
    event, relation = EVENTS[name], Relation.ZERO_OUT
    delta = 0.0 if math.isfinite(accounting.pure_epsilon_of(event, relation)) else 1e-5
    epsilon = accounting.epsilon_of(event, delta, relation)
    meaning = Meaning.of(epsilon, delta, event, relation)
    assert 0.5 < meaning.guess <= 1.0 / (1.0 + math.exp(-epsilon)) + delta
    assert delta <= meaning.failure <= 500.0 * delta


@pytest.mark.parametrize("before", [0.001, 0.3, 0.5, 0.99])
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 10.0])
def test_odds_grow_by_exp_epsilon(before, epsilon):
    after = belief_after(before, epsilon)
    assert after / (1.0 - after) == pytest.approx(math.exp(epsilon) * before / (1.0 - before), rel=1e-3)


@pytest.mark.parametrize(
    ("fraction", "text"),
    [(0.5, "50.0 %"), (0.73105857, "73.2 %"), (0.99995460, "99.9955 %"), (1.0 - 1e-14, "practically 100 %")],
)
def test_percentages_are_rounded_up(fraction, text):
    assert percent_at_most(fraction) == text


@pytest.mark.parametrize(
    ("epsilon", "delta", "rows", "words"),
    [
        (10.0, 1e-6, 1000, []),
        (10.1, 1e-6, 1000, ["epsilon"]),
        (1.0, 1e-3, 1000, []),
        (1.0, 1.1e-3, 1000, ["delta"]),
        (1.0, 0.5, None, []),
        (20.0, 0.5, 10, ["epsilon", "delta"]),
        (math.inf, 0.0, 10, []),
    ],
)
def test_weak_promises_are_named(epsilon, delta, rows, words):
    assert [reason.split()[0] for reason in Guarantee(epsilon, delta, Relation.REPLACE, None).weaknesses(rows)] == words


def test_gaussian_quantiles_are_not_confused():
    """The line through the origin meets the curve of the best tests where the bound is attained."""
    mu, epsilon = 1.0, 1.0
    bound = excess_probability(gaussian_event(1.0 / mu), epsilon, Relation.REPLACE)
    assert ndtr(ndtri(bound * math.exp(-epsilon)) + mu) == pytest.approx(bound, rel=0.02)
