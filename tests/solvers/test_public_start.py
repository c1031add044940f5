"""Public starts, scales and metrics: what they cost, that solvers begin where they should, and misleading ones.

The statistical tests have fixed seeds; with fresh ones each would fail with probability below 1e-3.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.dataset
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import IncompatibleSolverError, LogisticRegression, PublicModel, PublicTable, Ridge, solve
from discreet.data.public import Public
from discreet.data.rows import Data
from discreet.privacy import accounting
from discreet.privacy.budget import Budget
from discreet.privacy.mechanisms import Gaussian
from discreet.privacy.random.generator import seeded_generator
from discreet.privacy.relation import Relation
from discreet.problem import L1, L2, Logistic, Multinomial, Squared
from discreet.problem.column_scaling import identity_scaling
from discreet.problem.constraints import L1Ball, L2Ball
from discreet.problem.problem import Problem
from discreet.problem.scaled_problem import scale_problem, scaled_start
from discreet.scaling.learn import declared_scaling
from discreet.scaling.public_scales import check_sensitivity, start_is_better, total_gain, with_public_scales
from discreet.scaling.second_moment import clipped_second_moment
from discreet.solvers import SOLVERS, CoordinateDescent, GradientDescent, Newton
from discreet.solvers._shared.minimisers import fitted_start
from discreet.solvers.newton.descent import largest_eigenvalue, public_metric
from discreet.solvers.newton.planning import uses_public_metric
from discreet.solvers.run import make_plan
from tests.neighbours import CASE, LOSSES, scaled_neighbours, some_weights

ROWS, COLUMNS = 2_000, 4
SCALES = np.array([1.0, 30.0, 0.05, 2.0])
TRUE = np.array([2.0, -0.05, 10.0, 0.0])
RNG = np.random.default_rng(3)
X = RNG.normal(size=(ROWS + 500, COLUMNS)) * SCALES + [0.0, 60.0, 0.0, -4.0]
MARGINS = (X - [0.0, 60.0, 0.0, -4.0]) @ TRUE
SIGNS = np.where(RNG.random(X.shape[0]) < 1.0 / (1.0 + np.exp(-MARGINS)), 1.0, -1.0)
PRIVATE, PUBLIC = slice(0, ROWS), slice(ROWS, None)
START = PublicModel(TRUE, -float(TRUE @ [0.0, 60.0, 0.0, -4.0]))
RIDGE = Problem(Logistic(), L2(1e-4))
TINY = Budget(0.1, 1e-6)  # so little that a run learns next to nothing, and stays about where it began

# One short run each: with a large budget it ends where it began, but for a little.
ONE_STEP = {"steps": 1, "step": 0.1}
OWN = {
    "cd": {"passes": 0.3},
    "greedy-cd": {"steps": 1},
    "sketched": {"steps": 1},
    "admm": {"rounds": 1, "gamma": 0.1},
    "sgd": {"passes": 0.1, "step": 0.1},
    "svrg": {"anchors": 1, "inner": 1, "step": 0.1},
    "dual-cd": {"passes": 0.1},
    "ftrl": {"epochs": 1, "step": 0.01},
    "bolt-on": {"passes": 1},
    "newton": {"steps": 1},
}
SHORT = {name: OWN.get(name, ONE_STEP) for name, kind in SOLVERS.items() if kind().capabilities.start}


def quiet(call):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return call()


def log_loss(model_or_solution, rows=PRIVATE):
    coef, intercept = model_or_solution.coef, model_or_solution.intercept
    return float(np.logaddexp(0.0, -SIGNS[rows] * (X[rows] @ coef + intercept)).mean())


def fit(budget=TINY, seed=0, solver="auto", problem=RIDGE, **inputs):
    run = {"solver": solver, "budget": budget, "random_state": seed, **inputs}
    return quiet(lambda: solve(problem, X[PRIVATE], SIGNS[PRIVATE], **run))


# --- where solvers begin ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SHORT)
def test_a_short_run_ends_near_its_start(name):
    solver = SOLVERS[name](**SHORT[name])
    begun = fit(Budget(1e4, 1e-6), solver=solver, start=START)
    fresh = fit(Budget(1e4, 1e-6), solver=solver)
    best = log_loss(START)
    assert log_loss(begun) < best + 0.1 * (math.log(2.0) - best)
    gained = 0.0 if name == "newton" else 0.01  # whose single step comes near the optimum from anywhere
    assert log_loss(begun) < log_loss(fresh) - gained


@pytest.mark.parametrize("name", [name for name, kind in SOLVERS.items() if not kind().capabilities.start])
def test_other_solvers_refuse_a_start_and_name_those_that_take_it(name):
    sets = [Problem(Logistic(), constraint=one(1.0)) for one in (L2Ball, L1Ball)]
    forms = [Problem(Logistic(), L2(0.1)), Problem(Squared(), L2(0.1)), *sets]
    problem = next(form for form in forms if SOLVERS[name]().why_incompatible(form, TINY) is None)
    with pytest.raises(IncompatibleSolverError, match="does not depend on where it starts; use one of"):
        SOLVERS[name]().plan(
            problem, Public.of(100, 2, bounds=(-1, 1), y_bounds=(-1, 1), start=PublicModel([1, 1])), TINY
        )


def test_a_start_means_the_same_predictions_in_scaled_columns():
    table = Data(X[PUBLIC], SIGNS[PUBLIC])
    public = Public.of(ROWS, COLUMNS, table=PublicTable(X[PUBLIC], SIGNS[PUBLIC]))
    scaling = with_public_scales(identity_scaling(COLUMNS), public, True, False)
    rows = scaling.matrix(table, "C", True)
    inside = ((X[PUBLIC] >= scaling.low) & (X[PUBLIC] <= scaling.high)).all(axis=1)
    margins = rows @ scaled_start(RIDGE, scaling, START)
    np.testing.assert_allclose(margins[inside], X[PUBLIC][inside] @ START.coef + START.intercept, atol=1e-9)


def test_a_start_outside_the_set_is_projected_onto_it():
    problem = Problem(Logistic(), constraint=L2Ball(1.0))
    found = fit(Budget(1e4, 1e-6), solver=GradientDescent(steps=1, step=1e-6), problem=problem, start=START)
    np.testing.assert_allclose(found.coef, START.coef / np.linalg.norm(START.coef), atol=1e-3)


def test_several_classes_begin_at_one_row_each():
    y = np.searchsorted([-1.0, 1.0], MARGINS).astype(float)
    start = PublicModel(np.outer([-1.0, 0.0, 1.0], TRUE), np.array([-1.0, 0.0, 1.0]) * START.intercept)
    problem = Problem(Multinomial(3), L2(1e-4))
    inputs = ({}, {"start": start}, {"public_table": PublicTable(X[PUBLIC], y[PUBLIC])})
    found = [
        quiet(lambda given=given: solve(problem, X[PRIVATE], y[PRIVATE], "gd", TINY, random_state=1, **given))
        for given in inputs
    ]
    correct = [((X[PRIVATE] @ one.coef.T + one.intercept).argmax(axis=1) == y[PRIVATE]).mean() for one in found]
    assert correct[1] > correct[0] + 0.1
    assert correct[2] > correct[0] + 0.1


# --- what is spent ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("budget", [Budget(1.0, 1e-6), Budget.zcdp(0.05), Budget.gdp(0.3), Budget(1.0, 0.0)])
@pytest.mark.parametrize("relation", ["replace", "zero_out", "add_remove"])
def test_the_whole_event_fits_the_budget_and_names_the_check(budget, relation):
    public = Public.of(ROWS, COLUMNS, relation=relation, public_n=ROWS, bounds=(-100, 100), start=START)
    plan = GradientDescent().plan(RIDGE, public, budget)
    assert accounting.fits(plan.event, budget, Relation(relation))
    assert [r.times for r in plan.releases if r.what == "check of the public start"] == [1]
    assert sum(r.share for r in plan.releases) == pytest.approx(1.0, abs=2e-3)


def test_a_public_table_leaves_no_budget_for_scales():
    table = PublicTable(X[PUBLIC], SIGNS[PUBLIC])
    plan = GradientDescent().plan(RIDGE, Public.of(ROWS, COLUMNS, table=table), Budget(1.0, 1e-6))
    assert [r.what for r in plan.releases] == ["check of the public start", "mean gradients of all rows"]
    assert "fitted on the public table" in str(plan)


def test_without_its_target_a_table_leaves_the_target_of_a_regression_to_the_budget():
    learned, known = (
        Ridge(public_table=PublicTable(X[PUBLIC], y)).plan(ROWS, COLUMNS).scaling_plan for y in (None, MARGINS[PUBLIC])
    )
    assert (learned.learns_target, known.learns_target) == (True, False)
    assert (learned.method, known.method, known.histogram) == ("public", "public", None)


def test_rows_too_few_for_a_check_trust_the_start():
    public = Public.of(50, COLUMNS, bounds=(-100, 100), start=START)
    assert GradientDescent().plan(RIDGE, public, TINY).scaling_plan.start_check is None


def test_auto_takes_newton_where_public_inputs_stand_in_for_what_noise_hides():
    budget, table = Budget(0.05, 1e-6), PublicTable(np.eye(30), np.tile([-1.0, 1.0], 15))
    public = [Public.of(500, 30, **given) for given in ({"table": table}, {"start": PublicModel(np.ones(30))})]
    plans = [make_plan("auto", RIDGE, facts, budget) for facts in public]
    assert [plan.solver.name for plan in plans] == ["newton", "newton"]
    assert all("public" in str(plan.chosen_because) for plan in plans)


@pytest.mark.parametrize("columns", [30, 300, 3_000])
@pytest.mark.parametrize("rows", [300, 3_000, 300_000])
@pytest.mark.parametrize("sparse", [True, False])
def test_auto_takes_a_solver_that_takes_a_start(columns, rows, sparse):
    public = Public.of(rows, columns, sparse=sparse, bounds=(-1.0, 1.0), start=PublicModel(np.ones(columns)))
    assert make_plan("auto", RIDGE, public, Budget(1.0, 1e-6)).has_public_start


def test_a_public_target_locates_that_of_a_regression():
    problem, table = Problem(Squared(), L2(1e-4)), PublicTable(X[PUBLIC], 1e6 + MARGINS[PUBLIC])
    found = quiet(lambda: solve(problem, X[PRIVATE], 1e6 + MARGINS[PRIVATE], "auto", TINY, public_table=table))
    residuals = X[PRIVATE] @ found.coef + found.intercept - 1e6 - MARGINS[PRIVATE]
    assert np.mean(residuals**2) < 0.3 * np.var(MARGINS)


def test_newton_takes_the_metric_whose_error_is_smaller():
    budget, table = Budget(1.0, 1e-6), PublicTable(X[PUBLIC])
    few, many = (Public.of(rows, COLUMNS, table=table) for rows in (300, 300_000))
    assert uses_public_metric(few, budget, COLUMNS + 1, 0.1)
    assert not uses_public_metric(many, budget, COLUMNS + 1, 0.1)
    words = [r.what for r in Newton(steps=4).plan(RIDGE, few, budget).releases]
    assert "largest second moment of the rows in the public metric" in words
    assert "second-moment matrix of the rows" not in words


def test_a_radius_of_the_caller_leaves_the_public_metric_as_it_is():
    rng = np.random.default_rng(0)
    wide, table = rng.normal(size=(5_000, 30)), PublicTable(rng.normal(size=(5_000, 30)))
    y = np.where(wide[:, 0] > 0.0, 1.0, -1.0)
    inputs = {"solver": Newton(radius=2.0), "budget": Budget(1.0, 1e-6), "public_table": table, "random_state": 0}
    found = quiet(lambda: solve(RIDGE, wide, y, **inputs))
    assert found.plan.settings.public_metric
    assert "counts of row lengths" not in [r.what for r in found.plan.releases]
    assert found.coef[0] > 0.1


# --- sensitivities ----------------------------------------------------------------------------------------------------


@settings(max_examples=150, deadline=None)
@given(loss=LOSSES, **CASE)
@pytest.mark.slow
def test_one_row_moves_the_gains_no_further_than_the_check_says(loss, relation, X, weight, row, at, seed):
    pair = scaled_neighbours(relation, loss, X, weight, row, at, seed, "C")
    first, second = (gains_of(replace(scaled, origin=some_weights(scaled, seed))) for scaled in pair)
    assert abs(first - second) <= check_sensitivity(relation).l2


def gains_of(scaled):
    return float(total_gain(scaled)[0])


@settings(max_examples=100, deadline=None)
@given(radius=st.sampled_from([0.1, 1.0, 30.0]), **CASE)
def test_one_row_moves_the_largest_eigenvalue_by_at_most_the_squared_radius(radius, relation, X, weight, row, at, seed):
    pair = scaled_neighbours(relation, Logistic(), X, weight, row, at, seed, "C")
    table = PublicTable(np.random.default_rng(seed).normal(size=(20, X.shape[1])))
    metric = public_metric(pair[0], table, 0.1).metric
    released = []
    for scaled in pair:
        norms = metric.norms(scaled.X)
        total = clipped_second_moment(scaled.X, norms, radius, scaled.weight, scaled.rows, metric)
        released.append(largest_eigenvalue(total, radius, 1, Gaussian(0.0), seeded_generator(0))[0])
    assert abs(released[0] - released[1]) <= radius**2 * (1.0 + 1e-9)


@pytest.mark.parametrize("rows", [10, 50, 200, 2_000])
def test_twice_the_public_metric_exceeds_the_second_moment_whatever_the_number_of_rows(rows):
    """The lift of the page: at least half of the identity, from 10 to 2,000 normal rows of 50 columns."""
    draws = np.random.default_rng(rows).normal(size=(rows, 50))
    problem = Problem(Logistic(), fit_intercept=False)
    scaled = scaled_identity(problem, 50)
    values = public_metric(scaled, PublicTable(draws), 0.0).metric.values
    assert values.min() > 0.5 * 0.9  # the law of the smallest eigenvalue is that of many columns
    unlifted = np.linalg.eigvalsh(draws.T @ draws / rows)
    assert rows >= 2_000 or unlifted.min() < 0.45


def scaled_identity(problem, columns):
    data = Data(np.zeros((2, columns)), np.array([-1.0, 1.0]))
    return scale_problem(problem, data, identity_scaling(columns), 2, "C")


# --- good and misleading inputs ---------------------------------------------------------------------------------------


def test_a_good_start_saves_a_fit_that_has_no_budget_to_learn():
    with_start = np.mean([log_loss(fit(seed=s, start=START)) for s in range(3)])
    with_table = np.mean([log_loss(fit(seed=s, public_table=PublicTable(X[PUBLIC], SIGNS[PUBLIC]))) for s in range(3)])
    without = np.mean([log_loss(fit(seed=s)) for s in range(3)])
    assert without > 0.6
    assert max(with_start, with_table) < 0.5


@pytest.mark.parametrize("solver", ["auto", "gd", "cd"])
def test_a_wrong_start_is_found_out(solver):
    wrong = PublicModel(-TRUE, -START.intercept)
    budget = Budget(0.3, 1e-6)
    bounds = ([-4.0, -60.0, -0.2, -12.0], [4.0, 180.0, 0.2, 4.0])
    misled = [log_loss(fit(budget, s, solver, start=wrong, bounds=bounds)) for s in range(5)]
    without = [log_loss(fit(budget, s, solver, bounds=bounds)) for s in range(5)]
    assert log_loss(wrong) > 2.0
    assert np.median(misled) < np.median(without) + 0.05  # a single run can be unlucky, with or without a start


@pytest.mark.parametrize("better", [True, False])
def test_the_check_tells_good_from_bad_starts_as_often_as_its_noise_allows(better):
    """At a gain of three standard deviations of the noise it errs once in 740 times; 20 of 200 would be a fault."""
    scaled = scaled_start_case(better)
    mechanism = Gaussian(abs(gains_of(scaled)) / 3.0 / check_sensitivity(Relation.REPLACE).l2)
    rng = seeded_generator(5)
    found = [start_is_better(scaled, mechanism, Relation.REPLACE, rng) for _ in range(200)]
    assert abs(np.mean(found) - better) < 0.1


def scaled_start_case(better):
    start = START if better else PublicModel(-TRUE, -START.intercept)
    scaling = identity_scaling(COLUMNS)
    return scale_problem(RIDGE, Data(X[PRIVATE], SIGNS[PRIVATE]), scaling, ROWS, "C", start)


def test_a_table_that_hides_a_column_neither_diverges_nor_freezes_it():
    """A column that is constant in the public table, and the best one in the private table."""
    shifted = X[PUBLIC].copy()
    shifted[:, 0] = 0.0
    found = fit(Budget(3.0, 1e-6), public_table=PublicTable(shifted, SIGNS[PUBLIC]))
    assert found.coef[0] > 0.5
    assert log_loss(found) < log_loss(fit(Budget(3.0, 1e-6))) + 0.05


def test_an_overfitted_public_table_gives_a_modest_start():
    rng = np.random.default_rng(0)
    table = PublicTable(rng.normal(size=(30, 25)), np.where(rng.random(30) < 0.5, -1.0, 1.0))
    start = fitted_start(RIDGE, Public.of(100, 25, table=table))
    margins = rng.normal(size=(2_000, 25)) @ start.coef + start.intercept
    assert margins.std() < 0.5  # a plain logistic fit separates the labels, and its margins have no bound


def test_a_label_that_does_not_occur_in_the_public_table_keeps_a_probability():
    table = PublicTable(X[PUBLIC], np.ones(500))
    start = fitted_start(RIDGE, Public.of(100, COLUMNS, table=table))
    assert 3.0 < np.median(X[PUBLIC] @ start.coef + start.intercept) < 9.0


@pytest.mark.parametrize("penalty", [L1(0.05), L2(0.1)])
def test_a_start_is_fitted_with_the_penalty_of_the_problem(penalty):
    problem = Problem(Squared(), penalty)
    public = Public.of(100, COLUMNS, table=PublicTable(X[PUBLIC] / SCALES, MARGINS[PUBLIC]))
    start = fitted_start(problem, public)
    best = problem.optimum(X[PUBLIC] / SCALES, MARGINS[PUBLIC])
    np.testing.assert_allclose(start.coef, best.coef, atol=0.02)


# --- theory -----------------------------------------------------------------------------------------------------------


def test_a_distance_law_knows_where_the_run_began():
    problem = Problem(Logistic(), L2(0.2), fit_intercept=False)
    laws = []
    for start in (None, PublicModel([0.3, 0.4])):
        public = Public.of(500, 2, bounds=(-1.0, 1.0), start=start)
        plan = GradientDescent(scale_share=0.0, steps=50).plan(problem, public, Budget(5.0, 1e-6))
        laws.append(plan.distance_law(declared_scaling(plan.scaling_plan, public)))
    assert laws[1].start == pytest.approx(laws[0].start + 0.5)


def test_what_no_theorem_covers_is_refused():
    problem = Problem(Logistic(), L2(0.2), fit_intercept=False)
    public = Public.of(500, 2, bounds=(-1.0, 1.0), start=PublicModel([0.3, 0.4]))
    plan = CoordinateDescent(scale_share=0.0).plan(problem, public, Budget(5.0, 1e-6))
    with pytest.raises(ValueError, match="a public start is not covered"):
        plan.distance_law(declared_scaling(plan.scaling_plan, public))
    assert plan.theory().upper is None
    assert "begin at 0" in plan.theory().reasons[-1]


def test_a_file_and_memory_give_the_same_model():
    labels = (SIGNS > 0).astype(int)
    columns = {f"x{k}": X[PRIVATE, k] for k in range(COLUMNS)}
    stored = pa.dataset.dataset(pa.table({**columns, "y": labels[PRIVATE]}))
    inputs = {"public_table": PublicTable(X[PUBLIC], labels[PUBLIC]), "classes": [0, 1], "random_state": 0}
    models = [LogisticRegression(**inputs) for _ in range(2)]
    quiet(lambda: models[0].fit(X[PRIVATE], labels[PRIVATE]))
    quiet(lambda: models[1].fit(stored, "y"))
    np.testing.assert_array_equal(models[0].coef_, models[1].coef_)
