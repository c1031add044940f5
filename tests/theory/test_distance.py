"""Radii of the distance laws: quantiles of simulated distances, attained where they are exact."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom

from discreet.theory.distance import (
    ContractionDistance,
    GaussianDistance,
    KnownDistance,
    MomentDistance,
    SphericalDistance,
)

DRAWS, FAILURE = 20_000, 0.05
# A count of distances above an exact radius lies between the two but with probability 2e-6: the false-alarm rate.
LEAST, MOST = int(binom.ppf(1e-6, DRAWS, FAILURE)), int(binom.isf(1e-6, DRAWS, FAILURE))
WEIGHTS = np.array([0.5, 2.0, 7.0])


def norms(vectors):
    return np.sqrt((np.square(vectors) * WEIGHTS).sum(axis=-1))


def exceeding(distances, law):
    return int((distances > law.radius(FAILURE)).sum())


def test_gaussian_noise_and_its_halved_deviation():
    noise = np.random.default_rng(0).normal(0.0, 0.3, (DRAWS, 3)) / np.sqrt(WEIGHTS)
    law = GaussianDistance(WEIGHTS, 1, "the twin", 0.3)
    assert LEAST <= exceeding(norms(noise), law) <= MOST
    assert exceeding(norms(noise), GaussianDistance(WEIGHTS, 1, "the twin", 0.28)) > MOST
    assert GaussianDistance(WEIGHTS, 1, "the twin", 0.3, error=0.1).radius(0.05) == pytest.approx(
        0.1 + law.radius(0.05)
    )


def test_spherical_noise():
    rng = np.random.default_rng(1)
    direction = rng.normal(size=(DRAWS, 3))
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    noise = direction * rng.gamma(3.0, 0.2, (DRAWS, 1)) / np.sqrt(WEIGHTS)
    assert LEAST <= exceeding(norms(noise), SphericalDistance(WEIGHTS, 1, "the twin", 0.2)) <= MOST
    assert exceeding(norms(noise), SphericalDistance(WEIGHTS, 1, "the twin", 0.18)) > MOST


def iterate(step, after, steps, deviation, start, seed):
    """Distances from the fixed point 0 after noisy steps, in the coordinates sqrt(q_j) v_j."""
    rng = np.random.default_rng(seed)
    u = np.tile(start, (DRAWS, 1))
    for _ in range(steps):
        u = after(step(u) + rng.normal(0.0, deviation, u.shape))
    return np.linalg.norm(u, axis=1)


def identity(u):
    return u


def soft_threshold(u):
    return np.sign(u) * np.maximum(np.abs(u) - 0.05, 0.0)


TAU, STEPS, NOISE, START = 0.8, 8, 0.1, np.array([1.0, -2.0, 0.5])


def contraction_law(tau=TAU):
    return ContractionDistance(
        WEIGHTS, 1, "the fixed point", contraction=tau, deviation=NOISE, steps=STEPS, start=float(np.linalg.norm(START))
    )


@pytest.mark.parametrize(
    ("step", "after"),
    [
        (lambda u: TAU * np.sin(u), identity),
        (lambda u: TAU * np.tanh(u[:, [1, 2, 0]]), identity),  # permuted: a contraction that is no gradient
        (lambda u: np.clip(TAU * u, -0.5, 0.5), soft_threshold),
        (lambda u: TAU * np.abs(u), lambda u: np.clip(u, -1.0, 3.0)),
    ],
)
def test_nonlinear_contractions_stay_within_the_law_of_the_linear_one(step, after):
    assert exceeding(iterate(step, after, STEPS, NOISE, START, 2), contraction_law()) <= MOST


def test_the_linear_contraction_attains_it():
    distances = iterate(lambda u: TAU * u, identity, STEPS, NOISE, START, 3)
    assert LEAST <= exceeding(distances, contraction_law()) <= MOST
    assert exceeding(distances, contraction_law(0.95 * TAU)) > MOST  # a planted fault


@pytest.mark.parametrize("start", [0.0, 1.0, 1e3, 1e6, 1e12])
def test_contraction_radii_are_finite_however_far_the_start(start):
    law = ContractionDistance(np.ones(5), 1, "the fixed point", contraction=1.0, deviation=1.0, steps=1, start=start)
    radius = law.radius(0.01)
    assert start <= radius <= start + GaussianDistance(np.ones(5), 1, "", 1.0).radius(0.01) + 1e-9 * start


def test_known_distances_and_moments():
    assert KnownDistance(np.ones(2), 1, "the twin", 0.4).radius(1e-9) == 0.4
    squares = np.random.default_rng(4).exponential(size=DRAWS)
    law = MomentDistance(np.ones(2), 1, "the twin", 1.0)
    assert exceeding(np.sqrt(squares), law) <= MOST
    assert law.radius(0.25) == 2.0
    no_noise = ContractionDistance(np.ones(2), 1, "", contraction=0.5, deviation=0.0, steps=3, start=8.0, error=0.5)
    assert no_noise.radius(0.01) == 1.5


def test_scores_move_by_at_most_the_norm_of_the_row_times_the_distance():
    rng = np.random.default_rng(5)
    rows, steps = rng.normal(size=(50, 3)), rng.normal(size=(40, 3))
    law = KnownDistance(WEIGHTS, 1, "the twin", 1.0)
    assert (np.abs(rows @ steps.T) <= np.outer(law.row_norms(rows), norms(steps)) * (1.0 + 1e-12)).all()
    along = rows / WEIGHTS  # attained in this direction
    np.testing.assert_allclose((rows * along).sum(axis=1), law.row_norms(rows) * norms(along))


@pytest.mark.parametrize(
    "make",
    [
        lambda: KnownDistance(np.array([1.0, 0.0]), 1, "", 1.0),
        lambda: KnownDistance(np.ones(2), 0, "", 1.0),
        lambda: KnownDistance(np.ones(2), 1, "", -1.0),
        lambda: GaussianDistance(np.ones(2), 1, "", math.nan),
        lambda: SphericalDistance(np.ones(2), 1, "", -0.1),
        lambda: ContractionDistance(np.ones(2), 1, "", 1.1, 1.0, 1, 1.0),
        lambda: MomentDistance(np.ones(2), 1, "", -1.0),
        lambda: GaussianDistance(np.ones(2), 1, "", 1.0).radius(0.0),
    ],
)
def test_laws_of_no_meaning_are_refused(make):
    with pytest.raises(ValueError, match="must be"):
        make()
