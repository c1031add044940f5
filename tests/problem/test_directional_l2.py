"""The ridge that is stronger along given directions: laws, closed forms, constants, and optima with certificates."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from discreet import Budget, Problem, solve
from discreet.data.public import Public
from discreet.data.rows import Data
from discreet.problem import L2, DirectionalL2, Logistic, Multinomial, Squared, TotalVariation
from discreet.problem.column_scaling import ColumnScaling
from discreet.problem.scaled_problem import scale_problem
from discreet.solvers.gradient_descent import GradientDescent
from discreet.solvers.theory.plan_theory import planned_problem
from discreet.testing import check_penalty
from discreet.testing.laws import LawBrokenError

ONE = [1.0, -2.0, 0.0, 0.5]
DEPENDENT = [ONE, [-x for x in ONE], [0.0, 0.0, 3.0, 0.0]]  # as the directions of two groups against each other are
PENALTIES = [
    DirectionalL2(0.3, 2.0, [ONE]),
    DirectionalL2(0.0, 2.0, ONE),
    DirectionalL2(0.5, 0.0, ONE),
    DirectionalL2(0.1, 50.0, DEPENDENT),
    DirectionalL2(0.1, 1e12, DEPENDENT),
]


@pytest.mark.parametrize("penalty", PENALTIES, ids=repr)
def test_laws(penalty):
    assert {result.status for result in check_penalty(penalty)} == {"passed"}
    assert pickle.loads(pickle.dumps(penalty)) == penalty
    assert hash(penalty) == hash(DirectionalL2(penalty.alpha, penalty.beta, np.array(penalty.directions)))


def test_a_wrong_proximal_map_breaks_a_law():
    class Weak(DirectionalL2):
        def prox(self, v, step):
            return DirectionalL2(self.alpha, 0.5 * self.beta, self.directions).prox(v, step)

    with pytest.raises(LawBrokenError, match="prox"):
        check_penalty(Weak(0.3, 2.0, [ONE]))


NUMBERS = st.floats(-3.0, 3.0)


@settings(max_examples=60, deadline=None)
@given(
    C=arrays(np.float64, (3, 4), elements=NUMBERS),
    v=arrays(np.float64, 4, elements=NUMBERS),
    gain=arrays(np.float64, 4, elements=st.sampled_from([0.0, 1e-3, 1.0, 30.0])),
    step=st.floats(1e-3, 1e3),
    alpha=st.floats(0.0, 10.0),
    beta=st.floats(0.0, 10.0),
)
def test_the_proximal_map_solves_its_linear_equations(C, v, gain, step, alpha, beta):
    """(I + step G (alpha I + beta C'C) G) u = v with G = diag(gain): no other point is the minimiser."""
    u = DirectionalL2(alpha, beta, C).scaled_prox(v, step, gain)
    matrix = np.eye(4) + step * gain[:, None] * (alpha * np.eye(4) + beta * C.T @ C) * gain
    np.testing.assert_allclose(matrix @ u, v, atol=1e-13 * np.linalg.norm(matrix) * (1.0 + np.abs(v).max()))


def test_an_enormous_strength_leaves_nothing_along_the_directions():
    v = np.array([1.0, 2.0, -1.0, 4.0])
    u = DirectionalL2(0.0, 1e300, DEPENDENT).prox(v, 1.0)
    np.testing.assert_allclose(np.array(DEPENDENT) @ u, 0.0, atol=1e-13)
    basis = np.array(DEPENDENT)[[0, 2]]
    projected = v - basis.T @ np.linalg.solve(basis @ basis.T, basis @ v)
    np.testing.assert_allclose(u, projected, atol=1e-13)


@pytest.mark.parametrize("beta", [1e40, 1e300])
@pytest.mark.parametrize("seed", range(20))
def test_directions_that_depend_on_each_other_count_as_what_they_span(seed, beta):
    """Differences of three groups, two of which are close; all of it in columns of uneven scales."""
    rng = np.random.default_rng(seed)
    means = rng.standard_normal((3, 6))
    means[1] = means[0] + 1e-3 * means[1]
    gain = 10.0 ** rng.integers(-2, 3, 6)
    all_pairs = np.array([means[0] - means[1], means[1] - means[2], means[2] - means[0]])
    v = rng.standard_normal(6)
    u = DirectionalL2(0.0, beta, all_pairs).scaled_prox(v, 1.0, gain)
    basis = np.linalg.qr((all_pairs[:2] * gain).T)[0]
    np.testing.assert_allclose(u, v - basis @ (basis.T @ v), atol=1e-7)


def test_the_constants_bound_the_curvature_and_are_attained():
    penalty = DirectionalL2(0.1, 5.0, DEPENDENT)
    hessian = 0.1 * np.eye(4) + 5.0 * np.array(DEPENDENT).T @ np.array(DEPENDENT)
    curvatures = np.linalg.eigvalsh(hessian)
    assert penalty.strong_convexity == pytest.approx(curvatures[0])
    assert penalty.smoothness == pytest.approx(curvatures[-1])
    w = np.array([0.3, -1.0, 2.0, 0.1])
    np.testing.assert_allclose(penalty.gradient(w), hessian @ w)
    assert penalty.value(w) == pytest.approx(0.5 * w @ hessian @ w)


def test_what_does_not_fit_is_refused():
    for wrong, reason in (
        ([], "one row per direction"),
        ([[[1.0]]], "one row per direction"),
        ([[1.0, np.nan]], "finite"),
        ([[1.0, 1e300]], "finite"),
        (["a", "b"], "table of numbers"),
    ):
        with pytest.raises(ValueError, match=reason):
            DirectionalL2(1.0, 1.0, wrong)
    with pytest.raises(ValueError, match="beta"):
        DirectionalL2(1.0, -1.0, ONE)
    with pytest.raises(ValueError, match="4 columns, but there are 3"):
        DirectionalL2(1.0, 1.0, ONE).prox(np.ones(3), 1.0)


# --- with rows -----------------------------------------------------------------------------------------------

SCALES = np.array([100.0, 1.0, 0.01, 1.0])


def rows(n=400):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, (n, 4)) + np.array([0.3, 0.0, 0.0, -0.2])
    y = np.where(X @ np.array([1.0, 1.0, -1.0, 0.0]) + rng.logistic(size=n) > 0.0, 1.0, -1.0)
    return X * SCALES, y


def far_from_optimal(problem, X, y, coef, intercept):
    """The gradient of the objective in columns of about unit size, from scratch."""
    with_ones = np.column_stack([X, np.ones(len(y))])
    slopes = problem.loss.slope(X @ coef + intercept, y)
    gradient = with_ones.T @ slopes / len(y)
    gradient[:-1] += problem.penalty.gradient(coef)
    return np.abs(gradient / np.append(SCALES, 1.0)).max()


@pytest.mark.parametrize("loss", [Logistic(), Squared()], ids=lambda loss: loss.name)
def test_the_optimum_has_no_gradient_left(loss):
    X, y = rows()
    problem = Problem(loss, DirectionalL2(1e-5, 10.0, DEPENDENT * SCALES))
    best = problem.optimum(X, y)
    assert far_from_optimal(problem, X, y, best.coef, best.intercept) <= 1e-9
    assert problem.objective(X, y, best.coef, best.intercept) == pytest.approx(best.value)


@pytest.mark.parametrize("solver", ["gd", "sgd", "svrg", "admm"])
def test_solvers_without_noise_reach_the_optimum(solver):
    """Columns of uneven scales keep their own: with one common scale, gradient steps would need 1e8 times as many."""
    X, y = rows()
    problem = Problem(Logistic(), DirectionalL2(1e-5, 10.0, DEPENDENT * SCALES))
    best = problem.optimum(X, y)
    with warnings.catch_warnings(action="ignore"):
        found = solve(problem, X, y, solver=solver, budget=float("inf"), bounds=(-2 * SCALES, 2 * SCALES))
    assert problem.objective(X, y, found.coef, found.intercept) <= best.value + 1e-6
    assert np.unique(found.scaling.scale).size > 1


def test_other_coupled_penalties_keep_one_common_scale():
    assert Problem(Logistic(), TotalVariation(1.0)).common_scale
    assert not Problem(Logistic(), L2(1.0)).common_scale
    assert not Problem(Logistic(), DirectionalL2(1.0, 1.0, ONE)).common_scale


def test_a_frozen_column_cannot_offset_the_others():
    """Its coefficient is released as 0, so the penalty must not count on it."""
    X, y = rows()
    problem = Problem(Logistic(), DirectionalL2(1e-3, 100.0, [[1.0, 1.0, 0.0, 0.0]]))
    frozen = np.array([True, False, False, False])
    scaling = ColumnScaling(-SCALES, SCALES, np.zeros(4), SCALES, np.ones(4), frozen)
    scaled = scale_problem(problem, Data(X, y), scaling, len(y), "C")
    w = scaled.prox(np.array([5.0, 1.0, 1.0, 1.0, 1.0]), 1.0)
    assert w[0] == 5.0  # as it was: there is nothing to gain
    assert w[1] == pytest.approx(1.0 / (1.0 + 100.001))
    assert w[4] == 1.0  # the intercept
    released = scaled.to_user(w)[0]
    without = scale_problem(Problem(Logistic()), Data(X, y), scaling, len(y), "C")
    assert scaled.value(w) - without.value(w) == pytest.approx(problem.penalty.value(released))


def test_bounds_on_the_error_are_about_the_columns_in_which_the_problem_is_solved():
    public = Public.of(1_000, 4, bounds=(-SCALES, SCALES))
    for penalty, common in ((DirectionalL2(1e-3, 1.0, ONE), False), (TotalVariation(1.0), True)):
        plan = GradientDescent(scale_share=0).plan(Problem(Logistic(), penalty), public, Budget(1.0, 1e-6))
        planned = planned_problem(plan).scaling.scale
        assert (np.unique(planned).size == 1) == common


def test_every_output_has_its_own_penalty():
    rng = np.random.default_rng(1)
    X = rng.uniform(-1.0, 1.0, (300, 2))
    y = rng.integers(0, 3, 300).astype(float)
    free = Problem(Multinomial(3), L2(1e-3)).optimum(X, y)
    tied = Problem(Multinomial(3), DirectionalL2(1e-3, 1e6, [[1.0, 1.0]])).optimum(X, y, tolerance=1e-8)
    assert np.abs(free.coef.sum(axis=1)).max() > 0.01
    np.testing.assert_allclose(tied.coef.sum(axis=1), 0.0, atol=1e-6)
