"""Bounds on what noise on the minimiser, or in the objective, costs; and rates without constants.

Means over many runs may exceed a bound by 4.5 standard errors before a test fails (false alarms: below 1e-5).
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import minimize

from discreet.theory import objective_perturbation_bound, output_perturbation_bound, population_bound
from discreet.theory.distance import NoiseNorm
from tests.bound_tools import mean_over, mean_under, quadratic, seldom_over

RUNS = 20_000


def drawn(rng, kind, scale, columns, runs=RUNS):
    """Noise of either kind."""
    directions = rng.normal(size=(runs, columns))
    if kind == "gaussian":
        return scale * directions
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    return directions * rng.gamma(columns, scale, size=(runs, 1))


@pytest.mark.parametrize("kind", ["gaussian", "spherical"])
@pytest.mark.parametrize("columns", [1, 7])
def test_norms_of_the_noise(kind, columns):
    norm = NoiseNorm(kind, 0.3, columns)
    sizes = np.linalg.norm(drawn(np.random.default_rng(columns), kind, 0.3, columns), axis=1)
    assert sizes.mean() == pytest.approx(norm.mean, rel=0.03)
    assert (sizes**2).mean() == pytest.approx(norm.mean_square, rel=0.06)
    assert (sizes > norm.quantile(0.1)).mean() == pytest.approx(0.1, abs=0.01)


def logistic_problem(rng, rows=60, columns=4, ridge=0.05):
    """Mean logistic loss plus ridge, its minimiser, and the constants of the loss alone."""
    X = rng.normal(size=(rows, columns))
    X *= rng.choice([-1.0, 1.0], size=(rows, 1))

    def value(w):
        return np.logaddexp(0.0, -np.atleast_2d(w) @ X.T).mean(axis=1) + 0.5 * ridge * (np.atleast_2d(w) ** 2).sum(1)

    best = minimize(lambda w: float(value(w)[0]), np.zeros(columns), tol=1e-12).x
    smoothness = float(np.linalg.eigvalsh(X.T @ X).max()) / (4.0 * rows)
    return X, value, best, smoothness, float(np.linalg.norm(X, axis=1).mean())


@pytest.mark.parametrize("kind", ["gaussian", "spherical"])
@pytest.mark.parametrize("noise", [0.05, 0.5, 5.0])
@pytest.mark.parametrize("seed", range(2))
def test_output_perturbation_stays_under_its_bounds(seed, noise, kind):
    """Small noise is bounded by the curvature, large noise by the slope."""
    rng, ridge = np.random.default_rng(seed), 0.05
    _, value, best, smoothness, lipschitz = logistic_problem(rng, ridge=ridge)
    shift = 0.3 * rng.normal(size=4)
    away = float(np.linalg.norm(shift))
    points = best + drawn(rng, kind, noise, 4, runs=4_000)
    least, size = float(value(best)[0]), float(np.linalg.norm(best))
    known = {"noise": noise, "kind": kind, "ridge": ridge}
    smooth, steep = {"smoothness": smoothness}, {"lipschitz": lipschitz}
    for form in (smooth, steep, {**smooth, **steep}):
        assert mean_under(value(points) - least, output_perturbation_bound(4, **form, **known))
        often = output_perturbation_bound(4, failure=0.05, radius=size, **form, **known)
        assert seldom_over(value(points) - least, often)
        if "smoothness" in form:
            assert mean_under(value(points + shift) - least, output_perturbation_bound(4, error=away, **form, **known))


def test_output_perturbation_attains_its_bound_and_too_little_noise_is_found_out():
    """On a quadratic the bound is the expectation: noise with a quarter of the variance is refuted."""
    rng, scale = np.random.default_rng(0), 0.2
    excess = 0.5 * 3.0 * (drawn(rng, "gaussian", scale, 5) ** 2).sum(axis=1)
    assert mean_under(excess, output_perturbation_bound(5, noise=scale, smoothness=3.0))
    assert mean_over(excess, output_perturbation_bound(5, noise=0.98 * scale, smoothness=3.0))
    assert mean_over(excess, output_perturbation_bound(5, noise=0.5 * scale, smoothness=3.0))


@pytest.mark.parametrize("kind", ["gaussian", "spherical"])
@pytest.mark.parametrize("seed", range(3))
def test_objective_perturbation_stays_under_its_bounds(seed, kind):
    """Sums of squares (w - w*)'A(w - w*)/2, whose perturbed minimiser has a closed form."""
    rng, ridge, noise = np.random.default_rng(seed), 0.3, 0.4
    matrix, _ = quadratic(rng, 5)
    best = rng.normal(size=5)
    known = {"noise": noise, "kind": kind, "radius": float(np.linalg.norm(best))}
    for ridge in (0.05, 0.3, 3.0):
        tilts = drawn(rng, kind, noise, 5)
        w = np.linalg.solve(matrix + ridge * np.eye(5), (matrix @ best - tilts).T).T
        excess = 0.5 * (((w - best) @ matrix) * (w - best)).sum(axis=1)
        bound = objective_perturbation_bound(5, ridge=ridge, **known)
        assert mean_under(excess, bound)
        assert bound.value < bound.settings["printed"]
        assert seldom_over(excess, objective_perturbation_bound(5, ridge=ridge, failure=0.05, **known))


def test_objective_perturbation_with_too_little_noise_is_found_out():
    """The loss ridge |w|^2 / 2: its excess is a quarter of the bound, so that a quarter of the noise refutes it."""
    rng, ridge = np.random.default_rng(1), 0.7
    w = -drawn(rng, "gaussian", 1.0, 3) / (2.0 * ridge)
    excess = 0.5 * ridge * (w**2).sum(axis=1)
    assert mean_under(excess, objective_perturbation_bound(3, noise=1.0, radius=0.0, ridge=ridge))
    assert mean_over(excess, objective_perturbation_bound(3, noise=0.25, radius=0.0, ridge=ridge))


def test_laws_of_scale_of_the_perturbation_bounds():
    """Twice the rows or epsilon: a quarter of the squared noise; the sum of n losses is n times their mean."""
    one = output_perturbation_bound(5, noise=0.2, smoothness=1.0).value
    assert one == pytest.approx(4.0 * output_perturbation_bound(5, noise=0.1, smoothness=1.0).value)
    steep = output_perturbation_bound(5, noise=0.2, lipschitz=1.0).value
    assert steep == pytest.approx(2.0 * output_perturbation_bound(5, noise=0.1, lipschitz=1.0).value)
    spherical = output_perturbation_bound(5, noise=0.2, smoothness=1.0, kind="spherical").value
    assert spherical == pytest.approx(6.0 * one)
    mean = objective_perturbation_bound(5, noise=0.2, radius=2.0, ridge=0.1, objective="mean")
    total = objective_perturbation_bound(5, noise=20.0, radius=2.0, ridge=10.0)
    assert total.value == pytest.approx(100.0 * mean.value)
    assert "mean of the losses" in mean.quantity
    assert "sum of the losses" in total.quantity
    best = objective_perturbation_bound(5, noise=0.2, radius=2.0)
    assert best.value == pytest.approx(0.2 * math.sqrt(5.0) * 2.0)
    for other in (0.5, 2.0):
        ridge = other * best.settings["ridge"]
        assert objective_perturbation_bound(5, noise=0.2, radius=2.0, ridge=ridge).value > best.value


def test_population_rates_have_the_right_powers_and_bound_nothing():
    def privacy_part(n, epsilon, **form):
        return population_bound(n, 50, epsilon, 1e-6, **form).value - population_bound(n, 50, 1e12, 1e-6, **form).value

    for form, power in [({}, 1.0), ({"convexity": 0.1}, 2.0), ({"geometry": "l1"}, 2.0 / 3.0)]:
        assert not population_bound(1000, 50, 1.0, 1e-6, **form).proved
        base = privacy_part(10**6, 1.0, **form)
        assert base / privacy_part(2 * 10**6, 1.0, **form) == pytest.approx(2.0**power, rel=1e-3)
        assert base / privacy_part(10**6, 2.0, **form) == pytest.approx(2.0**power, rel=1e-3)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: output_perturbation_bound(3, noise=0.1), "smoothness or lipschitz"),
        (lambda: output_perturbation_bound(3, noise=0.1, lipschitz=1.0, error=0.1), "smoothness"),
        (lambda: output_perturbation_bound(3, noise=0.1, lipschitz=1.0, ridge=0.1, failure=0.1), "radius"),
        (lambda: output_perturbation_bound(3, noise=-0.1, smoothness=1.0), "scale"),
        (lambda: output_perturbation_bound(0, noise=0.1, smoothness=1.0), "entries"),
        (lambda: output_perturbation_bound(3, noise=0.1, smoothness=1.0, kind="laplace"), "kind"),
        (lambda: objective_perturbation_bound(3, noise=0.1, radius=1.0, ridge=0.0), "ridge"),
        (lambda: objective_perturbation_bound(3, noise=0.0, radius=1.0), "give ridge"),
        (lambda: population_bound(10, 2, 1.0, 0.0), "delta"),
        (lambda: population_bound(10, 2, 0.0, 1e-6), "epsilon"),
        (lambda: population_bound(10, 2, 1.0, 1e-6, geometry="l1", convexity=1.0), "l1 geometry"),
    ],
)
def test_assumptions_are_checked(call, words):
    with pytest.raises(ValueError, match=words):
        call()
