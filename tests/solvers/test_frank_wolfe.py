"""Frank-Wolfe: sensitivity of the scores, upkeep on sparse rows, optimum, feasibility, refusals."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import IncompatibleSolverError, LogisticRegression, NotPrivateWarning, solve
from discreet.data.public import Public
from discreet.data.rows import Data
from discreet.data.validation import array_rows
from discreet.privacy.budget import Budget
from discreet.privacy.mechanisms import clipped_sum
from discreet.privacy.random.generator import seeded_generator
from discreet.privacy.relation import Relation
from discreet.problem.column_scaling import ColumnScaling
from discreet.problem.constraints import L1Ball, L2Ball, Simplex
from discreet.problem.losses import Huber, Logistic, Multinomial, Squared
from discreet.problem.optimum import exactly_scaled
from discreet.problem.penalties import L1
from discreet.problem.problem import Problem
from discreet.problem.scaled_problem import scale_problem
from discreet.solvers import FrankWolfe
from discreet.solvers.frank_wolfe.vertices import Hull, MemoryPath, TouchedPath, begin
from tests.catalogue import table
from tests.neighbours import CASE, N, P, neighbours, targets

SQUARE = ((1.0, 1.0), (1.0, -1.0), (-1.0, 1.0), (-1.0, -1.0))

STEP = 2.0**-30  # to whose multiples terms are rounded


def sparse_table(rows=80, columns=40, seed=0):
    rng = np.random.default_rng(seed)
    X = sp.random_array((rows, columns), density=0.1, rng=rng, format="csr")
    X.data = rng.uniform(-1.0, 1.0, X.nnz)
    return X, rng.choice([-1.0, 1.0], rows), rng.uniform(0.0, 1.0, rows)


def quietly(problem, X, y, solver, budget, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return solve(problem, X, y, solver, budget, **options)


# ---- sensitivity -----------------------------------------------------------------------------------------------


@settings(max_examples=150)
@given(
    **CASE,
    loss=st.sampled_from([Squared(), Logistic(), Huber(0.7)]),
    sparse=st.booleans(),
    intercept=st.booleans(),
    polytope=st.sampled_from(["ball", "simplex", "hull"]),
)
def test_levels_move_by_at_most_their_sensitivity(
    relation, X, weight, row, at, seed, loss, sparse, intercept, polytope
):
    """After the same choices, with hostile rows: in every score and in the intercept's entry."""
    scaling = ColumnScaling(
        low=np.full(P, -1e9), high=np.full(P, 1e9), shift=np.zeros(P), scale=np.full(P, 0.01),
        second_moment=np.ones(P), frozen=np.zeros(P, dtype=bool), target_low=-1e200, target_high=1e200,
    )  # fmt: skip
    points = np.array([[1.0, 0.0, 3.0], [0.0, -2.0, 0.0], [5.0, 5.0, 5.0]])
    shape = {"ball": L1Ball(7.0), "simplex": Simplex(7.0), "hull": Hull(points)}[polytope]
    clip, paths = 0.3, []
    for data in neighbours(relation, X, targets(loss, seed), weight, row, at):
        held = Data(sp.csr_array(data.X) if sparse else data.X, data.y, data.weight)
        scaled = scale_problem(Problem(loss, fit_intercept=intercept), held, scaling, N, "F")
        with np.errstate(all="ignore"):
            path = begin(scaled, shape, clip, 1.0, STEP)
            for j, share in ((1, 1.0), (0, 0.7), (2, 0.5)):
                path.move((j, 1.0), share, 0.1)
        paths.append(path)
    claimed = clipped_sum(relation).l2 * clip
    levels = np.abs(paths[0].choice.levels - paths[1].choice.levels) * STEP
    assert (levels <= (claimed + STEP) * (1 + 1e-12)).all()
    assert abs(paths[0].intercept_sum() - paths[1].intercept_sum()) <= claimed + STEP
    np.testing.assert_array_equal(paths[0].w, paths[1].w)


# ---- the path on sparse rows -----------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", [Logistic(), Squared()], ids=lambda loss: loss.name)
@pytest.mark.parametrize("paired", [True, False])
@pytest.mark.parametrize("schedule", ["2/(t+2)", "constant"])
def test_the_touched_path_equals_the_scanned_path_draw_for_draw(loss, paired, schedule):
    X, y, weight = sparse_table()
    scaled = exactly_scaled(Problem(loss, fit_intercept=False), array_rows(X, y, weight))
    shape, clip = (L1Ball if paired else Simplex)(5.0), 0.2
    paths = [kind(scaled, shape, clip, 1.0, STEP) for kind in (TouchedPath, MemoryPath)]
    uniforms = seeded_generator(0).uniform((150, paths[0].choice.uniforms))
    for t, u in enumerate(uniforms):
        share = 2.0 / (t + 2.0) if schedule == "2/(t+2)" else math.log(151.0) / 150
        first, second = (path.choice.draw(u) for path in paths)
        assert first == second
        for path in paths:
            path.move(first, share, 0.0)
        np.testing.assert_allclose(paths[0].w, paths[1].w, atol=1e-12)
        # The margins differ in their last digits, and with them, by a step at most, a few of the rounded terms.
        np.testing.assert_allclose(paths[0].sums * STEP, paths[1].sums * STEP, atol=1e-8)
        np.testing.assert_allclose(paths[0].factor * paths[0].margins, paths[1].margins, atol=1e-10)
    assert isinstance(begin(scaled, shape, clip, 1.0, STEP), TouchedPath)


def test_sums_changed_by_differences_equal_fresh_ones_to_the_last_bit():
    X, y, weight = sparse_table()
    scaled = exactly_scaled(Problem(Logistic(), fit_intercept=False), array_rows(X, y, weight))
    path = TouchedPath(scaled, L1Ball(5.0), 0.2, 1.0, STEP)
    for u in seeded_generator(0).uniform((150, path.choice.uniforms)):
        path.move(path.choice.draw(u), 0.05, 0.0)
    kept = path.sums.copy()
    path._first_sums()
    np.testing.assert_array_equal(path.sums, kept)


def test_a_tiny_factor_is_multiplied_out():
    X, y, _ = sparse_table()
    scaled = exactly_scaled(Problem(Logistic(), fit_intercept=False), array_rows(X, y))
    path = TouchedPath(scaled, L1Ball(3.0), 1.0, 1.0, STEP)
    for j in range(40):
        path.move((j, 1.0), 0.999, 0.0)
    assert 1e-60 <= path.factor <= 1.0
    np.testing.assert_allclose(path.factor * path.margins, scaled.margins(path.w), atol=1e-12)


# ---- the optimum, and the set ----------------------------------------------------------------------------------


@pytest.mark.parametrize("schedule", ["2/(t+2)", "constant"])
@pytest.mark.parametrize("constraint", [L1Ball(0.8), Simplex(1.0)], ids=lambda c: c.name)
@pytest.mark.parametrize("sparse", [False, True])
def test_exact_steps_approach_the_optimum_at_the_known_rate(constraint, schedule, sparse):
    X, y = table(Squared(), scales=np.ones(4))
    problem = Problem(Squared(), constraint=constraint, fit_intercept=False)
    best = problem.optimum(X, y).value
    held = sp.csr_array(X) if sparse else X
    steps = 800
    with pytest.warns(NotPrivateWarning):
        solution = solve(problem, held, y, FrankWolfe(steps=steps, schedule=schedule), Budget(math.inf, 0.5))
    assert constraint.contains(solution.w, 1e-9)
    curvature = np.linalg.norm(X, 2) ** 2 / len(y) * constraint.diameter(4) ** 2
    allowed = 2.0 * curvature / (steps + 2) * (math.log(steps + 1) if schedule == "constant" else 1.0)
    assert -1e-9 <= problem.objective(X, y, solution.w) - best <= allowed < 0.2 * best


def test_a_list_of_vertices_is_their_convex_hull():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 2)) * [1.0, 30.0]
    y = X @ [3.0, 0.2] + 0.1 * rng.standard_normal(300)
    problem = Problem(Squared(), fit_intercept=False)
    grid = np.linspace(-1.0, 1.0, 4_001)
    best = min(problem.objective(X, y, np.array([1.0, b])) for b in grid)  # the first coefficient ends at its bound
    for solver in (FrankWolfe(vertices=SQUARE), FrankWolfe(vertices=SQUARE, steps=3_000)):
        solution = quietly(problem, X, y, solver, Budget(math.inf, 0.5))
        assert np.abs(solution.w).max() <= 1.0 + 1e-9
        assert problem.objective(X, y, solution.w) <= best * 1.01
    private = quietly(problem, X, y, FrankWolfe(vertices=SQUARE), Budget(1.0, 1e-4), random_state=0)
    assert np.abs(private.w).max() <= 1.0 + 1e-9


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize("budget", [Budget(1.0, 1e-5), Budget.pure(1.0), Budget.zcdp(0.05)], ids=str)
@pytest.mark.parametrize(
    "solver", [FrankWolfe(), FrankWolfe(schedule="constant", clip=0.5), FrankWolfe(steps=1)], ids=str
)
def test_private_weights_are_feasible_and_as_sparse_as_the_steps(solver, budget, relation):
    X, y, _ = sparse_table(400, 60)
    options = {"bounds": (-1.0, 1.0), "relation": relation, "random_state": 0}
    if relation is Relation.ADD_REMOVE:
        options["public_n"] = 390
    for intercept in (True, False):
        for constraint, start in ((L1Ball(3.0), 0), (Simplex(2.0), 1)):
            problem = Problem(Logistic(), constraint=constraint, fit_intercept=intercept)
            solution = quietly(problem, X, y, solver, budget, **options)
            assert constraint.contains(solution.w, 1e-9)
            assert np.count_nonzero(solution.w) <= solution.iterations + start
            assert math.isfinite(float(solution.intercept))


def test_an_empty_column_does_not_hide_the_signal():
    X = np.zeros((2_000, 2))
    X[:, 0] = np.random.default_rng(0).uniform(-1.0, 1.0, 2_000)
    problem = Problem(Logistic(), constraint=Simplex(1.0))
    solution = quietly(problem, X, np.sign(X[:, 0]), FrankWolfe(), Budget(3.0, 1e-4), random_state=0)
    assert problem.constraint.contains(solution.w)
    assert solution.scaling.high[1] == pytest.approx(solution.scaling.high[0], rel=0.1)  # lent
    assert solution.w[0] > 0.5


def test_columns_without_a_scale_are_zero_and_keep_the_weights_feasible():
    """Nothing was learned about any column: entries are clipped to 0, the weights stay in the set."""
    problem = Problem(Logistic(), constraint=Simplex(1.0))
    y = np.random.default_rng(0).choice([-1.0, 1.0], 2_000)
    solution = quietly(problem, np.zeros((2_000, 2)), y, FrankWolfe(), Budget(3.0, 1e-4), random_state=0)
    assert problem.constraint.contains(solution.w)
    assert (solution.scaling.high == 0.0).all()


def test_the_signal_is_found_among_many_columns():
    """The defaults at epsilon = 1: three of 300 columns matter; half of the error at the start is gone."""
    rng = np.random.default_rng(1)
    X = rng.uniform(-1.0, 1.0, (4_000, 300))
    y = X[:, 0] + X[:, 1] - X[:, 2]
    problem = Problem(Squared(), constraint=L1Ball(3.0))
    options = {"bounds": (-1.0, 1.0), "y_bounds": (-3.0, 3.0), "random_state": 5}
    solution = quietly(problem, X, y, "frank-wolfe", Budget(1.0, 1e-6), **options)
    assert problem.objective(X, y, solution.w, solution.intercept) < 0.5 * problem.objective(X, y, np.zeros(300))


# ---- plans and refusals ----------------------------------------------------------------------------------------


def test_the_event_lists_every_release():
    from discreet.privacy.accounting import rho_of

    public = Public(1_000, 5, low=-np.ones(5), high=np.ones(5))
    for intercept, cost in ((False, 0.5), (True, 0.5 + 0.5 / 9.0)):
        problem = Problem(Logistic(), constraint=L1Ball(1.0), fit_intercept=intercept)
        plan = FrankWolfe(steps=7, scale_share=0.0).plan(problem, public, Budget.zcdp(0.1))
        assert rho_of(plan.event, Relation.REPLACE) == pytest.approx(7 * cost / plan.mechanism.multiplier**2)


@pytest.mark.parametrize(
    ("problem", "solver", "message"),
    [
        (Problem(Logistic()), FrankWolfe(), r"needs vertices: constraint=L1Ball.*vertices=.*use one of 'cd'"),
        (Problem(Logistic(), constraint=L2Ball(1.0)), FrankWolfe(), "needs vertices.*'gd'"),
        (Problem(Logistic(), L1(0.1), L1Ball(1.0)), FrankWolfe(), "no step for the l1 penalty"),
        (Problem(Multinomial(3), constraint=L1Ball(1.0)), FrankWolfe(), "several classes"),
        (Problem(Logistic(), constraint=L1Ball(1.0)), FrankWolfe(vertices=SQUARE), "replace the constraint"),
    ],
)
def test_problems_that_do_not_fit_are_refused_with_a_way_out(problem, solver, message):
    with pytest.raises(IncompatibleSolverError, match=message):
        solver.plan(problem, Public(100, 2), Budget(1.0, 1e-3))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"steps": 0}, "steps must be a positive"),
        ({"clip": math.inf}, "clip must be a positive"),
        ({"clip": 1e-320}, "clip must lie between"),
        ({"schedule": "1/t"}, "schedule must be one of"),
        ({"vertices": []}, "vertices must be a list of points"),
        ({"vertices": [[1.0, math.nan]]}, "vertices must be finite"),
    ],
)
def test_wrong_settings_are_refused_by_name(options, message):
    with pytest.raises(ValueError, match=message):
        FrankWolfe(**options)


def test_vertices_must_have_an_entry_for_each_column():
    with pytest.raises(ValueError, match="vertices have 2 entries, but X has 3 columns"):
        FrankWolfe(vertices=SQUARE).plan(Problem(Squared()), Public(100, 3), Budget(1.0, 1e-3))


@pytest.mark.filterwarnings("ignore::discreet.UtilityWarning")  # a small table
def test_an_estimator_takes_the_constraint():
    X, y, _ = sparse_table(400, 30)
    options = {"classes": [-1.0, 1.0], "bounds": (-1.0, 1.0), "solver": "frank-wolfe"}
    model = LogisticRegression(penalty=None, constraint=L1Ball(2.0), **options).fit(X, y)
    assert np.abs(model.coef_).sum() <= 2.0 + 1e-9
    with pytest.raises(IncompatibleSolverError, match="constraint=L1Ball"):
        LogisticRegression(penalty=None, **options).fit(X, y)
    with pytest.raises(IncompatibleSolverError, match="no step for the l2 penalty"):
        LogisticRegression(constraint=L1Ball(2.0), **options).fit(X, y)
