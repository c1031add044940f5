"""Each route against an independent computation of the truth, and against Google's accountants."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from dp_accounting import dp_event as dp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr

from discreet.privacy.accounting import (
    calibrate,
    delta_of,
    epsilon_of,
    fixed_size_event,
    gaussian_epsilon,
    poisson_event,
)
from discreet.privacy.accounting.pairs import (
    BoundedRangePair,
    FixedSizeGaussianPair,
    GaussianMixturePair,
    LaplacePair,
    PoissonReplacePair,
    ReversedPair,
    SampledGaussianPair,
    randomised_response,
)
from discreet.privacy.accounting.pld.convolution import compose as compose_pairs
from discreet.privacy.accounting.pld.convolution import log_transform
from discreet.privacy.accounting.pld.discretisation import connect_dots
from discreet.privacy.budget import Budget

REPLACE, ZERO_OUT = "replace", "zero_out"


def mixture_law(rate: float, shift: float, other: float | None) -> tuple[np.ndarray, np.ndarray]:
    """Losses and masses of (1 - rate) N(0) + rate N(shift) against (1 - rate) N(0) + rate N(other)."""
    edges = np.linspace(-12.0, 12.0 + abs(shift), 2401)
    y = 0.5 * (edges[1:] + edges[:-1])

    def density(at):
        return np.exp(-0.5 * (y - at) ** 2)

    p = (1 - rate) * density(0) + rate * density(shift)
    q = density(0) if other is None else (1 - rate) * density(0) + rate * density(other)
    masses = (1 - rate) * np.diff(ndtr(edges)) + rate * np.diff(ndtr(edges - shift))
    return np.log(p / q), masses


def swapped(law: tuple[np.ndarray, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    losses, masses = law
    return -losses, masses * np.exp(-losses)


def piecewise_law(rate: float, shift: float) -> tuple[np.ndarray, np.ndarray]:
    """The law of a batch of fixed size: the sampled pair where its loss is positive, mirrored below zero."""
    losses, masses = mixture_law(rate, shift, None)
    up = losses > 0
    down_losses, down_masses = -losses[up], masses[up] * np.exp(-losses[up])
    rest = 1.0 - masses[up].sum() - down_masses.sum()
    return np.concatenate([losses[up], down_losses, [0.0]]), np.concatenate([masses[up], down_masses, [rest]])


def true_delta(law: tuple[np.ndarray, np.ndarray], times: int, epsilon: float) -> float:
    """Compose 1, 2 or 4 times by summing over all pairs of losses, without a grid, rounding or a transform."""
    losses, masses = law
    if times == 4:
        sums, products = (losses[:, None] + losses).ravel(), np.outer(masses, masses).ravel()
        losses, masses = joined(sums, products, scale=epsilon / 50)
    if times > 1:
        losses, masses = (losses[:, None] + losses).ravel(), np.outer(masses, masses).ravel()
    above = losses > epsilon
    return float(np.sum(-np.expm1(epsilon - losses[above]) * masses[above]))


def joined(losses: np.ndarray, masses: np.ndarray, scale: float) -> tuple[np.ndarray, np.ndarray]:
    """Join losses that agree to a hundredth (or to a hundredth of the scale) at their mean."""
    index = np.floor(100 * np.arcsinh(losses / scale)).astype(int)
    total = np.bincount(index - index.min(), masses)
    held = total > 0
    return np.bincount(index - index.min(), losses * masses)[held] / total[held], total[held]


SAMPLED = {
    "poisson, record out": (lambda q, m: mixture_law(q, m, None), SampledGaussianPair),
    "poisson, record in": (
        lambda q, m: swapped(mixture_law(q, m, None)),
        lambda q, m: ReversedPair(SampledGaussianPair(q, m)),
    ),
    "poisson, replaced": (lambda q, m: mixture_law(q, m, -m), PoissonReplacePair),
    "fixed size": (piecewise_law, FixedSizeGaussianPair),
}


class TestSampledPairs:
    @pytest.mark.parametrize("times", [1, 2, 4])
    @pytest.mark.parametrize("kind", SAMPLED)
    def test_the_grid_is_above_the_truth_by_less_than_two_per_cent(self, kind, times):
        truth, pair = SAMPLED[kind]
        for rate, shift in [(0.01, 1.0), (0.2, 2.0), (0.001, 0.5)]:
            scale = 0.3 * rate * math.expm1(shift**2) ** 0.5
            for epsilon in (scale, 4 * scale):
                exact = true_delta(truth(rate, shift), times, epsilon)
                if exact > 1e-12:
                    ours = float(compose_pairs([(pair(rate, shift), times)], exact).delta(np.array([epsilon]))[0])
                    assert exact * (1 - 1e-3) <= ours <= exact * 1.02

    @pytest.mark.parametrize(
        ("honest", "wrong", "wrong_relation"),
        [
            # Half the shift for a batch of fixed size (its multiplier taken for std / C).
            (fixed_size_event(100, 1, 0.5, 2), fixed_size_event(100, 1, 1.0, 2), REPLACE),
            # A replaced record accounted as one that was taken out.
            (poisson_event(0.1, 1.0, 2), poisson_event(0.1, 1.0, 2), ZERO_OUT),
        ],
    )
    def test_the_check_rejects_planted_faults(self, honest, wrong, wrong_relation):
        is_fixed = isinstance(honest.event, dp.SampledWithoutReplacementDpEvent)
        law = piecewise_law(0.01, 2.0) if is_fixed else mixture_law(0.1, 1.0, -1.0)
        exact = true_delta(law, 2, 0.3)
        assert delta_of(honest, 0.3, REPLACE) >= exact * (1 - 1e-3)
        assert delta_of(wrong, 0.3, wrong_relation) < 0.7 * exact

    def test_the_replaced_pair_is_the_worst_of_many(self):
        """No other pair of gradients in the plane (row in g, row out h, both of norm <= 1) is worse."""
        x, y = np.meshgrid(np.linspace(-8, 8, 301), np.linspace(-8, 8, 301))
        rate, multiplier = 0.2, 0.8

        def mixture(g):
            at = np.asarray(g) / multiplier
            return (1 - rate) * np.exp(-(x**2 + y**2) / 2) + rate * np.exp(-((x - at[0]) ** 2 + (y - at[1]) ** 2) / 2)

        for epsilon in (0.0, 0.3, 1.0):
            bound = delta_of(poisson_event(rate, multiplier, 1), epsilon, REPLACE)
            found = []
            for r, s, angle in itertools.product((0.0, 0.5, 1.0), (0.0, 0.5, 1.0), np.linspace(0, math.pi, 7)):
                p, q = mixture((r, 0.0)), mixture((s * math.cos(angle), s * math.sin(angle)))
                found.append(float(np.maximum(p - math.exp(epsilon) * q, 0).sum() / p.sum()))
            # The sums over the plane are good to a thousandth.
            assert bound * (1 - 1e-3) <= max(found) <= bound * (1 + 1e-3)

    def test_batch_of_one_in_forty_five_thousand(self):
        """2.2 million steps: calibrated, and far below both the unamplified cost and Renyi accounting."""
        n = 45_312
        z = calibrate(lambda z: fixed_size_event(n, 1, z, 50 * n), Budget(1.0, n**-2), REPLACE)
        assert 0.999 <= epsilon_of(fixed_size_event(n, 1, z, 50 * n), n**-2, REPLACE) <= 1.0
        assert 0.64 < z < 0.66


class TestGrid:
    PAIRS = (
        SampledGaussianPair(1.0, 0.7),
        SampledGaussianPair(0.1, 1.5),
        ReversedPair(SampledGaussianPair(0.1, 1.5)),
        PoissonReplacePair(0.1, 1.5),
        FixedSizeGaussianPair(0.1, 1.5),
        LaplacePair(0.9),
        BoundedRangePair(0.9),
        randomised_response(0.4, 3),
        GaussianMixturePair((0.0, 0.5, 2.0), (0.5, 0.3, 0.2)),
    )

    @pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: type(pair).__name__)
    def test_tails_belong_to_one_pair(self, pair):
        """dP = e^l dQ, so the tail under P is the integral of e^l over the tail under Q; both have mass one."""
        x = np.linspace(1e-9, 0.85, 20_001)
        p, q = pair.above(x)
        step_p, step_q = -np.diff(p), -np.diff(q)
        assert np.all(step_p <= np.exp(x[1:]) * step_q + 1e-15)
        assert np.all(step_p >= np.exp(x[:-1]) * step_q - 1e-15)
        low_p, low_q = pair.below(-x[::-1])
        at_zero_p, at_zero_q = (1 - above[0] - below[-1] for above, below in ((p, low_p), (q, low_q)))
        assert at_zero_p == pytest.approx(at_zero_q, abs=1e-6)
        assert at_zero_p >= -1e-12

    @pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: type(pair).__name__)
    def test_connecting_dots_never_lowers_the_profile(self, pair):
        law = connect_dots(pair, np.linspace(-30, 30, 401))
        assert law.masses.sum() + law.infinity == pytest.approx(1.0, abs=1e-12)
        for epsilon in np.linspace(0, 2, 23):
            p, q = pair.above(np.array([epsilon]))
            exact = float(p[0] - math.exp(epsilon) * q[0])
            above = law.losses > epsilon
            ours = law.infinity + np.dot(law.masses[above], -np.expm1(epsilon - law.losses[above]))
            assert ours >= exact - 1e-15

    @pytest.mark.parametrize("delta", [1e-3, 1e-10, 1e-40, 1e-200])
    @pytest.mark.parametrize("times", [1, 30, 100_000])
    def test_gaussians_on_the_grid_agree_with_the_closed_form(self, times, delta):
        """The tilt keeps the digits: even delta = 1e-200 is bounded from above, to a thousandth in epsilon."""
        pair = SampledGaussianPair(1.0, 0.4 / math.sqrt(times))
        exact = gaussian_epsilon(delta, 0.4)
        assert exact * (1 - 1e-9) <= compose_pairs([(pair, times)], delta).epsilon(delta) <= exact * (1 + 1e-3)

    def test_masses_that_cancel_leave_finite_logarithms(self):
        """Two equal masses half the grid apart add up to nothing at every odd frequency."""
        logs, errors = log_transform(np.array([0, 2048]), np.array([0.5, 0.5]), 4096, 10)
        assert np.isfinite(logs).all()
        assert np.isfinite(errors).all()
        assert logs.real[1] < -600.0
        assert logs[0] == 0.0

    @given(st.lists(st.floats(0.0, 1.0), min_size=4, max_size=40), st.integers(1, 10**7))
    @settings(deadline=None, max_examples=40)
    def test_the_transform_stays_within_its_error(self, weights, times):
        import mpmath

        masses = np.array([*weights, 1.0]) / (math.fsum(weights) + 1.0)
        positions = 37 * np.arange(masses.size) - 300
        logs, errors = log_transform(positions, masses, 4096, times)
        for j in (0, 1, 7, 500):
            exact = sum(
                mpmath.mpf(float(m)) * mpmath.expjpi(-2 * mpmath.mpf(int(p) * j) / 4096)
                for m, p in zip(masses, positions, strict=True)
            )
            ratio = complex(mpmath.exp(mpmath.mpc(complex(logs[j]))) / exact)
            # Masses that are rounded do not sum to one exactly; that error is booked elsewhere.
            assert abs(ratio - 1) <= math.expm1(float(errors[j])) + 4e-15
