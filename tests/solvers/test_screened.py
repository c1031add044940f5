"""Private screening: its scores, their sensitivity, the law of the choices, and what the solver promises to do."""

from __future__ import annotations

import dataclasses
import itertools
import math

import numpy as np
import pytest
import scipy.sparse as sp

from discreet import Budget, IncompatibleSolverError, Problem, PublicModel, PublicTable, solve
from discreet.data.public import Public
from discreet.data.rows import Data
from discreet.data.synthetic import sparse_regression
from discreet.privacy import accounting, mechanisms
from discreet.privacy.random.generator import seeded_generator
from discreet.privacy.relation import Relation
from discreet.problem.constraints import Box
from discreet.problem.losses import Logistic, Multinomial, Squared
from discreet.problem.penalties import L1
from discreet.scaling.plan import plan_scaling
from discreet.solvers import Screened
from discreet.solvers.screened import concordance_scores, found_columns, pair_weights, worth_screening
from tests.neighbours import neighbours

BUDGET = Budget(1.0, 1e-6)


def pairs(X, y, weight):
    """The sum over all pairs, one by one."""
    total = np.zeros(X.shape[1])
    for i, k in itertools.combinations(range(len(y)), 2):
        order = (X[i] > X[k]).astype(float) - (X[i] < X[k])  # a difference could overflow
        total += weight[i] * weight[k] * order * np.sign(y[i] - y[k])
    return total


def tied_table(rows=30, columns=5, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.integers(-2, 3, (rows, columns)) * rng.choice([1.0, 8e307, 5e-324], columns)
    return X.astype(np.float64), rng.integers(0, 4, rows).astype(np.float64)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array, sp.csc_array])
@pytest.mark.parametrize("weighted", [False, True])
def test_scores_are_sums_over_all_pairs(form, weighted):
    X, y = tied_table()
    weight = np.linspace(0.0, 1.0, len(y)) if weighted else None
    used = pair_weights(weight, len(y), len(y))
    problem = Problem(Squared())
    found = concordance_scores(problem, Data(form(X), y, weight), len(y))
    np.testing.assert_array_equal(found, np.abs(pairs(X, y, used)) / len(y))
    mirror = np.vstack([X, -X]), np.append(y, -y), np.append(used, used)
    found = concordance_scores(Problem(Squared(), fit_intercept=False), Data(form(X), y, weight), len(y))
    np.testing.assert_array_equal(found, np.abs(pairs(*mirror)) / (4 * len(y)))
    several = concordance_scores(Problem(Multinomial(4)), Data(form(X), y, weight), len(y))
    each = [np.abs(pairs(X, np.where(y == k, 1.0, -1.0), used)) for k in range(4)]
    np.testing.assert_array_equal(several, np.max(each, axis=0) / len(y))


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize("intercept", [True, False])
def test_scores_move_by_at_most_their_sensitivity_and_come_close_to_it(relation, intercept):
    """The worst row agrees with the order of all others; replaced, it disagrees with all. Random ones stay below."""
    problem, claimed, moves = Problem(Squared(), fit_intercept=intercept), mechanisms.concordant_pairs(relation).l2, []
    line = np.linspace(0.1, 1.0, 60)
    worst = Data(line[:, None], line), [2.0], 59
    rng = np.random.default_rng(1)
    tables = [worst] + [(Data(*tied_table(seed=k)), rng.normal(size=5) * 1e300, 7) for k in range(20)]
    for data, row, at in tables:
        weight = np.ones(data.rows)
        first, second = neighbours(relation, data.X, data.y, weight, np.asarray(row), at)
        if data is worst[0] and relation is Relation.REPLACE:
            second = Data(first.X, np.append(line[:-1], -9.0), weight)
        scores = [concordance_scores(problem, held, data.rows) for held in (first, second)]
        moves.append(float(np.abs(scores[0] - scores[1]).max()))
    assert max(moves) < claimed
    least = {Relation.REPLACE: 1.9, Relation.ZERO_OUT: 0.95, Relation.ADD_REMOVE: 0.45}[relation]
    assert moves[0] > (least if intercept else 0.4 * least)


@pytest.mark.slow
def test_the_choices_have_the_law_of_the_largest_of_one_noisy_draw():
    """Ordered by probability: the pair {0, 1} of three scores. False alarm: 1e-6; half the noise is refused."""
    scores, sensitivity = np.array([1.0, 0.5, 0.0]), mechanisms.Sensitivity(1.0, 1.0)

    def share(multiplier, runs=8_000):
        rng, mechanism = seeded_generator(3), mechanisms.TopSelections(multiplier, 2)
        return np.mean([mechanism.choose_all(rng, scores, sensitivity).tolist() == [0, 1] for _ in range(runs)])

    odds = np.exp(scores)
    first, second = odds[0] / odds.sum(), odds[1] / odds.sum()
    exact = first * odds[1] / (odds[1] + odds[2]) + second * odds[0] / (odds[0] + odds[2])
    deviation = math.sqrt(exact * (1 - exact) / 8_000)
    assert abs(share(1.0) - exact) < 4.9 * deviation
    assert abs(share(0.5) - exact) > 4.9 * deviation


@pytest.mark.parametrize("budget", [BUDGET, Budget.pure(1.0), Budget.zcdp(0.05)], ids=str)
def test_the_fit_keeps_what_the_choices_leave(budget):
    problem = Problem(Logistic())
    plan = Screened(columns=3).plan(problem, Public(5_000, 400), budget)
    fit = plan.solver.fit_plan(plan)
    assert fit.public.columns == 3
    together = accounting.compose([plan.mechanism.selections.event, fit.event])
    assert repr(together) == repr(plan.event)
    if budget.kind == "zcdp":
        assert accounting.rho_of(plan.mechanism.selections.event, Relation.REPLACE) == pytest.approx(0.025)
    if budget.kind == "pure":
        assert fit.budget.epsilon == pytest.approx(0.5)


@pytest.mark.parametrize("budget", [BUDGET, Budget(0.1, 1e-9), Budget.pure(1.0), Budget.zcdp(0.05)], ids=str)
@pytest.mark.parametrize("noise", [0.99, 1.0 - 1e-6])
def test_the_whole_run_is_certified_and_not_only_its_parts(budget, noise, monkeypatch):
    """A division of the budget that gives too much to the parts is mended, and wastes no more than any other plan."""
    from discreet.solvers import screened

    divide, relation = screened._shared_budget, Relation.ADD_REMOVE

    def too_little_noise(*facts):
        found = divide(*facts)
        return dataclasses.replace(found, multiplier=noise * found.multiplier)

    monkeypatch.setattr(screened, "_shared_budget", too_little_noise)
    plan = Screened(columns=4).plan(Problem(Logistic()), Public(5_000, 400, relation), budget)
    assert 0.999 * budget.amount <= accounting.amount_of(plan.event, budget, relation) <= budget.amount


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:the noise in a prediction:discreet.UtilityWarning")
@pytest.mark.filterwarnings("ignore:.* rows are too few:discreet.UtilityWarning")
def test_it_learns_where_columns_are_as_many_as_rows():
    """Ten of 1,000 columns matter. A constant leaves all of the variance; gradient steps leave about as much."""
    X, y, weights = sparse_regression(rows=3_000)
    left = {}
    for name in ("screened", "gd"):
        found = solve(Problem(Squared()), X, y, name, BUDGET, random_state=seeded_generator(4))
        left[name] = float(np.var(X @ found.w - y) / np.var(y))
        if name == "screened":
            chosen = np.flatnonzero(found.w)
            assert chosen.size == found.plan.settings.chosen_columns
            assert np.abs(weights[chosen]).max() == np.abs(weights).max()
    assert left["screened"] < 0.5 < left["gd"]


@pytest.mark.filterwarnings("ignore:.* rows are too few:discreet.UtilityWarning")
def test_untuned_greedy_descent_is_better_than_nothing_on_a_sparse_lasso():
    """0.79 against the 0.755 of w = 0 before its steps followed the noise."""
    X, y, _ = sparse_regression()
    problem = Problem(Squared(), L1(0.3), fit_intercept=False)
    nothing = problem.objective(X, y, np.zeros(1_000))
    runs = [solve(problem, X, y, "greedy-cd", BUDGET, random_state=seeded_generator(seed)) for seed in range(5)]
    found = [problem.objective(X, y, run.w) / nothing for run in runs]
    assert np.mean(found) < 0.95
    assert max(found) < 1.02


def test_when_it_is_worth_it():
    problem, many = Problem(Logistic()), Public(2_000, 1_000)
    assert worth_screening(problem, many, BUDGET)
    assert not worth_screening(problem, Public(2_000, 10), BUDGET)
    assert not worth_screening(problem, Public(2_000_000, 1_000), BUDGET)
    assert not worth_screening(problem, Public(50, 1_000), BUDGET)  # nothing can be found
    assert not worth_screening(problem, many, Budget.gdp(0.2))
    assert not worth_screening(problem, many, Budget(np.inf, 0.5))
    assert not worth_screening(problem, Public(2_000, 1_000, stored=True), BUDGET)


@pytest.mark.slow
def test_more_can_be_found_with_more_rows_or_fewer_columns_and_plans_say_when_nothing_can():
    problem = Problem(Squared())
    counts = [found_columns(problem, Public(n, p), BUDGET) for n, p in [(500, 1_000), (500, 100), (5_000, 100)]]
    assert counts == sorted(counts)
    assert found_columns(Problem(Logistic()), Public(500, 100), BUDGET) < counts[1]
    told = Screened().plan(problem, Public(50, 1_000), BUDGET).warnings()
    assert any("cannot be found among 1,000" in warning for warning in told)
    assert not Screened().plan(problem, Public(50_000, 1_000), BUDGET).warnings()


def test_bounds_of_the_chosen_columns_are_used():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.uniform(0, 1, 4_000), rng.uniform(0, 1_000, 4_000)])
    y = np.where(X[:, 1] > 500.0, 1.0, -1.0)
    bounds = (np.zeros(2), np.array([1.0, 1_000.0]))
    found = solve(Problem(Logistic()), X, y, Screened(columns=1), Budget(5.0, 1e-6), bounds=bounds)
    assert found.w[0] == 0.0
    assert found.w[1] > 0.0
    assert found.scaling.frozen.tolist() == [True, False]
    assert 0.0 < found.scaling.scale[1] <= 1_000.0


@pytest.mark.parametrize("best", [0, 3])
def test_the_plan_of_the_fit_holds_for_indicators_and_for_other_columns(best):
    """Of columns with the bounds [0, 1], and others, either may be chosen: the releases are those of the plan."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (3_000, 4)).astype(float)
    y = np.where(X[:, best] > 0.5, 1.0, -1.0)
    for high in ([1.0, 1.0, 1.0, 5.0], [5.0, 1.0, 1.0, 1.0]):
        public = Public.of(3_000, 4, bounds=(np.zeros(4), np.array(high)))
        plan = Screened(columns=1).plan(Problem(Logistic()), public, BUDGET)
        fits = [plan.solver.fit_plan(plan, np.array([column])) for column in range(4)]
        methods = {make_scaling(fit.public, plan.mechanism.rest).method for fit in fits}
        assert methods == {plan.scaling_plan.method} == {"narrowed"}
        found = plan.solver.solve(Problem(Logistic()), Data(X, y), plan, seeded_generator(0))
        assert np.flatnonzero(found.w).tolist() == [best]


def make_scaling(public, budget):
    return plan_scaling(public, budget, None, centred=True, target=False)


def test_public_tables_are_refused_and_auto_does_not_screen_with_public_inputs():
    problem, rng = Problem(Squared()), np.random.default_rng(0)
    table = PublicTable(rng.normal(size=(20, 1_000)))
    with pytest.raises(IncompatibleSolverError, match="takes no public table; use one of"):
        Screened().plan(problem, Public.of(500, 1_000, table=table), BUDGET)
    assert worth_screening(problem, Public.of(500, 1_000), BUDGET)
    for given in ({"table": table}, {"start": PublicModel(np.ones(1_000))}):
        assert not worth_screening(problem, Public.of(500, 1_000, **given), BUDGET)


def test_what_is_refused_and_what_stays_feasible():
    with pytest.raises(ValueError, match=r"then must be one of 'auto', 'cd'"):
        Screened(then="screened")
    with pytest.raises(IncompatibleSolverError, match="its fit by 'newton' is refused, as it has no form with pure"):
        Screened(then="newton").plan(Problem(Logistic()), Public(100, 3), Budget.pure(1.0))
    with pytest.raises(IncompatibleSolverError, match="selections have no cost in Gaussian DP"):
        Screened().plan(Problem(Logistic()), Public(100, 3), Budget.gdp(1.0))
    X, y = np.random.default_rng(0).normal(size=(500, 3)), np.tile([-1.0, 1.0], 250)
    box = Problem(Logistic(), constraint=Box(0.1, 0.2))
    found = solve(box, X, y, Screened(columns=1), Budget(5.0, 1e-4), bounds=(-1.0, 1.0))
    assert ((found.w >= 0.1) & (found.w <= 0.2)).all()
