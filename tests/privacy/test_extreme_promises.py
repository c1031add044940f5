"""Promises, curves and conversions at extreme arguments: compared with exact or many-digit arithmetic, never below."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from discreet import Budget
from discreet.privacy import RandomisedResponse, accounting, trade_off
from discreet.privacy.conversions import Renyi, bounded_range_to_zcdp, convert, group, pure_to_gdp, pure_to_zcdp
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.relation import Relation

DIGITS = 50
TINY = [5e-324, 1e-300, 1e-161]


@pytest.mark.parametrize(("mu", "rate"), [(10.0, 1e-17), (40.0, 1e-300), (1.0, 1e-12), (0.5, 0.3)])
def test_rare_false_alarms_of_gaussian_noise_are_not_taken_for_none(mu, rate):
    with mpmath.workdps(400):
        threshold = mpmath.findroot(lambda z: mpmath.log(mpmath.ncdf(-z) / mpmath.mpf(rate)), math.sqrt(2 * 2))
        missed = float(mpmath.ncdf(threshold - mu))
    assert trade_off(Budget.gdp(mu)).false_negative([rate])[0] == pytest.approx(missed, rel=1e-9)
    event = accounting.gaussian_event(1.0 / mu)
    assert trade_off(event, relation="replace").false_negative([rate])[0] == pytest.approx(missed, rel=1e-9)


def test_an_epsilon_beyond_the_largest_exponential_protects_nobody():
    assert trade_off(800.0).false_negative([1e-310, 0.5])[0] == 0.0
    assert trade_off(800.0).false_negative([0.0])[0] == 1.0


@pytest.mark.parametrize("rate", [1e-300, 1e-17, 1e-9, 1e-3])
def test_precision_at_rare_false_alarms_is_that_of_the_worst_release(rate):
    """Randomised response answers truthfully e^epsilon times as often as not, however seldom it is called "used"."""
    exact = math.e / (math.e + 1.0)
    assert trade_off(1.0).precision(0.5, rate) == pytest.approx(exact, rel=1e-9)
    assert trade_off(1.0).precision(0.5, rate) >= exact * (1.0 - 1e-15)
    for promise in (Budget.gdp(1.0), Budget.zcdp(0.5), Renyi(2.0, 1.0)):  # N(0, 1) and N(1, 1) keep them all
        found = float(mpmath.ncdf(_gaussian_quantile(rate) + 1.0))
        assert trade_off(promise).precision(0.5, rate) >= found / (found + rate) * (1.0 - 1e-12)


def _gaussian_quantile(rate):
    from scipy.special import ndtri

    return float(ndtri(rate))


def test_who_publishes_rarely_is_always_right():
    """Without false alarms only what was published is called "used", however small delta is."""
    assert trade_off(1.0, 1e-17).precision(0.5, 0.0) == 1.0
    assert trade_off(1.0).precision(0.5, 0.0) == 0.0


@pytest.mark.parametrize("seed", range(200))
def test_pairs_that_follow_from_a_promise_are_not_below_it(seed):
    """C1 of docs/guarantees/conversions.md in 50 digits, also at a delta close to 1 and an epsilon close to 0."""
    rng = np.random.default_rng(seed)
    epsilon, delta = float(10.0 ** rng.uniform(-18, 2)), float(rng.choice([0.0, 10.0 ** rng.uniform(-20, -0.01)]))
    curve, smaller = trade_off(epsilon, delta), epsilon * float(rng.uniform())
    larger = float(delta + (1.0 - delta) * (1.0 - 10.0 ** rng.uniform(-15, 0)))
    with mpmath.workdps(DIGITS):
        promised, failing = mpmath.mpf(epsilon), mpmath.mpf(delta)
        least = failing + (1 - failing) * (1 - mpmath.exp(smaller - promised)) / (1 + mpmath.exp(-promised))
        assert curve.delta(smaller) >= least
        left = 1 - (mpmath.mpf(larger) - failing) / (1 - failing) * (1 + mpmath.exp(-promised))
        if left > 0 and larger < 1.0:
            assert curve.epsilon(larger) >= promised + mpmath.log(left)
            assert curve.epsilon(larger) <= max(promised + mpmath.log(left), 0) + 1e-11 * promised


@pytest.mark.parametrize("epsilon", [5e-324, 1e-300, 1e-17, 1e-10, 1e-5, 1e-3, 0.1, 0.999, 1.0, 30.0])
def test_a_small_pure_promise_is_a_small_gaussian_one_and_not_none(epsilon):
    with mpmath.workdps(DIGITS):
        exact = 2 * mpmath.sqrt(2) * mpmath.erfinv(mpmath.tanh(mpmath.mpf(epsilon) / 2))
        assert exact <= pure_to_gdp(epsilon) <= exact * (1 + mpmath.mpf(3e-12)) + mpmath.mpf(2e-323)
        rho = mpmath.mpf(epsilon) * mpmath.tanh(mpmath.mpf(epsilon) / 2)
        assert rho <= pure_to_zcdp(epsilon) <= rho * (1 + mpmath.mpf(3e-12)) + mpmath.mpf(2e-323)
    assert convert(Budget.pure(epsilon), "renyi", order=2.0).epsilon > 0.0


@pytest.mark.parametrize("amount", [*TINY, 0.1, 1.0 / 3.0, 7.7])
@pytest.mark.parametrize("order", [1.1, 3.0, 1e10])
def test_products_are_rounded_up_and_never_to_nothing(amount, order):
    exact, order_ = Fraction(amount), Fraction(order)
    assert Fraction(convert(Budget.gdp(amount), "zcdp").amount) >= exact**2 / 2
    assert Fraction(convert(Budget.gdp(amount), "renyi", order=order).epsilon) >= exact**2 * order_ / 2
    assert Fraction(convert(Budget.zcdp(amount), "renyi", order=order).epsilon) >= exact * order_
    assert Fraction(bounded_range_to_zcdp(amount)) >= exact**2 / 8
    for rows in (3, 7, 1000):
        assert Fraction(group(Budget.pure(amount), rows).amount) >= rows * exact
        assert Fraction(group(Budget.gdp(amount), rows).amount) >= rows * exact
        assert Fraction(group(Budget.zcdp(amount), rows).amount) >= rows**2 * exact


def test_a_product_too_large_for_a_number_is_no_protection():
    assert convert(Budget.gdp(1e200), "zcdp").is_infinite
    assert bounded_range_to_zcdp(1e300) == math.inf
    for budget in (Budget.pure(0.1), Budget.gdp(0.1), Budget.zcdp(0.1)):
        assert group(budget, 10**400).is_infinite
    for promise in (Renyi(8.0, 0.1), Budget(0.1, 1e-9)):
        with pytest.raises(ValueError, match="says nothing about 1000"):
            group(promise, 10**400)


def test_the_delta_of_a_group_does_not_stop_growing():
    """delta e^(3 epsilon) is far above 1 here, although e^(3 epsilon) itself is too large for a number."""
    with pytest.raises(ValueError, match="says nothing about 4 rows"):
        group(Budget(300.0, 1e-310), 4)
    with mpmath.workdps(DIGITS):
        exact = mpmath.mpf(1e-320) * (1 + mpmath.exp(710))
        assert exact <= group(Budget(710.0, 1e-320), 2).delta <= exact * (1 + mpmath.mpf(3e-12))


@pytest.mark.parametrize("mu", [1e-300, 1e-20, 1.0, 1e8, 1e154, 1e200, 1e300])
def test_gaussian_promises_have_a_delta_and_an_epsilon_at_every_argument(mu):
    curve = trade_off(Budget.gdp(mu))
    deltas = [curve.delta(epsilon) for epsilon in (0.0, 1e-300, 1e-3, 1.0, 1e5, 1e300, math.inf)]
    assert deltas == sorted(deltas, reverse=True)
    assert deltas[0] > 0.0
    assert curve.epsilon(1e-300) >= curve.epsilon(0.5) >= 0.0
    if mu >= 1e8:
        assert curve.epsilon(0.5) >= 0.4 * mu * min(mu, 1e8)


@pytest.mark.parametrize("promise", [Budget(1.0, 1e-6), Budget.zcdp(0.1), Budget.gdp(1.0), Renyi(4.0, 0.3)], ids=str)
def test_infinite_and_huge_odds_are_rare(promise):
    curve = trade_off(promise)
    assert curve.failure(math.inf) <= curve.failure(1e300) <= 1.0001e-6


def test_coins_with_hardly_any_misses_are_not_below_the_curve():
    """f = 1 - 2^-53: false negatives are smaller still, and must not be rounded up."""
    rate = 1.0 - 2.0**-53
    for promise in (Budget.zcdp(30.0), Renyi(1e6, 30.0)):
        assert trade_off(promise).false_negative([rate])[0] <= 1e-21


@pytest.mark.parametrize("seed", range(100))
def test_a_randomised_response_never_tells_more_than_its_epsilon(seed):
    rng = np.random.default_rng(seed)
    epsilon, answers = float(10.0 ** rng.uniform(-8, math.log10(20.0))), int(rng.integers(2, 200))
    question = RandomisedResponse(epsilon, range(answers))
    noise = Fraction(question._threshold, 1 << 62)
    assert Fraction(question.noise) == noise
    with mpmath.workdps(DIGITS):
        ratio = 1 + answers * (1 - noise) / noise
        loss = mpmath.log(mpmath.mpf(ratio.numerator) / ratio.denominator)
        assert 0 <= epsilon - loss <= 1e-13 + 1e-12 * answers


def test_an_answer_outside_the_categories_is_not_quoted_even_in_the_chain_of_errors():
    for answers in (["SECRET"], [["SECRET"]], [{"SECRET"}]):
        with pytest.raises(ValueError, match=r"answers must") as caught:
            RandomisedResponse(1.0).randomise(answers)
        assert caught.value.__context__ is None
        assert "SECRET" not in str(caught.value)


def test_a_question_that_cannot_be_answered_is_refused():
    with pytest.raises(ValueError, match="always be drawn at random"):
        RandomisedResponse(1e-18)
    with pytest.raises(ValueError, match="categories"):
        RandomisedResponse(1.0, [("a", 1), ("b", 2)])
    large = RandomisedResponse(1.0, [-1, 2**63])  # as floats they would not be themselves
    assert {repr(response) for response in large.randomise([-1, 2**63] * 20)} == {"-1", repr(2**63)}


def test_a_relation_that_a_guarantee_does_not_state_is_refused():
    guarantee = Guarantee(1.0, 0.0, Relation.ADD_REMOVE, accounting.laplace_event(1.0))
    assert trade_off(guarantee, relation="add_remove").advantage == trade_off(guarantee).advantage
    with pytest.raises(ValueError, match="relation"):
        trade_off(guarantee, relation="replace")


def test_a_numpy_number_is_an_epsilon():
    assert trade_off(np.int64(1)).advantage == trade_off(np.float32(1.0)).advantage == trade_off(1.0).advantage


@pytest.mark.parametrize("delta", [0.05, 0.1, 0.2, 0.9])
def test_the_usual_bound_on_a_belief_may_not_always_be_passed(delta):
    """A large delta lets odds grow by more than e^epsilon, and the bound that is told must not hide it."""
    growth, failure = trade_off(1.0, delta).usual_growth()
    assert failure < 1.0
    assert growth >= 1.0
