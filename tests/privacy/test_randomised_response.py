"""Randomised response: the law of a response, its cost, and estimates that are unbiased with the stated error."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from discreet import InsecureRandomnessWarning
from discreet.audit.lower_bound import epsilon_lower_bound
from discreet.privacy import RandomisedResponse, accounting
from discreet.privacy.random.generator import seeded_generator
from tests.statistics import LEVEL  # the false-alarm rate of each test below

PEOPLE = 40_000


class TellsTheTruthTooOften(RandomisedResponse):
    """A planted fault: the response is drawn at random in two of three cases in which it should be."""

    def __init__(self, *settings, **named):
        super().__init__(*settings, **named)
        self._threshold = self._threshold * 2 // 3


def asked(kind=RandomisedResponse, epsilon=1.0, categories=("a", "b", "c"), seed=0):
    return kind(epsilon, categories, random_state=seeded_generator(seed))


def law_fits(question, law, truth="b"):
    """Whether responses of people with one true answer have the stated law: a chi-square test at LEVEL."""
    responses = question.randomise([truth] * PEOPLE)
    counts = [np.count_nonzero(responses == category) for category in question.categories]
    return stats.chisquare(counts, PEOPLE * law).pvalue > LEVEL


@pytest.mark.parametrize("epsilon", [0.3, 2.0])
@pytest.mark.parametrize("categories", ["ab", "abcde"])
def test_a_response_has_its_law_and_a_wrong_flip_probability_is_caught(epsilon, categories):
    truth = math.exp(epsilon) / (math.exp(epsilon) + len(categories) - 1)
    law = np.full(len(categories), (1.0 - truth) / (len(categories) - 1))
    law[1] = truth
    assert law_fits(asked(RandomisedResponse, epsilon, tuple(categories)), law)
    assert not law_fits(asked(TellsTheTruthTooOften, epsilon, tuple(categories)), law)


def test_an_audit_accepts_the_epsilon_and_finds_the_fault():
    """The audit's lower bound is wrong with probability 0.001 or less."""
    found = {}
    for kind in (RandomisedResponse, TellsTheTruthTooOften):
        question = asked(kind, 1.0, (0.0, 1.0))
        yes, no = question.randomise(np.ones(PEOPLE)), question.randomise(np.zeros(PEOPLE))
        found[kind] = epsilon_lower_bound(yes, no, 0.0, confidence=0.999)
    assert 0.9 < found[RandomisedResponse] <= 1.0
    assert found[TellsTheTruthTooOften] > 1.2


@pytest.mark.parametrize("epsilon", [1e-6, 0.1, 1.0, math.log(3.0), 7.0, 20.0])
@pytest.mark.parametrize("k", [2, 3, 50])
def test_the_cost_is_epsilon_both_ways(epsilon, k):
    question = RandomisedResponse(epsilon, range(k))
    lie = question.noise / k
    ratio = (1.0 - question.noise + lie) / lie
    assert math.log(ratio) == pytest.approx(epsilon, rel=1e-9)
    assert accounting.pure_epsilon_of(question.event, "replace") <= epsilon
    assert accounting.pure_epsilon_of(question.event, "replace") == pytest.approx(epsilon, rel=1e-9)
    assert question.noise == pytest.approx(k / (math.exp(epsilon) + k - 1.0), rel=1e-9)
    assert question.noise * 2**62 == question._threshold  # what is drawn is what is booked, to the last digit
    assert question.guarantee.epsilon == epsilon
    assert question.guarantee.delta == 0.0


def test_estimates_are_unbiased_with_the_stated_error():
    """200 surveys: their mean and variance, each at LEVEL; the estimator printed in the thesis is far off."""
    people, surveys, share = 500, 200, 0.3
    truth = np.arange(people) < share * people
    question = asked(RandomisedResponse, 3.0, (False, True))
    responses = [question.randomise(truth) for _ in range(surveys)]
    estimates = np.array([question.estimate(found)[1] for found in responses])
    error = question.standard_error([1.0 - share, share], people)[1]
    assert 2.0 * stats.norm.sf(abs(estimates.mean() - share) / (error / math.sqrt(surveys))) > LEVEL
    spread = (surveys - 1) * estimates.var(ddof=1) / error**2
    assert LEVEL < stats.chi2.cdf(spread, surveys - 1) < 1.0 - LEVEL
    assert not LEVEL < stats.chi2.cdf(spread * 1.5**2, surveys - 1) < 1.0 - LEVEL  # a wrong error would be seen
    p = question.noise
    printed = np.mean([(2.0 * np.mean(found) - 1.0 + p) / (2.0 * p) for found in responses])
    assert abs(printed - share) > 1.0


def test_errors_by_definition():
    """The variance over all responses of few people, summed; and of a sample from a population."""
    question = RandomisedResponse(0.7, "abc")
    truths, lie = [0, 0, 1], question.noise / 3
    variance = (
        sum(chance * (1.0 - chance) for chance in (question.truth if truth == 0 else lie for truth in truths))
        / (3 * (1.0 - question.noise)) ** 2
    )
    assert question.standard_error([2 / 3, 1 / 3, 0.0], 3)[0] == pytest.approx(math.sqrt(variance))
    seen = lie + (1.0 - question.noise) * 0.25
    error = math.sqrt(seen * (1.0 - seen) / 10) / (1.0 - question.noise)
    assert question.standard_error([0.25, 0.25, 0.5], 10, population=True)[0] == pytest.approx(error)
    assert error <= 1.0 / (2.0 * math.sqrt(10) * (1.0 - question.noise))


def test_estimates_add_up_and_every_category_counts():
    question = asked(categories=(10, 20, 30))
    assert question.estimate([10, 10, 30]).sum() == pytest.approx(1.0)
    assert question.randomise([10, 20]).dtype == np.int64
    assert set(asked(categories=(None, "x")).randomise([None] * 50)) == {None, "x"}


def test_what_is_told_to_people():
    text = RandomisedResponse(1.0).statement()
    assert "at most 73.2 %" in text
    assert "seed" not in text
    assert "whoever knows it" in asked().statement()
    assert asked().guarantee.leaks
    assert not RandomisedResponse(1.0).guarantee.leaks


def test_two_questions_under_one_seed_have_different_draws():
    with pytest.warns(InsecureRandomnessWarning):
        first, second = RandomisedResponse(1.0, "ab", 3), RandomisedResponse(1.000001, "ab", 3)
    answers = ["a"] * 200
    assert (first.randomise(answers) != second.randomise(answers)).any()
    with pytest.warns(InsecureRandomnessWarning):
        again = RandomisedResponse(1.0, "ab", 3), RandomisedResponse(1.0, "ab", 3)
    assert (again[0].randomise(answers) == again[1].randomise(answers)).all()


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: RandomisedResponse(0.0), "epsilon"),
        (lambda: RandomisedResponse(math.inf), "epsilon"),
        (lambda: RandomisedResponse(1.0, ["a"]), "two different"),
        (lambda: RandomisedResponse(1.0, ["a", "a"]), "two different"),
        (lambda: asked().estimate([]), "at least 1"),
        (lambda: asked().standard_error([0.5, 0.5], 10), "3 numbers"),
        (lambda: asked().randomise([["a"]]), "one entry"),
    ],
)
def test_mistakes_are_named(call, words):
    with pytest.raises(ValueError, match=words):
        call()


@pytest.mark.parametrize("secret", ["diabetes", ["a"]])
def test_no_message_shows_an_answer(secret):
    with pytest.raises(ValueError, match="among the 3 categories") as refused:
        asked().randomise(np.array([secret, "b"], dtype=object))
    assert "diabetes" not in str(refused.value)
