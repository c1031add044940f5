"""Events of objective perturbation and of pure releases: exact profiles, composition, reading and refusals."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr

from discreet.privacy import accounting
from discreet.privacy.accounting import compose, delta_of, epsilon_of, gaussian_delta, gaussian_event, objective_event
from discreet.privacy.accounting.pairs import ShiftedTailsPair, pure
from discreet.privacy.budget import Budget

REPLACE = "replace"


@settings(max_examples=40)
@given(
    shift=st.floats(0.01, 3.0),
    multiplier=st.floats(0.3, 50.0),
    tails=st.sampled_from([1, 2, 4]),
    delta=st.sampled_from([1e-3, 1e-6, 1e-10]),
)
def test_a_single_objective_event_costs_its_closed_form(shift, multiplier, tails, delta):
    event = objective_event(shift, multiplier, tails)
    wanted = shift + accounting.gaussian_epsilon(delta / tails, 1.0 / multiplier)
    found = epsilon_of(event, delta, REPLACE)
    assert wanted * (1 - 1e-12) <= found <= wanted * (1 + 2e-4)
    assert delta_of(event, wanted, REPLACE) == pytest.approx(delta, rel=0.02)


def test_the_shift_is_not_dropped():
    """The other arm: an account without the determinants would promise too little."""
    assert epsilon_of(objective_event(0.5, 4.0), 1e-6, REPLACE) > 1.3 * epsilon_of(gaussian_event(4.0), 1e-6, REPLACE)


@pytest.mark.parametrize("tails", [1, 2, 4])
@pytest.mark.parametrize(("shift", "mu"), [(0.3, 0.2), (0.05, 1.5), (2.0, 4.0)])
def test_the_pair_is_a_pair(shift, mu, tails):
    """Tails fall from one, Q is P tilted by e^-l, and its total mass is at most one."""
    pair = ShiftedTailsPair(shift, mu, tails)
    x = np.linspace(0.0, shift + 40.0 * mu, 400_001)
    p, q = pair.above(x)
    assert p[0] == 1.0
    assert (np.diff(p) <= 0.0).all()
    assert (np.diff(q) <= 0.0).all()
    with_linear_term = float((-np.diff(p) * np.exp(-0.5 * (x[1:] + x[:-1]))).sum())
    assert q[0] == pytest.approx(with_linear_term, rel=1e-3)
    assert q[0] + pair.below(np.array([-1.0]))[1][0] == 1.0
    assert pair.below(np.array([-1.0]))[0][0] == 0.0
    beyond = x > pair.atom
    np.testing.assert_allclose(p[beyond], tails * ndtr(0.5 * mu - (x[beyond] - shift) / mu), rtol=1e-9)


def test_composition_adds_what_a_quadrature_adds():
    """Objective after Gaussian: E over the Gaussian's loss of the closed-form profile."""
    shift, z, scales, tails = 0.2, 4.0, 12.0, 1
    event = compose([gaussian_event(scales), objective_event(shift, z, tails)])
    nodes, weights = np.polynomial.hermite_e.hermegauss(200)
    losses = 0.5 / scales**2 + nodes / scales
    for epsilon in (0.8, 1.3):
        parts = [tails * gaussian_delta(epsilon - loss - shift, 1 / z) for loss in losses if loss < epsilon - shift]
        rest = weights[losses >= epsilon - shift].sum()
        exact = (weights[losses < epsilon - shift] @ parts + rest) / weights.sum()
        assert delta_of(event, epsilon, REPLACE) == pytest.approx(exact, rel=5e-3)
    assert accounting.google_epsilon(event, 1e-6, REPLACE) <= epsilon_of(event, 1e-6, REPLACE) * 1.005


@settings(max_examples=30)
@given(epsilon=st.floats(0.01, 8.0))
def test_a_pure_event_costs_its_epsilon_and_has_the_profile_of_randomised_response(epsilon):
    event = accounting.pure_event(epsilon)
    assert accounting.pure_epsilon_of(event, "add_remove") == epsilon
    assert accounting.rho_of(event, REPLACE) == 0.5 * epsilon**2
    total = (math.exp(epsilon) - 1.0) / (math.exp(epsilon) + 1.0)
    assert delta_of(event, 0.0, REPLACE) == pytest.approx(total, rel=1e-6)
    p, q = pure(epsilon).above(np.array([0.0]))
    assert p[0] == pytest.approx(q[0] * math.exp(epsilon))


def test_events_survive_a_round_trip_through_json():
    event = compose([accounting.pure_event(0.3), objective_event(0.1, 5.0, 2, count=3)])
    assert accounting.event_from_dict(json.loads(json.dumps(accounting.event_to_dict(event)))) == event


def test_a_ledger_books_the_event(tmp_path):
    from discreet import Ledger

    ledger = Ledger(f"sqlite:///{tmp_path}/ledger.db")
    ledger.open("table", epsilon=2.0, delta=1e-6)
    event = objective_event(0.1, 5.0)
    ledger.reserve("table", event, relation="replace").commit()
    assert ledger.spent("table") == pytest.approx(epsilon_of(event, 1e-6, REPLACE))


def test_currencies_without_a_proof_are_refused():
    event = compose([gaussian_event(5.0), objective_event(0.1, 5.0)])
    with pytest.raises(ValueError, match=r"no cost in rho; use a budget in \(epsilon, delta\)$"):
        accounting.rho_of(event, REPLACE)
    with pytest.raises(ValueError, match=r"no cost in mu; use a budget in \(epsilon, delta\)$"):
        accounting.mu_of(event, REPLACE)
    with pytest.raises(ValueError, match="no cost in rho"):
        accounting.fits(event, Budget.zcdp(1.0), REPLACE)
    assert accounting.pure_epsilon_of(event, REPLACE) == math.inf


def test_limits_of_the_event():
    """No noise is not private; endless noise still shows the determinants; nonsense is refused."""
    assert epsilon_of(objective_event(0.1, 0.0), 1e-6, REPLACE) == math.inf
    assert epsilon_of(objective_event(math.inf, 1.0), 1e-6, REPLACE) == math.inf
    assert epsilon_of(objective_event(0.1, math.inf), 1e-6, REPLACE) == pytest.approx(0.1, rel=1e-3)
    assert epsilon_of(objective_event(0.0, math.inf), 1e-6, REPLACE) == 0.0
    for wrong in ((-0.1, 1.0, 1), (0.1, math.nan, 1), (0.1, 1.0, 0)):
        with pytest.raises(ValueError, match="must be"):
            objective_event(*wrong)


@pytest.mark.parametrize("tiny", [1e-9, 1e-303])
def test_a_tiny_atom_does_not_refine_the_grid(tiny):
    """It is rounded up to a grid that the other releases choose: same epsilon, to the grid's 0.02 %."""
    other = accounting.gaussian_event(20.0)
    small = accounting.compose([accounting.pure_event(tiny), other, accounting.poisson_event(0.1, 5.0)])
    without = accounting.compose([other, accounting.poisson_event(0.1, 5.0)])
    expected = accounting.epsilon_of(without, 1e-6, "zero_out")
    assert accounting.epsilon_of(small, 1e-6, "zero_out") == pytest.approx(expected, rel=1e-3)
