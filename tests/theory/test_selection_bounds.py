"""Bounds on private selections, greedy coordinate descent, Frank-Wolfe and the exponential mechanism hold.

Means over many runs may exceed a bound by 4.5 standard errors before a test fails: a false alarm has probability
below 1e-5. Planted faults are found: the bound for less noise, and steps that do not converge.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.theory import exponential_bound, frank_wolfe_bound, greedy_cd_bound, quasi_sparsity
from discreet.theory.selections import SelectionError
from tests.bound_tools import (
    frank_wolfe_points,
    greedy_excesses,
    mean_over,
    mean_under,
    quadratic,
    seldom_over,
)

RUNS = 2_000


def exact_gaps(scores, scale):
    """The gap of each candidate, and the probability with which it is selected."""
    weights = np.exp((scores - scores.max()) / scale)
    return scores.max() - scores, weights / weights.sum()


@settings(max_examples=200)
@given(st.lists(st.floats(-20.0, 20.0), min_size=1, max_size=40), st.floats(0.05, 10.0), st.floats(0.001, 0.999))
def test_the_selection_error_is_bounded_for_all_scores(scores, scale, failure):
    """By exact probabilities: mean, mean square and tail."""
    gaps, chances = exact_gaps(np.array(scores), scale)
    error = SelectionError(scale, len(scores))
    assert chances @ gaps <= error.mean + 1e-9
    assert chances @ gaps**2 <= error.mean_square + 1e-9
    assert chances[gaps > error.quantile(failure) + 1e-9].sum() <= failure + 1e-9
    for rate in (0.3, 1.0):  # Lemma S2: the moments behind sums of selections
        moment = np.exp((rate - 1.0) * gaps / scale).sum() / np.exp(-gaps / scale).sum()
        assert moment <= len(scores) ** rate * (1.0 + 1e-9)


def test_the_selection_error_is_attained_and_a_quarter_of_it_is_not_enough():
    others = 10_000
    best_mean = best_square = 0.0
    for distance in np.linspace(5.0, 9.0, 30):
        gaps, chances = exact_gaps(np.append(0.0, np.full(others, -distance)), 1.0)
        best_mean, best_square = max(best_mean, chances @ gaps), max(best_square, chances @ gaps**2)
        failure = chances[1:].sum()
        assert SelectionError(1.0, others + 1).quantile(failure) == pytest.approx(distance)
    error, planted = SelectionError(1.0, others + 1), SelectionError(0.25, others + 1)
    assert 0.65 * error.mean < best_mean <= error.mean
    assert 0.55 * error.mean_square < best_square <= error.mean_square
    assert best_mean > planted.mean
    assert best_square > planted.mean_square


def strongly_convex(matrix, smooth):
    """mu in |.|_(M,2): the least eigenvalue after scaling the diagonal to 1."""
    root = np.sqrt(smooth)
    return float(np.linalg.eigvalsh(matrix / np.outer(root, root)).min())


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("noise", [0.0, 0.02, 0.2])
def test_greedy_cd_stays_under_its_bounds(seed, noise):
    rng = np.random.default_rng(seed)
    matrix, smooth = quadratic(rng, columns=8)
    start = rng.normal(size=8)
    gap = 0.5 * float(start @ matrix @ start)
    mu = strongly_convex(matrix, smooth)
    # |w|_(M,1) <= sqrt(p) |w|_(M,2) <= sqrt(p 2 f(w) / mu) bounds all points that are no worse than the start
    radius = math.sqrt(8.0 * 2.0 * gap / mu)
    for steps in (1, 5, 40):
        errors = greedy_excesses(rng, matrix, start, steps, noise, noise, RUNS)
        known = {"selection_scale": noise, "deviation": noise, "gap": gap}
        assert mean_under(errors, greedy_cd_bound(steps, 8, convexity=mu, **known))
        assert mean_under(errors, greedy_cd_bound(steps, 8, l1_convexity=mu / 8, **known))
        for case in ({"convexity": mu}, {"radius": radius}):
            assert seldom_over(errors, greedy_cd_bound(steps, 8, failure=0.05, **case, **known))


@pytest.mark.parametrize("seed", range(3))
def test_greedy_cd_finds_nearly_sparse_optima_under_its_bound(seed):
    """f(w) = (w - w*)'A(w - w*) / 2 from 0, w* with three large entries and many small ones."""
    rng, columns, alpha = np.random.default_rng(seed), 60, 0.002
    noise = rng.normal(size=(columns, columns)) / columns
    matrix = np.eye(columns) + 0.3 * (noise + noise.T)
    smooth = np.diag(matrix)
    optimum = np.append([2.0, -1.5, 1.0], rng.uniform(-alpha, alpha, columns - 3))
    gap = 0.5 * float(optimum @ matrix @ optimum)
    known = {"selection_scale": 0.02, "deviation": 0.02, "gap": gap, "convexity": strongly_convex(matrix, smooth)}
    large = quasi_sparsity(optimum, alpha)
    assert large == 3
    nearly = greedy_cd_bound(12, columns, large=large, alpha=alpha, smoothness=float(smooth.max()), **known)
    errors = greedy_excesses(rng, matrix, -optimum, 12, 0.02, 0.02, RUNS)  # of w - w*, from 0 - w*
    assert mean_under(errors, nearly)
    assert nearly.value < 0.5 * greedy_cd_bound(12, columns, **known).value  # where p counts instead


def test_greedy_cd_with_a_planted_constant_is_found_out():
    """In one dimension the bound is attained; with many, selections that are four times too good refute it."""
    rng = np.random.default_rng(5)
    errors = greedy_excesses(rng, np.eye(1), np.ones(1), 3, 0.0, 0.4, 20 * RUNS)
    known = {"selection_scale": 0.0, "gap": 0.5, "l1_convexity": 1.0}
    assert mean_under(errors, greedy_cd_bound(3, 1, deviation=0.4, **known))
    assert mean_over(errors, greedy_cd_bound(3, 1, deviation=0.39, **known))
    columns, size = 2_000, 5.0
    errors = greedy_excesses(rng, np.eye(columns), size * np.eye(columns)[0], 1, 1.0, 0.0, RUNS)
    known = {"deviation": 0.0, "gap": 0.5 * size**2, "convexity": 1.0, "large": 1}
    assert mean_under(errors, greedy_cd_bound(1, columns, selection_scale=1.0, **known))
    assert mean_over(errors, greedy_cd_bound(1, columns, selection_scale=0.25, **known))


def test_laws_of_scale_of_the_greedy_bound():
    """Twice the rows halve both noises, and so quarter what they leave after many steps; p enters as ln^2."""

    def floor(noise, columns=100):
        known = {"selection_scale": noise, "deviation": noise, "gap": 1.0, "l1_convexity": 0.2}
        return greedy_cd_bound(5_000, columns, **known).value

    assert floor(0.01) == pytest.approx(4.0 * floor(0.005))
    assert floor(0.01, 10_000) < 5.0 * floor(0.01, 100)
    convex = [
        greedy_cd_bound(T, 100, selection_scale=1e-9, deviation=1e-9, gap=0.5, radius=1.0).value for T in (500, 1000)
    ]
    assert convex[0] / convex[1] == pytest.approx(2.0, rel=0.02)  # as 1/T
    # less noise, more steps and more sparsity never make a bound larger
    known = {"deviation": 0.01, "gap": 1.0, "convexity": 0.5}
    values = [greedy_cd_bound(10, 100, selection_scale=0.01, large=k, **known).value for k in (1, 5, 50, 100)]
    assert values == sorted(values)


def half_squares(target):
    """Value and gradient of |w - target|^2 / 2; over a set of diameter d its curvature is d^2."""
    return (lambda w: 0.5 * ((w - target) ** 2).sum(axis=1)), (lambda w: w - target)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("scale", [0.0, 0.05, 0.5])
def test_frank_wolfe_stays_under_its_bounds(seed, scale):
    rng, columns = np.random.default_rng(seed), 6
    corners = np.vstack([np.eye(columns), -np.eye(columns)])
    target = rng.normal(size=columns)
    target *= rng.uniform(0.2, 1.0) / np.abs(target).sum()  # in the ball, so that the least value is 0
    value, gradient = half_squares(target)
    for steps in (1, 7, 60):
        gap, mixed = float(value(corners[:1])[0]), math.log(steps + 1.0) / steps
        known = {"selection_scale": scale, "curvature": 4.0}
        forms = [({}, lambda t: 2.0 / (t + 2.0)), ({"schedule": "constant", "gap": gap}, lambda t, a=mixed: a)]
        for form, shares in forms:
            errors = value(frank_wolfe_points(rng, gradient, corners, steps, scale, RUNS, shares))
            assert mean_under(errors, frank_wolfe_bound(steps, 12, **known, **form))
            assert seldom_over(errors, frank_wolfe_bound(steps, 12, failure=0.05, **known, **form))


def test_frank_wolfe_with_the_printed_steps_or_less_noise_is_found_out():
    """Constant shares 1/(T+2) keep 37 % of the start for every T: a linear loss shows it, without any noise."""
    corners, slope = np.vstack([np.eye(2), -np.eye(2)]), np.array([1.0, 0.0])
    rng = np.random.default_rng(0)
    linear = lambda w: np.tile(slope, (len(w), 1))  # noqa: E731
    for steps in (10, 100, 1000):
        bound = frank_wolfe_bound(steps, 4, selection_scale=0.0, curvature=0.0)
        printed, ours = (
            frank_wolfe_points(rng, linear, corners, steps, 0.0, 1, shares) @ slope + 1.0
            for shares in (lambda t, T=steps: 1.0 / (T + 2.0), lambda t: 2.0 / (t + 2.0))
        )
        assert printed[0] > 0.36 * 2.0 > bound.value
        assert ours[0] <= bound.value + 1e-12
    many = np.vstack([[-7.0], np.zeros((2_000, 1))])  # one good vertex among many, all noise
    flat = lambda w: np.ones((len(w), 1))  # noqa: E731
    errors = frank_wolfe_points(rng, flat, many, 5, 1.0, RUNS, lambda t: 2.0 / (t + 2.0))[:, 0] + 7.0
    assert mean_under(errors, frank_wolfe_bound(5, 2_001, selection_scale=1.0, curvature=0.0))
    assert mean_over(errors, frank_wolfe_bound(5, 2_001, selection_scale=0.25, curvature=0.0))


def test_laws_of_scale_of_the_frank_wolfe_bound():
    def bound(steps=50, scale=0.01, failure=None, objective="mean", factor=1.0):
        return frank_wolfe_bound(
            steps, 20, selection_scale=scale * factor, curvature=factor, objective=objective, failure=failure
        )

    for steps in (1, 2, 10, 1000):
        assert bound(steps, 0.0).value <= 2.0 / (steps + 2.0)  # Jaggi's form
        assert bound(steps, 0.0).value >= 1.0 / (steps + 2.0)
    assert bound(scale=0.02).value - bound(scale=0.0).value == pytest.approx(0.02 * math.log(20.0))
    assert bound(failure=0.01).value > bound().value
    assert bound(factor=300.0, objective="sum").value == pytest.approx(300.0 * bound().value)
    assert "sum of the losses" in bound(objective="sum").quantity


@pytest.mark.parametrize("columns", [1, 3, 20])
def test_the_exponential_mechanism_attains_its_bound_on_a_cone(columns):
    """The density exp(-rate |w|_1) of all of R^p: the excess is a Gamma variable, on every smaller set it is less."""
    rng, rate = np.random.default_rng(columns), 0.3
    errors = rng.gamma(columns, 1.0 / rate, 20 * RUNS)
    bound = exponential_bound(rate, columns=columns)
    assert mean_under(errors, bound)
    assert mean_over(errors, exponential_bound(rate / 0.95, columns=columns))
    for failure in (0.1, 0.01):
        often = exponential_bound(rate, columns=columns, failure=failure)
        assert seldom_over(errors, often)
        assert often.value < often.settings["printed"]


@pytest.mark.parametrize("seed", range(4))
def test_the_exponential_mechanism_on_an_interval_and_on_candidates(seed):
    """By exact probabilities on a fine grid, for convex losses on an interval and any losses of candidates."""
    rng = np.random.default_rng(seed)
    points = np.linspace(-1.0, 1.0, 20_001)
    loss = np.log1p(np.exp(rng.normal(size=(30, 1)) * points * 3.0)).sum(axis=0)
    for rate in (0.05, 1.0, 20.0):
        gaps, chances = exact_gaps(-loss, 1.0 / rate)
        assert chances @ gaps <= exponential_bound(rate, columns=1).value
        assert chances[gaps > exponential_bound(rate, columns=1, failure=0.05).value].sum() <= 0.05
        few = rng.integers(0, points.size, 9)
        gaps, chances = exact_gaps(-loss[few], 1.0 / rate)
        covering = float(loss[few].min() - loss.min())
        bound = exponential_bound(rate, candidates=9, covering=covering, objective="mean")
        assert chances @ (gaps + covering) <= bound.value
        assert "mean of the losses over 9 candidates" in bound.quantity


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: greedy_cd_bound(1, 2, selection_scale=0.1, deviation=0.1, gap=1.0), "either radius"),
        (lambda: greedy_cd_bound(1, 2, selection_scale=0.1, deviation=0.1, gap=1.0, convexity=2.0), "convexity"),
        (
            lambda: greedy_cd_bound(1, 2, selection_scale=0.1, deviation=0.1, gap=1.0, convexity=0.5, alpha=0.1),
            "needs large",
        ),
        (lambda: greedy_cd_bound(1, 2, selection_scale=0.1, deviation=0.1, gap=1.0, convexity=0.5, large=3), "at most"),
        (lambda: greedy_cd_bound(0, 2, selection_scale=0.1, deviation=0.1, gap=1.0, convexity=0.5), "steps"),
        (lambda: frank_wolfe_bound(5, 2, selection_scale=-1.0, curvature=1.0), "scale"),
        (lambda: frank_wolfe_bound(5, 2, selection_scale=1.0, curvature=1.0, schedule="constant"), "needs gap"),
        (lambda: frank_wolfe_bound(5, 2, selection_scale=1.0, curvature=math.nan), "curvature"),
        (lambda: exponential_bound(0.0, columns=2), "rate"),
        (lambda: exponential_bound(1.0), "columns"),
        (lambda: exponential_bound(1.0, columns=2, covering=0.1), "covering"),
        (lambda: exponential_bound(1.0, columns=2, failure=0.0), "failure"),
    ],
)
def test_assumptions_are_checked(call, words):
    with pytest.raises(ValueError, match=words):
        call()
