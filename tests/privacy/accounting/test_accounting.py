"""The laws that any accounting must obey, calibration and trade-off curves."""

from __future__ import annotations

import math

import numpy as np
import pytest
from dp_accounting import dp_event as dp
from hypothesis import given
from hypothesis import strategies as st

from discreet.privacy.accounting import (
    amount_of,
    calibrate,
    certify,
    compose,
    delta_of,
    epsilon_of,
    fits,
    fixed_size_event,
    gaussian_epsilon,
    gaussian_event,
    laplace_event,
    mixture_event,
    mu_of,
    no_event,
    non_private_event,
    poisson_event,
    pure_epsilon_of,
    randomised_response_event,
    rho_of,
    selection_event,
    tradeoff,
)
from discreet.privacy.budget import Budget
from discreet.privacy.relation import Relation

REPLACE, ZERO_OUT, ADD_REMOVE = Relation.REPLACE, Relation.ZERO_OUT, Relation.ADD_REMOVE

# One of each kind, as a function of a noise level, under a relation that it supports.
KINDS = {
    "gaussian": (lambda z, count=1: gaussian_event(z, count), REPLACE),
    "laplace": (lambda z, count=1: laplace_event(z, count), REPLACE),
    "selection": (lambda z, count=1: selection_event(1 / z, count), REPLACE),
    "poisson": (lambda z, count=1: poisson_event(0.05, z, count), ZERO_OUT),
    "poisson replace": (lambda z, count=1: poisson_event(0.05, z, count), REPLACE),
    "fixed size": (lambda z, count=1: fixed_size_event(1000, 20, z, count), REPLACE),
    "response": (
        lambda z, count=1: randomised_response_event(2 / (1 + math.exp(1 / z)), 2, count),
        REPLACE,
    ),
    "mixture": (lambda z, count=1: mixture_event(z, [0.0, 0.5, 1.0], [0.8, 0.1, 0.1], count), ZERO_OUT),
}
ALL_KINDS = pytest.mark.parametrize("kind", KINDS)

multipliers = st.floats(0.5, 50.0)


class TestLaws:
    @ALL_KINDS
    def test_composing_costs_the_same_written_either_way(self, kind):
        build, relation = KINDS[kind]
        together = build(5.0, count=6)
        one_by_one = compose([build(5.0)] * 6)
        nested = compose(
            [build(5.0), dp.SelfComposedDpEvent(compose([build(5.0, count=2), no_event()]), 2), build(5.0)]
        )
        expected = certify(together, 1e-6, relation)
        assert certify(one_by_one, 1e-6, relation) == expected
        assert certify(nested, 1e-6, relation) == expected

    @pytest.mark.parametrize("kind", [k for k in KINDS if k != "selection"])
    def test_order_does_not_matter_without_selections(self, kind):
        build, relation = KINDS[kind]
        forwards = compose([build(5.0, count=3), gaussian_event(8.0)])
        backwards = compose([gaussian_event(8.0), build(5.0, count=3)])
        assert epsilon_of(forwards, 1e-6, relation) == pytest.approx(epsilon_of(backwards, 1e-6, relation), rel=1e-6)

    @ALL_KINDS
    def test_more_noise_never_costs_more(self, kind):
        build, relation = KINDS[kind]
        costs = [epsilon_of(build(z, count=10), 1e-6, relation) for z in (1.0, 2.0, 4.0, 8.0)]
        assert costs == sorted(costs, reverse=True)
        assert costs[0] > costs[-1] > 0

    @ALL_KINDS
    def test_epsilon_and_delta_are_inverse(self, kind):
        build, relation = KINDS[kind]
        event = build(4.0, count=10)
        for delta in (1e-4, 1e-9):
            epsilon = epsilon_of(event, delta, relation)
            if certify(event, delta, relation).route != "pure composition":
                assert delta_of(event, epsilon, relation) == pytest.approx(delta, rel=0.02)

    @ALL_KINDS
    def test_another_release_never_lowers_the_cost(self, kind):
        build, relation = KINDS[kind]
        alone = epsilon_of(build(4.0, count=5), 1e-6, relation)
        for extra in (gaussian_event(6.0), laplace_event(9.0)):
            assert epsilon_of(compose([build(4.0, count=5), extra]), 1e-6, relation) > alone

    @given(st.floats(1e-12, 0.5), multipliers)
    def test_certificates_of_gaussians_name_the_closed_form(self, delta, z):
        certificate = certify(gaussian_event(z, 3), delta, REPLACE)
        assert certificate.route == "closed form (Gaussian DP)"
        assert certificate.epsilon == pytest.approx(gaussian_epsilon(delta, math.sqrt(3) / z), rel=1e-9)

    def test_nothing_and_everything(self):
        assert epsilon_of(no_event(), 0.0, REPLACE) == 0.0
        assert delta_of(no_event(), 0.0, REPLACE) == 0.0
        for event in (non_private_event(), gaussian_event(0.0), selection_event(math.inf)):
            mixed = compose([event, gaussian_event(1.0)])
            assert epsilon_of(mixed, 1e-6, REPLACE) == math.inf
            assert delta_of(mixed, 10.0, REPLACE) == 1.0
            assert not fits(mixed, Budget(1e6, 1e-6), REPLACE)
            assert fits(mixed, Budget(math.inf, 1e-6), REPLACE)

    def test_pure_plans_have_an_epsilon_at_delta_zero(self):
        event = compose([laplace_event(2.0, 3), selection_event(0.25, 2)])
        assert certify(event, 0.0, REPLACE).epsilon == pure_epsilon_of(event, REPLACE) == 2.0
        assert delta_of(event, 2.0, REPLACE) == 0.0


class TestCalibration:
    @ALL_KINDS
    @pytest.mark.parametrize("budget", [Budget(1.0, 1e-6), Budget(0.2, 1e-9)])
    def test_spends_the_whole_budget_and_no_more(self, kind, budget):
        build, relation = KINDS[kind]
        z = calibrate(lambda z: build(z, count=12), budget, relation)
        spent = epsilon_of(build(z, count=12), budget.delta, relation)
        assert 0.999 * budget.epsilon <= spent <= budget.epsilon
        assert fits(build(z, count=12), budget, relation)

    @pytest.mark.parametrize(
        ("budget", "kind", "cost"),
        [
            (Budget.pure(1.0), "laplace", pure_epsilon_of),
            (Budget.pure(0.3), "response", pure_epsilon_of),
            (Budget.zcdp(0.1), "gaussian", rho_of),
            (Budget.zcdp(0.1), "selection", rho_of),
            (Budget.zcdp(0.1), "laplace", rho_of),
            (Budget.gdp(0.5), "gaussian", mu_of),
            (Budget.gdp(0.5), "fixed size", mu_of),
        ],
    )
    def test_other_currencies(self, budget, kind, cost):
        build, relation = KINDS[kind]
        z = calibrate(lambda z: build(z, count=7), budget, relation)
        assert (1 - 1e-9) * budget.amount <= cost(build(z, count=7), relation) <= budget.amount
        assert fits(build(z, count=7), budget, relation)
        assert not fits(build(z * (1 - 1e-6), count=7), budget, relation)

    @given(st.floats(0.05, 10), st.floats(-12, -3), st.integers(1, 10_000), st.floats(0.0, 0.9))
    def test_gaussian_plans_in_closed_form(self, epsilon, exponent, count, share):
        """With a fixed part that takes a share of mu^2, the rest is sqrt(count / (1 - share)) / mu."""
        budget = Budget(epsilon, 10.0**exponent)
        mu = budget.gaussian_mu()
        fixed = gaussian_event(1 / (mu * math.sqrt(share))) if share > 1e-6 else no_event()
        z = calibrate(lambda z: compose([fixed, gaussian_event(z, count)]), budget, REPLACE)
        kept = share if share > 1e-6 else 0.0
        assert z == pytest.approx(math.sqrt(count / (1 - kept)) / mu, rel=1e-9)
        assert epsilon_of(compose([fixed, gaussian_event(z, count)]), budget.delta, REPLACE) <= epsilon

    @pytest.mark.parametrize("start", [1e-9, 0.3, 20.0, 1e9])
    @pytest.mark.parametrize("budget", [Budget(0.2, 1e-9), Budget.zcdp(0.01)], ids=str)
    def test_fits_wherever_the_search_begins(self, start, budget):
        def plan(z):
            return compose([selection_event(2.0 / z, 3), gaussian_event(z, 2)])

        spent = amount_of(plan(calibrate(plan, budget, REPLACE, start)), budget, REPLACE)
        assert 0.999 * budget.amount <= spent <= budget.amount

    def test_infinite_budgets_need_no_noise(self):
        assert calibrate(gaussian_event, Budget(math.inf, 1e-6), REPLACE) == 0.0

    def test_a_plan_without_noisy_steps_needs_no_noise(self):
        assert calibrate(lambda z: gaussian_event(z, 0), Budget(1.0, 1e-6), REPLACE) == 0.0

    def test_impossible_budgets_are_refused(self):
        with pytest.raises(ValueError, match="delta > 0"):
            calibrate(gaussian_event, Budget.pure(1.0), REPLACE)
        with pytest.raises(ValueError, match="does not depend on the noise"):
            calibrate(lambda z: compose([laplace_event(0.5), gaussian_event(z)]), Budget(1.0, 1e-6), REPLACE)

    def test_thirds_of_a_budget_fit_despite_rounding(self):
        assert 0.1 + 0.1 + 0.1 > 0.3
        assert fits(laplace_event(10.0, 3), Budget.pure(0.3), REPLACE)
        assert not fits(laplace_event(10.0 * (1 - 1e-9), 3), Budget.pure(0.3), REPLACE)


class TestTradeoff:
    def test_gaussian_curve_is_exact(self):
        alpha, beta = tradeoff(gaussian_event(2.0), REPLACE, points=101)
        assert (alpha[0], beta[0], alpha[-1], beta[-1]) == (0.0, 1.0, 1.0, 0.0)
        middle = np.argmin(np.abs(alpha - 0.5))
        assert beta[middle] == pytest.approx(0.5 * math.erfc(0.5 / math.sqrt(2)), abs=1e-9)

    @ALL_KINDS
    def test_curves_are_convex_decreasing_and_below_blind_guessing(self, kind):
        build, relation = KINDS[kind]
        alpha, beta = tradeoff(build(3.0, count=4), relation, points=60)
        assert np.all(np.diff(beta) <= 1e-12)
        assert np.all(beta <= 1 - alpha + 1e-12)
        slopes = np.diff(beta) / np.diff(alpha)
        assert np.all(np.diff(slopes) >= -1e-6 * (1 + np.abs(slopes[1:])))

    def test_noise_added_in_another_way_gives_nearly_the_same_curve(self):
        """A Poisson sample of nearly everything is nearly the Gaussian, whose curve is known."""
        _, exact = tradeoff(gaussian_event(2.0), ZERO_OUT, points=50)
        _, sampled = tradeoff(poisson_event(0.9999, 2.0, 1), ZERO_OUT, points=50)
        assert np.all(sampled <= exact + 1e-3)
        assert np.all(sampled >= exact - 1e-2)
