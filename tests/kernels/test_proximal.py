"""The slopes at proximal points solve their equation for every finite input, and rise with the margin."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.kernels.slopes import fill_proximal_slopes
from discreet.problem.losses import Huber, Logistic, SmoothedHinge, Squared

LOSSES = [Squared(), Logistic(), Huber(0.7), SmoothedHinge(0.5), SmoothedHinge(1e-50), Huber(1e50)]
FINITE = st.one_of(
    st.floats(-50.0, 50.0),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from([0.0, 5e-324, 1e-300, 1e-16, 695.0, 710.0, 1e6, 1e150, -1e300, 1.7e308, -1.7e308]),
)
SIGNS = st.sampled_from([-1.0, 1.0])


def slopes_of(loss, margins, y, stiffness):
    margins, y, stiffness = (np.atleast_1d(np.asarray(part, dtype=np.float64)) for part in (margins, y, stiffness))
    slopes = np.full(margins.size, np.nan)
    fill_proximal_slopes(loss.code, float(loss.parameter), margins, y, stiffness, slopes)
    return slopes


def excess(margin, stiffness, s):
    """s - 1 / (1 + exp(margin + stiffness s)) in 60 digits, which rises with s and is 0 at the solution."""
    with mpmath.workdps(60):
        point = mpmath.mpf(margin) + mpmath.mpf(stiffness) * s
        return s - (1 / (1 + mpmath.exp(point)) if point < 1e6 else mpmath.mpf(0))


@settings(max_examples=400, deadline=None)
@given(margin=FINITE, stiffness=FINITE.map(abs), y=SIGNS)
def test_the_logistic_slope_lies_within_rounding_of_the_solution(margin, stiffness, y):
    """A bracket in 60 digits; arguments near the limits of doubles lose digits of the exponential, not more."""
    s = -y * slopes_of(Logistic(), y * margin, y, stiffness)[0]
    assert 0.0 <= s <= 1.0
    width = 4e-16 + 1e-13 * s
    with mpmath.workdps(60):
        assert excess(margin, stiffness, mpmath.mpf(s) - width) <= 0.0
        assert excess(margin, stiffness, mpmath.mpf(s) + width) >= 0.0


def test_the_places_where_newton_steps_are_hardest():
    """Where the two mirrored forms meet, and where the solution is a small difference of large numbers."""
    for stiffness in 10.0 ** np.arange(-10.0, 307.0, 7.0):
        for shift in (0.0, 1e-12, -1e-12, 1e-3, -1e-3, 0.3, -0.3):
            margin = float(-0.5 * stiffness * (1.0 + shift))
            s = -slopes_of(Logistic(), margin, 1.0, stiffness)[0]
            with mpmath.workdps(400):
                assert excess(margin, stiffness, mpmath.mpf(s) - mpmath.mpf(1e-15)) <= 0.0
                assert excess(margin, stiffness, mpmath.mpf(s) + mpmath.mpf(1e-15)) >= 0.0


@settings(max_examples=200, deadline=None)
@given(margin=FINITE, stiffness=FINITE.map(abs), target=FINITE, loss=st.sampled_from(LOSSES))
def test_every_slope_keeps_its_bound_and_sign(margin, stiffness, target, loss):
    y = float(np.copysign(1.0, target)) if loss.classification else target
    s = slopes_of(loss, margin, y, stiffness)[0]
    if not np.isfinite(margin - y) or not np.isfinite(stiffness + margin):
        return  # the sum that drops rows which are not finite is another test's
    at_once = float(loss.slope(margin, y))
    # A proximal step flattens the slope; that of the logistic loss does not fall below 1e-301.
    assert abs(s) <= min(loss.lipschitz, abs(at_once) * (1.0 + 1e-12) + 1e-301)
    assert np.sign(s) * np.sign(at_once) >= 0.0


@pytest.mark.parametrize("loss", LOSSES[:4], ids=lambda loss: loss.name)
def test_slopes_solve_the_equation_and_rise_with_the_margin(loss):
    rng = np.random.default_rng(0)
    n = 20_000
    margins = np.sort(rng.normal(0.0, 5.0, n))
    for y in (-1.0, 1.0):
        for stiffness in (0.0, 0.1, 4.0, 60.0, 1e4):
            slopes = slopes_of(loss, margins, np.full(n, y), np.full(n, stiffness))
            np.testing.assert_allclose(
                slopes, loss.slope(margins - stiffness * slopes, y), rtol=0.0, atol=1e-15 * (1.0 + 40.0 * stiffness)
            )
            assert (np.diff(slopes) >= -1e-14).all()


def test_the_slope_of_a_clipped_loss_is_the_clipped_slope():
    """So clipping after the solve is the proximal step of another convex loss: the proof of convergence still holds."""
    rng = np.random.default_rng(1)
    margins, y, stiffness = rng.normal(0.0, 4.0, 2_000), rng.choice([-1.0, 1.0], 2_000), rng.exponential(4.0, 2_000)
    for loss in LOSSES[:4]:
        for limit in (0.1, 0.4):
            clipped = np.clip(slopes_of(loss, margins, y, stiffness), -limit, limit)
            again = np.clip(loss.slope(margins - stiffness * clipped, y), -limit, limit)
            np.testing.assert_allclose(clipped, again, atol=1e-12)


def test_numbers_that_are_not_finite_spoil_their_own_row_alone():
    margins = np.array([0.5, np.nan, np.inf, 1.0])
    found = slopes_of(Logistic(), margins, np.ones(4), np.ones(4))
    np.testing.assert_array_equal(found[[0, 3]], slopes_of(Logistic(), margins[[0, 3]], np.ones(2), np.ones(2)))
