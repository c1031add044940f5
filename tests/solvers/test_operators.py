"""Operators of fixed-point iterations keep their stated constants, and smaller ones would be found out."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.problem.constraints import L1Ball, L2Ball, Simplex
from discreet.problem.penalties import L1, ElasticNet
from discreet.solvers.fixed_point import (
    GradientStep,
    NonExpansive,
    Projection,
    ProximalStep,
    Reflection,
    Relaxation,
    douglas_rachford,
    forward_backward,
)

SIZE = 4
SLACK = 1e-9  # rounding


def keeps_lipschitz(operator, u, v, constant):
    return np.linalg.norm(operator(u) - operator(v)) <= constant * np.linalg.norm(u - v) + SLACK


def keeps_averaged(operator, u, v, constant):
    """N = (R - (1 - a) I) / a is non-expansive on the pair."""
    moved = operator(u) - operator(v) - (1.0 - constant) * (u - v)
    return np.linalg.norm(moved) <= constant * np.linalg.norm(u - v) + SLACK


def holds(operator, u, v):
    averaged = operator.averaged
    return keeps_lipschitz(operator, u, v, operator.lipschitz) and (
        averaged is None or keeps_averaged(operator, u, v, averaged)
    )


def quadratic(seed, low, high):
    """A matrix with random eigenvectors whose eigenvalues fill [low, high], and its eigenvectors."""
    basis = np.linalg.qr(np.random.default_rng(seed).normal(size=(SIZE, SIZE)))[0]
    return basis * np.linspace(low, high, SIZE) @ basis.T, basis


def gradient_step(matrix, length, low, high):
    return GradientStep(lambda u: matrix @ u, length, high, low)


def quadratic_prox(matrix, length, low, high):
    return ProximalStep(lambda u, g: np.linalg.solve(np.eye(SIZE) + g * matrix, u), length, low, high)


seeds = st.integers(0, 10**6)
points = st.lists(st.floats(-10.0, 10.0), min_size=SIZE, max_size=SIZE).map(np.array)
spectra = st.tuples(st.floats(0.0, 2.0), st.floats(0.01, 5.0)).map(lambda pair: (pair[0], sum(pair)))
lengths = st.floats(0.01, 5.0)


@given(seed=seeds, spectrum=spectra, length=lengths)
def test_the_constants_of_a_gradient_step_hold_and_are_the_smallest(seed, spectrum, length):
    matrix, basis = quadratic(seed, *spectrum)
    operator = gradient_step(matrix, length, *spectrum)
    zero, directions = np.zeros(SIZE), list(basis.T)
    assert all(holds(operator, v, zero) for v in directions)
    smaller = 0.99 * operator.lipschitz - 1e-6
    assert not all(keeps_lipschitz(operator, v, zero, smaller) for v in directions)
    if operator.averaged is None:
        assert length * spectrum[1] > 2.0
        assert operator.lipschitz > 1.0
    else:
        assert not all(keeps_averaged(operator, v, zero, 0.99 * operator.averaged - 1e-6) for v in directions)


@given(seed=seeds, spectrum=spectra, length=lengths)
def test_the_constants_of_a_proximal_step_and_its_reflection_hold_and_are_the_smallest(seed, spectrum, length):
    matrix, basis = quadratic(seed, *spectrum)
    operator = quadratic_prox(matrix, length, *spectrum)
    zero, directions = np.zeros(SIZE), list(basis.T)
    for found in (operator, Reflection(operator)):
        assert all(holds(found, v, zero) for v in directions)
        assert not all(keeps_lipschitz(found, v, zero, 0.99 * found.lipschitz - 1e-6) for v in directions)
    assert Reflection(operator).lipschitz <= 1.0


SOFT = ProximalStep(lambda u, length: L1(1.0).prox(u, length), 0.7)
NETS = ProximalStep(lambda u, length: ElasticNet(1.0, 0.5).prox(u, length), 0.7, strong_convexity=0.5)
BALL, DIAMOND, SIMPLEX = (Projection(kind.project) for kind in (L2Ball(1.0), L1Ball(1.0), Simplex(2.0)))
BENT = GradientStep(np.tanh, 1.5, 1.0)  # the gradient of log cosh
TURN = NonExpansive(lambda u: u[::-1] * np.array([1.0, -1.0, 1.0, -1.0]), 1.0)
OPERATORS = {
    "soft threshold": SOFT,
    "elastic net": NETS,
    "L2 ball": BALL,
    "L1 ball": DIAMOND,
    "simplex": SIMPLEX,
    "smooth gradient": BENT,
    "rotation": TURN,
    "reflected ball": Reflection(BALL),
    "reflected elastic net": Reflection(NETS),
    "relaxed rotation": Relaxation(TURN, 0.3),
    "overrelaxed soft threshold": Relaxation(SOFT, 1.8),
    "two balls": BALL @ DIAMOND,
    "three steps": BALL @ BENT @ SOFT,
    "relaxed product": Relaxation(Reflection(BALL) @ TURN, 0.5),
    "forward-backward": forward_backward(GradientStep(np.tanh, 0.7, 1.0), SOFT),
    "Douglas-Rachford": douglas_rachford(SOFT, BALL),
    "contraction": NETS @ TURN,
}


@pytest.mark.parametrize("name", OPERATORS)
@given(u=points, v=points)
def test_the_constants_of_operators_that_are_not_linear_hold(name, u, v):
    assert holds(OPERATORS[name], u, v)


def test_the_stated_numbers_are_those_of_the_formulas():
    assert (BENT.averaged, BENT.lipschitz) == (0.75, 1.0)
    assert NETS.lipschitz == pytest.approx(1.0 / (1.0 + 0.7 * 0.5))
    assert (BALL @ DIAMOND).averaged == pytest.approx(2.0 / 3.0)
    assert Reflection(BALL).averaged == 1.0
    assert Relaxation(TURN, 0.3).averaged == pytest.approx(0.3)
    assert douglas_rachford(SOFT, BALL).averaged == pytest.approx(0.5)
    assert (BALL @ TURN).averaged == 1.0
    assert Reflection(BENT).averaged is None
    assert Relaxation(TURN, 1.5).averaged is None


def test_the_averagedness_of_a_product_cannot_be_that_of_the_worse_factor():
    """Two projections onto lines at an angle: 2/3 is needed, 1/2 is not enough."""
    found = []
    for angle in np.linspace(0.01, np.pi / 2, 50):
        line = np.array([np.cos(angle), np.sin(angle)])
        product = Projection(lambda u, d=line: d * (d @ u)) @ Projection(lambda u: u * np.array([1.0, 0.0]))
        matrix = np.column_stack([product(e) for e in np.eye(2)])
        assert np.linalg.norm(matrix - np.eye(2) / 3.0, 2) <= 2.0 / 3.0 + SLACK
        found.append(np.linalg.norm(matrix - 0.37 * np.eye(2), 2) <= 0.63 + SLACK)  # 0.63-averaged?
    assert not all(found)


@given(u=points)
def test_composition_reads_from_right_to_left_and_then_from_left_to_right(u):
    assert np.array_equal((BALL @ SOFT)(u), BALL(SOFT(u)))
    assert np.array_equal(BALL.then(SOFT)(u), SOFT(BALL(u)))


@settings(max_examples=25)
@given(seed=seeds, spectrum=spectra, length=st.floats(0.2, 2.0))
def test_douglas_rachford_contracts_at_its_stated_rate_to_the_minimiser(seed, spectrum, length):
    """f is quadratic and g an L1 penalty; first(u) at the fixed point minimises f + g."""
    low, high = spectrum[0] + 0.2, spectrum[1] + 0.2
    matrix, _ = quadratic(seed, low, high)
    target = matrix @ np.linspace(-1.0, 2.0, SIZE)
    smooth = ProximalStep(lambda u, g: np.linalg.solve(np.eye(SIZE) + g * matrix, u + g * target), length, low, high)
    operator = douglas_rachford(smooth, ProximalStep(lambda u, g: L1(0.3).prox(u, g), length))
    assert operator.lipschitz < 1.0
    u = np.zeros(SIZE)
    for _ in range(math.ceil(30.0 / -math.log(operator.lipschitz))):
        u = operator(u)
    w = L1(0.3).prox(u, length)
    gradient = matrix @ w - target
    distance = np.where(w == 0.0, np.maximum(np.abs(gradient) - 0.3, 0.0), np.abs(gradient + 0.3 * np.sign(w)))
    assert distance.max() < 1e-6


def test_the_fixed_point_of_forward_backward_minimises_the_sum():
    matrix, _ = quadratic(1, 0.5, 2.0)
    target = np.array([1.0, -2.0, 0.1, 0.5])
    step = GradientStep(lambda u: matrix @ u - target, 0.9, 2.0, 0.5)
    operator = forward_backward(step, ProximalStep(lambda u, g: L1(0.3).prox(u, g), 0.9))
    u = np.zeros(SIZE)
    for _ in range(200):
        u = operator(u)
    gradient = matrix @ u - target
    assert np.abs(np.where(u == 0.0, np.maximum(np.abs(gradient) - 0.3, 0.0), gradient + 0.3 * np.sign(u))).max() < 1e-9


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: GradientStep(np.tanh, 0.0, 1.0), "length"),
        (lambda: GradientStep(np.tanh, 1.0, math.inf), "smoothness"),
        (lambda: GradientStep(np.tanh, 1.0, 1.0, 2.0), "strong_convexity"),
        (lambda: ProximalStep(L1(1.0).prox, 1.0, 2.0, 1.0), "smoothness"),
        (lambda: ProximalStep(L1(1.0).prox, -1.0), "length"),
        (lambda: NonExpansive(np.tanh, 1.2), "lipschitz_constant"),
        (lambda: Relaxation(BALL, 0.0), "weight"),
        (lambda: forward_backward(BENT, SOFT), "same length"),
        (lambda: douglas_rachford(SOFT, ProximalStep(L1(1.0).prox, 0.5)), "same length"),
    ],
)
def test_wrong_constants_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
