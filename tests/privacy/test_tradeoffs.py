"""The best attacker against every kind of promise: compared with pairs of laws whose best tests are known."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import ndtr, ndtri

from discreet import Budget, LogisticRegression
from discreet.privacy import accounting, advantage, plot_meaning, posterior, trade_off
from discreet.privacy.conversions import Renyi
from discreet.privacy.tradeoffs import TradeOff
from tests.pairs_of_laws import best_false_negative, hockey_stick, random_pair, randomised_response, renyi

RATES = np.concatenate([[0.0], np.geomspace(1e-5, 0.05, 20), np.linspace(0.06, 1.0, 60)])
PROMISES = {
    "pure": Budget.pure(0.8),
    "approximate": Budget(1.0, 1e-3),
    "zcdp": Budget.zcdp(0.2),
    "gdp": Budget.gdp(0.7),
    "renyi": Renyi(6.0, 0.4),
}


def gaussian_pair(mu, bins=4_000):
    """N(mu, 1) and N(0, 1), grouped into many small cells, of which the outer ones reach to infinity."""
    cuts = np.linspace(-7.0, 7.0 + mu, bins - 1)
    p, q = (np.diff(np.concatenate([[0.0], ndtr(cuts - m), [1.0]])) for m in (mu, 0.0))
    return np.maximum(p, 1e-300), np.maximum(q, 1e-300)


@pytest.mark.parametrize("delta", [0.0, 1e-4, 0.1])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
def test_the_curve_of_a_promise_is_that_of_its_worst_release(epsilon, delta):
    p, q = randomised_response(epsilon, delta)
    curve = trade_off(epsilon, delta)
    exact = best_false_negative(p, q, RATES[1:])
    assert curve.false_negative(RATES[1:]) == pytest.approx(exact, abs=1e-9)
    assert curve.advantage == pytest.approx(hockey_stick(p, q, 0.0), rel=1e-9)


def test_the_curve_of_gaussian_dp_is_that_of_gaussian_noise():
    p, q = gaussian_pair(0.7)
    curve = trade_off(Budget.gdp(0.7))
    assert curve.false_negative(RATES) == pytest.approx(best_false_negative(p, q, RATES), abs=1e-5)
    assert curve.area == pytest.approx(ndtr(0.7 / math.sqrt(2.0)), abs=1e-4)
    assert curve.advantage == pytest.approx(2.0 * ndtr(0.35) - 1.0)
    plan = trade_off(accounting.gaussian_event(1.0 / 0.7), relation="replace")
    assert plan.false_negative(RATES) == pytest.approx(curve.false_negative(RATES), abs=1e-12)


@pytest.mark.parametrize("rho", [0.01, 0.3, 3.0])
def test_no_zcdp_release_is_below_the_curve_and_one_is_on_it(rho):
    """Gaussian noise, and the randomised response whose epsilon tanh(epsilon / 2) is rho, which meets the curve."""
    curve = trade_off(Budget.zcdp(rho)).false_negative(RATES)
    gaussian = ndtr(ndtri(1.0 - RATES) - math.sqrt(2.0 * rho))
    assert (curve <= gaussian + 1e-12).all()
    assert (curve[1:-1] > 0.0).all()
    epsilon = np.sqrt(2.0 * rho)
    for _ in range(100):
        epsilon = 0.5 * (epsilon + rho / np.tanh(0.5 * epsilon))
    corner = 1.0 / (1.0 + math.exp(epsilon))
    assert trade_off(Budget.zcdp(rho)).false_negative([corner])[0] == pytest.approx(corner, rel=1e-3)
    assert trade_off(Budget.zcdp(rho)).advantage == pytest.approx(math.tanh(0.5 * epsilon), rel=1e-3)


@pytest.mark.parametrize("seed", range(12))
def test_no_renyi_release_is_below_the_curve(seed):
    p, q = random_pair(seed, outcomes=2 + seed % 3, spread=0.3 + seed % 4)
    exact = best_false_negative(p, q, RATES)
    for order in (1.3, 3.0, 20.0):
        curve = trade_off(Renyi(order, renyi(p, q, order)))
        assert (curve.false_negative(RATES) <= exact + 1e-9).all()
        assert curve.advantage >= hockey_stick(p, q, 0.0) - 1e-9


@pytest.mark.parametrize("error", [0.05, 0.3])
def test_two_coins_are_on_the_curve_of_their_divergence(error):
    order = 4.0
    p, q = np.array([0.5, 0.5]), np.array([error, 1.0 - error])
    curve = trade_off(Renyi(order, renyi(p, q, order)))
    assert curve.false_negative([error])[0] == pytest.approx(0.5, abs=1e-6)


@pytest.mark.parametrize("name", PROMISES)
def test_the_numbers_of_a_curve_agree_with_one_another(name):
    curve = trade_off(PROMISES[name])
    rates = np.linspace(0.0, 1.0, 1_001)
    missed = curve.false_negative(rates)
    assert (np.diff(missed) <= 1e-12).all()
    assert (np.diff(missed, 2) >= -1e-9).all()  # convex
    assert (1.0 - rates - missed).max() <= curve.advantage + 1e-9
    assert (1.0 - rates - missed).max() >= curve.advantage - 2e-3
    trapezia = 1.0 - float(np.mean(0.5 * (missed[1:] + missed[:-1])))
    assert trapezia - 1e-9 <= curve.area <= trapezia + 2e-3
    assert curve.accuracy(0.5) == pytest.approx(0.5 + 0.5 * curve.advantage)
    assert advantage(PROMISES[name]) == curve.advantage


@pytest.mark.parametrize("prior", [0.01, 0.3, 0.5, 0.9])
@pytest.mark.parametrize("name", ["approximate", "gdp"])
def test_guesses_and_precision_are_those_of_the_worst_release(name, prior):
    worst = {"approximate": randomised_response(1.0, 1e-3), "gdp": gaussian_pair(0.7)}
    p, q = worst[name]
    curve = trade_off(PROMISES[name])
    right = np.maximum(prior * p, (1.0 - prior) * q).sum()  # who takes the more likely one, knowing both laws
    assert curve.accuracy(prior) == pytest.approx(right, abs=1e-6)
    found = 1.0 - best_false_negative(p, q, 0.02)
    precision = prior * found / (prior * found + (1.0 - prior) * 0.02)
    assert curve.precision(prior, 0.02) == pytest.approx(precision, rel=1e-3)
    assert curve.precision(prior, 1.0) == pytest.approx(prior)
    assert curve.precision(0.0, 0.0) == 0.0


@pytest.mark.parametrize("name", ["approximate", "gdp"])
@pytest.mark.parametrize("growth", [1.2, 2.0, 3.0])
def test_how_often_odds_grow_by_more_is_attained_and_never_passed(name, growth):
    """Somebody is told whether the outcome is in a set with the ratio e^growth: the line meets the curve there."""
    curve = trade_off(PROMISES[name])
    rates = np.geomspace(1e-7, 0.5, 40_000)
    found = 1.0 - curve.false_negative(rates)
    attained = found[found >= math.exp(growth) * rates].max(initial=0.0)
    assert attained <= curve.failure(growth) * (1.0 + 1e-6)
    assert curve.failure(growth) <= 1.05 * attained
    again = curve.odds_growth(curve.failure(growth))
    assert again == pytest.approx(growth, abs=0.05)


def test_a_delta_makes_the_epsilon_of_a_promise_a_poor_bound_on_odds():
    """The worst release often passes any odds below e^epsilon, so that only more than epsilon is rare."""
    curve = trade_off(1.0, 1e-6)
    assert curve.failure(1.0) > 0.5
    assert curve.failure(1.0 - math.log(0.9)) == pytest.approx(1e-5, rel=1e-9)
    assert curve.odds_growth() == pytest.approx(1.0 - math.log(0.9))
    assert trade_off(1.0).failure(1.0) == 0.0
    assert trade_off(1.0).odds_growth() == 1.0


@pytest.mark.parametrize("order", [2.0, 10.0])
def test_the_bound_for_renyi_is_that_of_markov(order):
    """The slides' reading: the moment of order a - 1 of the growth of odds is at most e^((a - 1) epsilon)."""
    curve, growth = trade_off(Renyi(order, 0.3)), 4.0
    assert curve.failure(growth) == pytest.approx(math.exp((order - 1.0) * (0.3 - growth)), rel=0.05)


def test_posteriors_are_bayes_theorem():
    assert posterior(0.5, 1.0) == pytest.approx(math.e / (1.0 + math.e))
    assert posterior(0.2, 1.0) == pytest.approx(0.2 * math.e / (0.2 * math.e + 0.8))
    assert posterior(0.0, 1.0) == 0.0
    assert posterior(1.0, 1.0) == 1.0
    assert posterior(0.5, Budget.gdp(1.0), failure=1e-6) > posterior(0.5, Budget.gdp(1.0), failure=1e-3)


def test_without_privacy_everything_is_found():
    for curve in (trade_off(math.inf), trade_off(accounting.non_private_event(), relation="replace")):
        assert curve.advantage == 1.0
        assert curve.area == 1.0
        assert curve.failure(5.0) == 1.0
        assert curve.false_negative([0.0, 0.5]).tolist() == [0.0, 0.0]


def test_a_guarantee_and_a_plan_have_the_curve_of_what_is_done():
    promise = LogisticRegression(epsilon=1.0, bounds=(0.0, 1.0)).plan(n_samples=1000, n_features=3).guarantee
    curve = trade_off(promise)
    assert isinstance(curve, TradeOff)
    assert curve.advantage < trade_off(1.0, 1e-6).advantage
    assert curve.accuracy(0.5) == pytest.approx(promise.meaning.guess)
    assert curve.posterior(0.5) == pytest.approx(dict(promise.meaning.beliefs)[0.5])


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: trade_off(Budget.gdp(1.0)).posterior(0.5), "failure=1e-6"),
        (lambda: trade_off(accounting.gaussian_event(1.0)), "relation"),
        (lambda: trade_off(1.0).false_negative([1.5]), "between 0 and 1"),
        (lambda: trade_off(1.0).precision(2.0, 0.1), "prior"),
        (lambda: trade_off(-1.0), "epsilon must be positive"),
    ],
)
def test_mistakes_are_named(call, words):
    with pytest.raises(ValueError, match=words):
        call()


@pytest.mark.parametrize("name", ["approximate", "gdp"])
def test_meanings_are_drawn(name, tmp_path):
    pytest.importorskip("matplotlib")
    plot_meaning(PROMISES[name], tmp_path / "a.png", failure=1e-3)
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
