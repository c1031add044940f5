"""Solvers without noise are the textbook methods; with noise they do what their plan says."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn import linear_model
from sklearn.preprocessing import StandardScaler

from discreet import IncompatibleSolverError, NotPrivateWarning, solve
from discreet.data.public import Public
from discreet.privacy.budget import Budget
from discreet.problem.constraints import L1Ball
from discreet.problem.losses import Logistic, Multinomial, Squared
from discreet.problem.penalties import L1, L2, Zero
from discreet.problem.problem import Problem
from discreet.solvers import (
    SOLVERS,
    CoordinateDescent,
    GradientDescent,
    GreedyCoordinateDescent,
    StochasticGradientDescent,
)
from discreet.testing.solver_laws import SameDraws
from tests.catalogue import CONSTRAINTS, SIZES, SOLVER_NAMES, name_of, problem_for, problems, suits, table

NO_BUDGET = Budget(math.inf, 0.5)


def solve_without_noise(problem, X, y, solver, **options):
    with pytest.warns(NotPrivateWarning):
        return solve(problem, X, y, solver, NO_BUDGET, **options)


@pytest.mark.filterwarnings("ignore::discreet.InsecureRandomnessWarning")
def solve_seeded(problem, X, y, solver, epsilon=1.0, seed=0, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return solve(problem, X, y, solver, Budget(epsilon, 1e-4), random_state=seed, **options)


PAIRS = [(solver, problem) for solver in SOLVER_NAMES for problem in problems() if suits(solver, problem)]


@pytest.mark.parametrize(("solver", "problem"), PAIRS, ids=lambda x: x if isinstance(x, str) else name_of(x))
def test_without_noise_every_solver_reaches_the_optimum(problem, solver):
    X, y = table(problem.loss)
    best = problem.optimum(X, y)
    solution = solve_without_noise(problem, X, y, solver)
    value = problem.objective(X, y, solution.w, solution.intercept)
    assert value - best.value <= 1e-6 * best.value


@pytest.mark.parametrize(
    "solver",
    [s for s in SOLVER_NAMES if suits(s, Problem(Logistic(), L2(0.01))) and suits(s, Problem(Squared(), L1(0.5)))],
)
def test_infinite_epsilon_reaches_the_scikit_learn_optimum_on_real_tables(solver):
    from sklearn.datasets import load_breast_cancer, load_diabetes

    X, y = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    signs = 2.0 * y - 1.0
    theirs = linear_model.LogisticRegression(C=1 / (0.01 * len(y)), tol=1e-10, max_iter=50_000).fit(X, y)
    problem = Problem(Logistic(), L2(0.01))
    ours = solve_without_noise(problem, X, signs, solver)
    target = problem.objective(X, signs, theirs.coef_.ravel(), theirs.intercept_[0])
    assert problem.objective(X, signs, ours.w, ours.intercept) <= target * (1 + 1e-6)

    X, y = load_diabetes(return_X_y=True)
    theirs = linear_model.Lasso(alpha=0.5, tol=1e-12, max_iter=100_000).fit(X, y)
    problem = Problem(Squared(), L1(0.5))
    ours = solve_without_noise(problem, X, y, solver)
    target = problem.objective(X, y, theirs.coef_, theirs.intercept_)
    assert problem.objective(X, y, ours.w, ours.intercept) <= target * (1 + 1e-6)


@pytest.mark.parametrize("constraint", CONSTRAINTS, ids=lambda c: c.name)
@pytest.mark.parametrize("solver", SOLVER_NAMES)
def test_private_weights_lie_in_the_set(constraint, solver):
    problem = Problem(Squared(), Zero(), constraint)
    if not suits(solver, problem):
        pytest.skip("this solver does not take this set, and says so")
    private = solve_seeded(problem, *table(Squared(), *SIZES.get(solver, (120, 4))), solver)
    assert constraint.contains(private.w, 1e-9)


def test_a_solver_that_does_not_fit_says_who_would():
    problem = Problem(Squared(), Zero(), L1Ball(1.0))
    with pytest.raises(IncompatibleSolverError, match=r"'cd' cannot be used.*'gd', .*'admm', 'sgd'"):
        CoordinateDescent().plan(problem, Public(100, 3), Budget(1.0, 1e-3))
    told = r"'greedy-cd' cannot be used.*classes.*'cd', 'screened', 'gd', .*'sgd'"
    with pytest.raises(IncompatibleSolverError, match=told):
        GreedyCoordinateDescent().plan(Problem(Multinomial(3)), Public(100, 3), Budget(1.0, 1e-3))
    with pytest.raises(IncompatibleSolverError, match=r"'sgd' cannot be used.*pure.*'cd', 'screened', 'gd'"):
        StochasticGradientDescent().plan(Problem(Squared()), Public(100, 3), Budget.pure(1.0))


FORMS = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "strided": lambda X: np.repeat(X, 2, axis=1)[:, ::2],
    "pandas": pd.DataFrame,
    "polars": lambda X: pl.DataFrame(X, schema=[f"c{j}" for j in range(X.shape[1])]),
    "lists": lambda X: X.tolist(),
    "csr": sp.csr_array,
    "csc": sp.csc_array,
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("solver", "problem"),
    [(s, problem) for s in SOLVER_NAMES for problem in (problem_for(s), problem_for(s, [Multinomial(3)])) if problem],
    ids=lambda x: x if isinstance(x, str) else name_of(x),
)
def test_every_form_of_the_same_table_gives_the_same_model(problem, solver, form):
    """Bounds that contain zero, with nothing learned inside them, keep dense and sparse frames equal; the seed keeps
    the noise equal.
    """
    X, y = table(problem.loss)
    options = {"bounds": (-40.0, 40.0), "y_bounds": (-40.0, 40.0), "epsilon": 5.0}
    method = SOLVERS[solver](scale_share=0.0)
    wanted = solve_seeded(problem, X, y, method, seed=SameDraws(3), **options)
    before = X.copy()
    found = solve_seeded(problem, FORMS[form](X), y, method, seed=SameDraws(3), **options)
    np.testing.assert_allclose(found.w, wanted.w, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(found.intercept, wanted.intercept, rtol=1e-7, atol=1e-9)
    np.testing.assert_array_equal(X, before)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.int64, np.longdouble])
@pytest.mark.parametrize("solver", SOLVER_NAMES)
def test_other_number_types_work_and_are_close(solver, dtype):
    problem = problem_for(solver)
    X, y = table(problem.loss, scales=np.full(4, 10.0))
    X = np.round(X)
    wanted = solve_seeded(problem, X, y, solver, bounds=(-40.0, 40.0))
    found = solve_seeded(problem, X.astype(dtype), y, solver, bounds=(-40.0, 40.0))
    np.testing.assert_allclose(found.w, wanted.w, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(
    "settings",
    [
        CoordinateDescent(passes=3, sampling="uniform", average=False, outer=1),
        CoordinateDescent(passes=3, sampling="proportional", average=True, outer=4),
        CoordinateDescent(passes=0.5, sampling="cyclic"),
        CoordinateDescent(smoothness=(1.0, 2.0, 3.0, 4.0, 0.25), clip=1.0, passes=2),
        GreedyCoordinateDescent(steps=3, rule="gs-r"),
        GreedyCoordinateDescent(steps=3, rule="gs-q", selection="laplace"),
        GreedyCoordinateDescent(steps=3, signed=False, smoothness=(1.0, 2.0, 3.0, 4.0, 0.25), clip=1.0),
        GradientDescent(steps=3, average=False, clip=0.1),
        StochasticGradientDescent(sampler="single", passes=1),
        StochasticGradientDescent(batch_size=7, passes=2, average=False),
    ],
    ids=repr,
)
def test_every_setting_runs_and_stays_finite(settings):
    X, y = table(Logistic())
    solution = solve_seeded(Problem(Logistic(), L1(0.01)), X, y, settings, bounds=(-50.0, 50.0))
    assert np.isfinite(solution.w).all()
    assert math.isfinite(float(solution.intercept))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: CoordinateDescent(passes=0), "passes must be a positive"),
        (lambda: CoordinateDescent(clip=-1.0), "clip must be a positive"),
        (lambda: CoordinateDescent(sampling="random"), "sampling must be one of"),
        (lambda: CoordinateDescent(outer=1.5), "outer must be a whole"),
        (lambda: GradientDescent(steps=2.5), "steps must be a whole"),
        (lambda: GradientDescent(step=math.nan), "step must be a positive"),
        (lambda: StochasticGradientDescent(sampler="fixed"), "sampler must be one of"),
        (lambda: StochasticGradientDescent(sampler="single", batch_size=5), "batch_size must be 1"),
    ],
)
def test_wrong_settings_are_refused_by_name(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_averaging_kernel_keeps_the_exact_mean_of_the_iterates():
    from discreet.data.validation import array_rows
    from discreet.problem.coordinate_state import CoordinateState
    from discreet.problem.optimum import exactly_scaled

    X, y = table(Logistic())
    scaled = exactly_scaled(Problem(Logistic(), L2(0.1)), array_rows(X, y))
    state = CoordinateState(scaled, np.full(5, 0.3), np.full(5, 0.5))
    rng = np.random.default_rng(0)
    iterates = []
    for _ in range(17):
        state.run(rng.integers(0, 5, 1), rng.standard_normal(1))
        iterates.append(state.w.copy())
    np.testing.assert_allclose(state.average(), np.mean(iterates, axis=0), rtol=1e-12)
    np.testing.assert_allclose(state.margins, scaled.margins(state.w), atol=1e-10)


def test_seeds_reproduce_and_default_noise_differs():
    X, y = table(Logistic())
    problem = Problem(Logistic(), L2(0.1))
    first, second = (solve_seeded(problem, X, y, "cd", seed=7).w for _ in range(2))
    np.testing.assert_array_equal(first, second)
    fresh = [solve(problem, X, y, "cd", Budget(1.0, 1e-4), bounds=(-40.0, 40.0)).w for _ in range(2)]
    assert not np.array_equal(*fresh)


def test_trace_and_progress():
    X, y = table(Logistic())
    calls = []
    problem = Problem(Logistic(), L2(0.1))
    solution = solve_seeded(
        problem, X, y, "cd", callback=lambda done, total: calls.append((done, total)), trace="non-private"
    )
    assert calls[-1][0] == calls[-1][1] == solution.plan.settings.steps
    assert len(solution.objective_trace) == len(calls)
    assert solve_seeded(problem, X, y, "cd").objective_trace is None


@pytest.mark.slow
def test_sparse_coordinate_descent_does_not_densify(shared_data):
    import tracemalloc

    z = shared_data("dorothea")
    X = sp.csr_array((z["X_data"], z["X_indices"], z["X_indptr"]), shape=tuple(z["X_shape"]))
    y = 2.0 * z["y"] - 1.0
    tracemalloc.start()
    solution = solve_seeded(Problem(Logistic(), L1(0.01)), X, y, CoordinateDescent(passes=1), bounds=(0.0, 1.0))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.2 * X.shape[0] * X.shape[1] * 8
    assert solution.w.shape == (X.shape[1],)
