"""Measured errors lie below the proved bounds, and bounds with less noise than there is are found out.

Means over runs are compared with bounds on expectations: a true bound is exceeded by more than 3.1 standard errors with
probability below 1e-3.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from discreet.privacy.budget import Budget
from discreet.theory import admm_bound, cd_bound, fixed_point_bound, gd_bound, sgd_bound, sketched_bound
from discreet.theory.steps import NoisyCoordinateSteps, NoisyGradientSteps
from tests.reference_descents import LogisticTable, coordinate_descent, gradient_descent

BUDGET = Budget(1.0, 1e-5)
RUNS = 40
SEEDS = range(4)


def exceeds(values, bound):
    return values.mean() - 3.1 * values.std() / math.sqrt(values.size) > bound


# --- the algorithms of the theorems, on random tables ----------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("smooth", [False, True])
def test_gradient_descent(seed, smooth):
    table = LogisticTable(seed)
    radius = float(np.linalg.norm(table.best))
    bound = gd_bound(
        table.rows, table.columns, BUDGET, lipschitz=1.0, radius=radius, steps=120,
        smoothness=table.smoothness if smooth else None,
    )  # fmt: skip
    assert bound.proved
    step, noise = bound.settings["step"], bound.settings["noise"]
    assert not exceeds(table.excess(gradient_descent(table, RUNS, 120, step, noise)), bound.value)


@pytest.mark.parametrize("seed", SEEDS)
def test_stochastic_gradient_descent(seed):
    table, batch = LogisticTable(seed), 30
    radius = float(np.linalg.norm(table.best))
    bound = sgd_bound(
        table.rows, table.columns, BUDGET, lipschitz=1.0, radius=radius, smoothness=table.smoothness,
        batch=batch, steps=100,
    )  # fmt: skip
    private = bound.settings["noise"] - (1.0 - batch / table.rows) / batch
    found = gradient_descent(table, RUNS, 100, bound.settings["step"], private, batch)
    assert not exceeds(table.excess(found), bound.value)


def deviation(table, bound):
    """Standard deviations of exactly calibrated noise in the coordinates."""
    mu = BUDGET.gaussian_mu()
    return 2.0 * table.lipschitz * math.sqrt(bound.settings["steps"]) / (table.rows * mu)


@pytest.mark.parametrize("seed", SEEDS)
def test_coordinate_descent_for_convex_objectives(seed):
    table = LogisticTable(seed)
    M = table.coordinate_smoothness
    radius = math.sqrt(float(M @ table.best**2))
    gap = float(table.excess(np.zeros(table.columns)))
    settings = {"lipschitz": table.lipschitz, "smoothness": M, "radius": radius}
    for steps in (None, 30):
        bound = cd_bound(table.rows, BUDGET, **settings, gap=gap, steps=steps)
        found = coordinate_descent(table, RUNS, int(bound.settings["steps"]), deviation(table, bound))
        assert not exceeds(table.excess(found), bound.value)
        assert bound.value <= cd_bound(table.rows, BUDGET, **settings, steps=steps).value


@pytest.mark.parametrize("form", ["average", "last"])
@pytest.mark.parametrize("seed", SEEDS)
def test_coordinate_descent_for_strongly_convex_objectives(seed, form):
    table = LogisticTable(seed, ridge=0.05)
    M = table.coordinate_smoothness
    gap, convexity = float(table.excess(np.zeros(table.columns))), float((table.ridge / M).min())
    bound = cd_bound(
        table.rows, BUDGET, lipschitz=table.lipschitz, smoothness=M, gap=gap, strong_convexity=convexity, form=form
    )
    outer, steps = int(bound.settings.get("outer", 1)), int(bound.settings["steps"])
    found = coordinate_descent(table, RUNS, steps, deviation(table, bound), outer=outer, average=form == "average")
    assert not exceeds(table.excess(found), bound.value)


@pytest.mark.parametrize("kind", ["importance", "nice"])
@pytest.mark.parametrize("seed", SEEDS)
def test_sketched_descent(seed, kind):
    """Steps 1/M_j; for sets of 3 of 5 coordinates M_j is raised by 1 + (5 - 1)(3 - 1)/(5 - 1)."""
    table = LogisticTable(seed)
    own, p = table.coordinate_smoothness, table.columns
    if kind == "importance":
        M, chance, settings = own, own / own.sum(), {"probabilities": own / own.sum()}

        def sets(rng, runs):
            return rng.choice(p, size=runs, p=chance)[:, None] == np.arange(p)
    else:
        M, chance, settings = 3.0 * own, np.full(p, 0.6), {"size": 3, "noise": "equalised"}

        def sets(rng, runs):
            return rng.uniform(size=(runs, p)).argsort(axis=1) < 3

    radius = math.sqrt(float((M / chance) @ table.best**2))
    bound = sketched_bound(
        table.rows, BUDGET, lipschitz=table.lipschitz, smoothness=M, radius=radius, steps=40, **settings
    )
    spread = deviation(table, bound) * (math.sqrt(3.0) if kind == "nice" else 1.0)
    found = coordinate_descent(table, RUNS, 40, spread, smoothness=M, sets=sets)
    assert not exceeds(table.excess(found), bound.value)


@pytest.mark.parametrize("seed", SEEDS)
def test_admm(seed):
    """Quadratic functions of 6 participants, each strongly convex, and an l1 penalty on their common weights."""
    rng = np.random.default_rng(seed)
    low, high, gamma, lam, sigma, n, p = 0.5, 2.0, 0.8, 0.6, 0.2, 6, 3
    curvature, centre = rng.uniform(low, high, (n, p)), rng.standard_normal((n, p))

    def move(u, noise):
        z = u.mean(axis=-2, keepdims=True)
        z = np.sign(z) * np.maximum(np.abs(z) - gamma * 0.3 / n, 0.0)
        v = 2.0 * z - u
        w = (v + gamma * curvature * centre) / (1.0 + gamma * curvature)
        return u + 2.0 * lam * (w - z + noise / 2.0)

    fixed = np.zeros((n, p))
    for _ in range(3_000):
        fixed = move(fixed, 0.0)
    u = np.zeros((200, n, p))
    for _ in range(15):
        u = move(u, sigma * rng.standard_normal(u.shape))
    bound = admm_bound(
        15, start=float((fixed**2).sum()), noise=n * p * sigma**2, prox_step=gamma, strong_convexity=low,
        smoothness=high, relaxation=lam,
    )  # fmt: skip
    squares = ((u - fixed) ** 2).sum(axis=(1, 2))
    assert not exceeds(squares, bound.value)
    assert exceeds(squares, bound.value / 18.0)  # noise of one entry instead of all 18


# --- planted faults ---------------------------------------------------------------------------------------------------


def one_step(columns, curvature, step, sigma, runs=4_000):
    """One noisy step from the optimum of curvature/2 |w|^2: the excess of the objective."""
    w = -step * sigma * np.random.default_rng(0).standard_normal((runs, columns))
    return 0.5 * curvature * np.square(w).sum(axis=1)


@pytest.mark.parametrize("theorem", ["Lipschitz", "smooth", "proximal", "strongly convex"])
def test_gradient_bounds_with_too_little_noise_are_found_out(theorem):
    """One step from the optimum, all of whose error is noise: the bounds are at most twice the truth there, so that a
    bound with a noise of one column instead of eight cannot hold."""
    columns, curvature, step, sigma = 8, 2.0, 0.5, 0.3
    run = NoisyGradientSteps(step, 1, 1, columns * sigma**2, 0.0, 0.0, 0.0, curvature, strong_convexity=curvature)
    found = one_step(columns, curvature, step, sigma)
    assert not exceeds(found, run.excess()[theorem])
    assert exceeds(found, replace(run, noise=run.noise / columns).excess()[theorem])


def test_coordinate_bounds_with_too_little_noise_are_found_out():
    columns, curvature, sigma = 8, 2.0, 0.3
    noise = columns * sigma**2 / curvature
    found = one_step(columns, curvature, 1.0 / curvature, sigma)  # all coordinates: chance 1
    steps = NoisyCoordinateSteps(1.0, noise, 1.0)
    assert not exceeds(found, steps.last(1, 0.0))
    assert not exceeds(found, steps.mean(1, 0.0, 0.0)[1])
    planted = NoisyCoordinateSteps(1.0, noise / columns, 1.0)
    assert exceeds(found, planted.last(1, 0.0))
    assert exceeds(found, planted.mean(1, 0.0, 0.0)[1])


def test_half_of_the_noise_in_the_restarted_bound_is_what_the_thesis_prints():
    """(A.3.38) has 24 p (1 + 1/mu) T ln(1/delta); summing (A.3.41) gives twice that."""
    settings = {"lipschitz": [1.0] * 4, "smoothness": [1.0] * 4, "gap": 0.0, "strong_convexity": 1.0}
    bound = cd_bound(1_000, Budget(1.0, 1e-5), calibration="paper", steps=16 * 30, **settings)
    printed = 24.0 * 4 * 2.0 * 30 * 4.0 * math.log(1e5) / 1_000**2
    assert bound.value == pytest.approx(2.0 * printed, rel=1e-6)


def test_the_convex_bound_of_coordinate_descent_is_the_printed_one_at_its_best_number_of_steps():
    """9 sqrt(p ln(1/delta)) |L| R / (n epsilon) bounds it, with sqrt(72) = 8.49 in its place."""
    settings = {"lipschitz": [1.0] * 4, "smoothness": [1.0] * 4, "radius": 2.0}
    bound = cd_bound(1_000, Budget(1.0, 1e-5), calibration="paper", **settings)
    printed = math.sqrt(4 * math.log(1e5)) * 2.0 * 2.0 / 1_000
    assert bound.value == pytest.approx(math.sqrt(72.0) * printed, rel=1e-3)
    assert cd_bound(1_000, Budget(1.0, 1e-5), **settings).value < 0.7 * bound.value


# --- assumptions ------------------------------------------------------------------------------------------------------

CD = {"lipschitz": [1.0, 2.0], "smoothness": [1.0, 1.0]}
REFUSED = [
    (lambda: gd_bound(10, 2, Budget(1.0, 0.0), lipschitz=1.0, radius=1.0), "pure DP"),
    (lambda: gd_bound(10, 2, BUDGET, lipschitz=1.0, radius=1.0, strong_convexity=1.0), "smoothness"),
    (lambda: gd_bound(10, 2, BUDGET, lipschitz=1.0, radius=1.0, smoothness=1.0, strong_convexity=2.0), "exceed"),
    (lambda: gd_bound(10, 2, BUDGET, lipschitz=math.inf, radius=1.0, smoothness=1.0, step=2.5, steps=3), "below 2"),
    (lambda: sgd_bound(10, 2, BUDGET, lipschitz=1.0, radius=1.0, batch=5), "belong together"),
    (lambda: sgd_bound(10, 2, Budget.gdp(1.0), lipschitz=1.0, radius=1.0), "epsilon"),
    (lambda: cd_bound(10, BUDGET, **CD), "radius"),
    (lambda: cd_bound(10, BUDGET, **CD, radius=1.0, form="last"), "strong_convexity"),
    (lambda: cd_bound(10, BUDGET, **CD, strong_convexity=0.5), "gap"),
    (lambda: cd_bound(10, BUDGET, **CD, gap=1.0, strong_convexity=1.0, steps=7), "multiple"),
    (lambda: cd_bound(10, Budget(2.0, 1e-5), **CD, radius=1.0, calibration="paper"), "at most 1"),
    (lambda: cd_bound(10, Budget(1.0, 0.5), **CD, radius=1.0, calibration="paper"), "1/3"),
    (lambda: cd_bound(10, BUDGET, lipschitz=[1.0], smoothness=[1.0, 1.0], radius=1.0), "one number per"),
    (lambda: sketched_bound(10, BUDGET, **CD, radius=1.0, size=2, probabilities=[0.5, 0.5]), "size=1"),
    (lambda: sketched_bound(10, BUDGET, **CD, radius=1.0, probabilities=[0.5, 0.6]), "sum to 1"),
    (lambda: admm_bound(3, start=1.0, noise=1.0, prox_step=1.0, strong_convexity=2.0, smoothness=1.0), "below"),
    (lambda: NoisyCoordinateSteps(0.5, 1.0, length=2.0), "shorter than twice"),
]


@pytest.mark.parametrize(("make", "words"), REFUSED)
def test_assumptions_are_checked(make, words):
    with pytest.raises(ValueError, match=words):
        make()


def test_the_fixed_point_bound_says_what_it_is_about():
    bound = fixed_point_bound(10, start=4.0, contraction=0.5, noise=0.03)
    assert bound.proved
    assert "squared distance" in bound.quantity
    assert bound.value == pytest.approx(0.04, rel=1e-4)
