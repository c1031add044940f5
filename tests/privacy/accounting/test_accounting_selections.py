"""Selections against an independent recursion, zCDP, and Google's accountants on the same runs."""

from __future__ import annotations

import math

import numpy as np
import pytest
from dp_accounting import dp_event as dp
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.privacy.accounting import (
    certify,
    compose,
    delta_of,
    epsilon_of,
    fixed_size_event,
    gaussian_delta,
    gaussian_epsilon,
    gaussian_event,
    google_epsilon,
    laplace_event,
    mixture_event,
    poisson_event,
    pure_epsilon_of,
    randomised_response_event,
    rho_of,
    selection_event,
)
from discreet.privacy.accounting.closed_forms import zcdp_delta, zcdp_epsilon
from discreet.privacy.budget import Budget

REPLACE, ZERO_OUT = "replace", "zero_out"


def dense_choices(range_: float) -> np.ndarray:
    return np.linspace(0.0, range_, 161)


def recursion_from_below(ranges: tuple[float, ...], x: np.ndarray) -> np.ndarray:
    """Evaluate the recursion over finitely many choices, exactly at x: never above the truth."""
    if not ranges:
        return np.maximum(-np.expm1(x), 0.0)
    first, *rest = ranges
    best = np.zeros(x.shape)
    for t in dense_choices(first):
        p = math.expm1(t - first) / math.expm1(-first)
        later = recursion_from_below(tuple(rest), np.concatenate([x - t, x - t + first]))
        best = np.maximum(best, p * later[: x.size] + (1 - p) * later[x.size :])
    return best


class TestSelections:
    RHO = Budget(1.0, 1e-6)

    @pytest.mark.parametrize("ranges", [(0.5,), (0.5, 0.5), (0.2, 0.9), (0.9, 0.2), (2.0, 2.0)])
    def test_recursion_is_just_above_the_truth(self, ranges):
        event = compose([selection_event(r) for r in ranges])
        for share in (0.2, 0.6):
            epsilon = share * sum(ranges)
            truth = float(recursion_from_below(ranges, np.array([epsilon]))[0])
            assert truth * (1 - 1e-9) <= delta_of(event, epsilon, REPLACE) <= truth * 1.02

    def test_one_selection_has_the_known_profile(self):
        e, x = 0.8, 0.3
        exact = (1 - math.exp((x - e) / 2)) ** 2 / (1 - math.exp(-e))
        assert delta_of(selection_event(e), x, REPLACE) == pytest.approx(exact, rel=2e-3)
        assert delta_of(selection_event(e), x, REPLACE) >= exact

    def test_booking_a_selection_as_gaussian_would_be_wrong(self):
        truth = float(recursion_from_below((1.0,), np.array([0.0]))[0])
        assert gaussian_delta(0.0, 0.5) < 0.9 * truth < delta_of(selection_event(1.0), 0.0, REPLACE)

    @pytest.mark.parametrize(("steps", "epsilon"), [(1, 0.84), (2, 0.88), (10, 0.92)])
    def test_plans_calibrated_by_rho_really_cost_less(self, steps, epsilon):
        """Greedy coordinate descent at (1, 1e-6): a selection and a Gaussian a step, half of rho each."""
        rho = _rho_for(1.0, 1e-6) / (2 * steps)
        step = compose([selection_event(math.sqrt(8 * rho)), gaussian_event(1 / math.sqrt(2 * rho))])
        certificate = certify(dp.SelfComposedDpEvent(step, steps), 1e-6, REPLACE)
        assert certificate.epsilon == pytest.approx(epsilon, abs=0.005)
        assert certificate.route == "bounded-range recursion"

    @pytest.mark.parametrize(("steps", "epsilon"), [(5, 0.84), (10, 0.90), (300, 0.93)])
    def test_frank_wolfe_plans_calibrated_by_rho(self, steps, epsilon):
        event = selection_event(math.sqrt(8 * _rho_for(1.0, 1e-6) / steps), steps)
        assert epsilon_of(event, 1e-6, REPLACE) == pytest.approx(epsilon, abs=0.006)

    def test_gaussians_first_is_the_worst_order(self):
        selection, noise = selection_event(0.3, 4), gaussian_event(3.0, 4)
        interleaved = dp.SelfComposedDpEvent(compose([selection_event(0.3), gaussian_event(3.0)]), 4)
        last, mixed, first = (
            epsilon_of(event, 1e-6, REPLACE)
            for event in (compose([selection, noise]), interleaved, compose([noise, selection]))
        )
        assert last < mixed < first < zcdp_epsilon(rho_of(interleaved, REPLACE), 1e-6)

    def test_too_many_selections_fall_back_to_zcdp(self):
        event = selection_event(0.001, 10**6)
        certificate = certify(event, 1e-6, REPLACE)
        assert certificate.route == "zCDP"
        assert certificate.epsilon == pytest.approx(zcdp_epsilon(0.125, 1e-6), rel=1e-9)

    def test_selections_compose_with_everything(self):
        event = compose([selection_event(0.1, 10), laplace_event(10.0, 3), poisson_event(0.01, 1.0, 100)])
        certificate = certify(event, 1e-6, ZERO_OUT)
        assert certificate.route == "PLD"
        without = epsilon_of(compose([laplace_event(10.0, 3), poisson_event(0.01, 1.0, 100)]), 1e-6, ZERO_OUT)
        assert without < certificate.epsilon < without + epsilon_of(selection_event(0.1, 10), 1e-7, ZERO_OUT)


def _rho_for(epsilon: float, delta: float) -> float:
    low, high = 1e-9, 10.0
    for _ in range(60):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if zcdp_epsilon(middle, delta) <= epsilon else (low, middle)
    return low


class TestZcdp:
    @given(st.floats(1e-6, 5.0), st.floats(-14, -1))
    @settings(deadline=None)
    def test_bounds_the_gaussian_it_comes_from(self, rho, exponent):
        delta = 10.0**exponent
        exact = gaussian_epsilon(delta, math.sqrt(2 * rho))
        bound = zcdp_epsilon(rho, delta)
        assert exact <= bound <= rho + 2 * math.sqrt(rho * math.log(1 / delta)) + 1e-12
        if bound > 0:
            assert zcdp_delta(rho, bound) == pytest.approx(delta, rel=1e-3)


class TestGoogle:
    """Google's accountants, asked about the same run, must find no more than we promise (but for their grid)."""

    @given(
        st.floats(1.0, 20.0),
        st.floats(2.0, 40.0),
        st.integers(1, 20),
        st.sampled_from([1e-4, 1e-6, 1e-8]),
    )
    @settings(deadline=None, max_examples=8)
    def test_gaussian_and_laplace(self, z, b, count, delta):
        event = compose([gaussian_event(z, count), laplace_event(b, count)])
        ours, theirs = epsilon_of(event, delta, REPLACE), google_epsilon(event, delta, REPLACE)
        assert 0.99 * theirs <= ours <= theirs * (1 + 1e-3)

    @pytest.mark.slow
    @given(st.floats(0.001, 0.3), st.floats(0.7, 4.0), st.integers(1, 300), st.sampled_from([REPLACE, ZERO_OUT]))
    @settings(deadline=None, max_examples=8)
    def test_poisson_with_and_without_gaussians(self, rate, z, count, relation):
        event = compose([poisson_event(rate, z, count), gaussian_event(9.0)])
        ours, theirs = epsilon_of(event, 1e-6, relation), google_epsilon(event, 1e-6, relation)
        assert 0.98 * theirs <= ours <= theirs * (1 + 1e-3)

    def test_gaussians_alone(self):
        event = gaussian_event(10.0, 50)
        assert google_epsilon(event, 1e-6, REPLACE) == pytest.approx(epsilon_of(event, 1e-6, REPLACE), rel=1e-4)

    def test_selections_compare_with_our_zcdp_route(self):
        event = compose([selection_event(0.1, 20), gaussian_event(5.0)])
        theirs = google_epsilon(event, 1e-6, REPLACE)
        ours = zcdp_epsilon(rho_of(event, REPLACE), 1e-6)
        assert ours <= theirs * (1 + 1e-6)
        assert theirs <= ours * 1.02
        assert epsilon_of(event, 1e-6, REPLACE) < ours

    @pytest.mark.parametrize(
        ("event", "relation"),
        [
            (fixed_size_event(1000, 10, 0.9, 200), REPLACE),
            (compose([fixed_size_event(1000, 10, 0.9, 50), laplace_event(8.0)]), ZERO_OUT),
            (randomised_response_event(0.9, 3, 15), REPLACE),
            (mixture_event(1.0, [0.0, 0.5, 1.0], [0.9, 0.05, 0.05], 30), ZERO_OUT),
        ],
    )
    def test_what_they_have_no_event_for_agrees_under_their_convolution(self, event, relation):
        ours, theirs = epsilon_of(event, 1e-5, relation), google_epsilon(event, 1e-5, relation)
        assert 0.99 * theirs <= ours <= theirs * (1 + 1e-3)

    def test_pure_composition_is_never_beaten_by_them(self):
        event = laplace_event(1.0, 2)
        assert epsilon_of(event, 1e-9, REPLACE) <= pure_epsilon_of(event, REPLACE) == 2.0
        assert google_epsilon(event, 1e-9, REPLACE) >= epsilon_of(event, 1e-9, REPLACE) * (1 - 1e-6)
