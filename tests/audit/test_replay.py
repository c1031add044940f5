"""Replays in two arms: every solver and transformer passes on hostile neighbours, every planted fault is found.

A replay tests the law of the noise at level 1e-6; about 500 of them run here.
"""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from discreet import LogisticRegression, Ridge
from discreet.audit import replay
from discreet.audit.faults import weaker_plan
from discreet.audit.neighbours import hostile_neighbours, without_row
from discreet.audit.planted import FAULTS, FIRST, GD, PROBLEM, SECOND, plan_for
from discreet.audit.replays.tape import UnseenReleaseError
from discreet.audit.solver_cases import SOLVER_CASES, solver_case
from discreet.data.public import Public
from discreet.data.rows import Data
from discreet.model_selection import PrivateGridSearch
from discreet.preprocessing import PrivateBounds, PrivateQuantiles, PrivateScaler
from discreet.privacy.budget import Budget
from discreet.privacy.relation import Relation
from discreet.problem.losses import Logistic, Multinomial, Squared
from discreet.problem.penalties import L2
from discreet.problem.problem import Problem
from discreet.solvers import SOLVERS, GradientDescent
from discreet.testing.tables import example_problems, name_of, table
from tests.catalogue import problem_for

LABELS = np.array([-1.0, 1.0])
BUDGET = Budget(1.0, 1e-4)


SIZES = {"exponential": (200, 2), "newton": (400, 3)}  # others: (60, 3); with fewer rows newton plans a constant
BUDGETS = {"newton": Budget(5.0, 1e-4)}


def default_plan(name, relation, bounded):
    """The plan of a solver as it comes, for a small table with an intercept, and the table."""
    problem = problem_for(name)
    rows, columns = SIZES.get(name, (60, 3))
    limits = (-40.0, 40.0) if bounded else None
    target = None if problem.loss.classification else limits
    public = Public.of(rows, columns, relation=relation, bounds=limits, y_bounds=target, public_n=rows)
    X, y = table(problem.loss, rows, columns)
    return SOLVERS[name]().plan(problem, public, BUDGETS.get(name, BUDGET)), Data(X, y)


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize("name", SOLVERS)
def test_every_solver_passes_on_hostile_neighbours(name, relation):
    """Learned scales under one relation in turn with declared bounds; every kind of hostile row."""
    plan, data = default_plan(name, relation, bounded=list(SOLVERS).index(name) % 2 == 0)
    labels = LABELS if plan.problem.loss.classification else None
    ratios = []
    for pair in hostile_neighbours(data, relation, np.random.default_rng(len(name)), labels):
        found = replay(plan, pair.first, pair.second)
        assert found.passed, (pair.change, str(found))
        ratios.append(found.largest_ratio)
    assert 0.0 < max(ratios) <= 1.0 + 1e-9


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize("loss", [Logistic(), Multinomial(3), Squared()], ids=lambda loss: loss.name)
def test_constants_of_tables_too_small_for_more_pass(loss, relation):
    """All of the budget goes into counts of labels, or into the range and the mean of a target."""
    problem, public = Problem(loss, L2(1e-3)), Public.of(60, 3, relation=relation, public_n=60)
    plan = SOLVERS["newton"]().plan(problem, public, BUDGET)
    assert plan.settings.is_constant
    X, y = table(loss, 60, 3)
    labels = None if not loss.classification else LABELS if loss.outputs == 1 else np.arange(3.0)
    for pair in hostile_neighbours(Data(X, y), relation, np.random.default_rng(0), labels):
        found = replay(plan, pair.first, pair.second)
        assert found.passed, (pair.change, str(found))


FORMS = example_problems()


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("name", SOLVERS)
def test_every_form_of_problem_and_table_passes(name, sparse):
    """All losses, penalties and sets that a solver takes, with pure budgets where it has them; one huge row."""
    rows, columns = {"exponential": (100, 2), "newton": (400, 3)}.get(name, (40, 3))
    solver, limits = SOLVERS[name](), (-40.0, 40.0)
    budgets = [
        budget for budget in (BUDGETS.get(name, BUDGET), Budget.pure(1.0)) if not sparse or budget.kind != "pure"
    ]
    for problem, budget in itertools.product(FORMS, budgets):
        if solver.why_incompatible(problem, budget) is not None:
            continue
        target = None if problem.loss.classification else limits
        plan = solver.plan(problem, Public.of(rows, columns, bounds=limits, y_bounds=target, sparse=sparse), budget)
        X, y = table(problem.loss, rows, columns)
        changed = X.copy()
        changed[3] = 1e308
        form = (sp.csc_array if solver.capabilities.order == "F" else sp.csr_array) if sparse else np.asarray
        found = replay(plan, Data(form(X), y), Data(form(changed), y))
        assert found.passed, (name_of(problem), str(found))


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize("name", SOLVER_CASES)
def test_worst_cases_attain_the_promise_and_no_more(name, relation):
    """Not a statistical test: the distances of the statistics alone give epsilon."""
    if name in ("sgd-single", "dual-cd-shuffled", "admm-noisy-duals") and relation is Relation.ADD_REMOVE:
        pytest.skip("refused: the number of rows must be public")
    case = solver_case(name, relation, runs=1)
    found = replay(case, case.first, case.second)
    assert found.passed, str(found)
    if name == "objective-perturbation":  # determinants come on top of the noise
        assert found.attained is None
    elif name != "bolt-on" or relation is not Relation.ADD_REMOVE:  # where a displaced row would be the worst case
        assert 0.95 <= found.attained <= 1.0 + 1e-6


@pytest.mark.parametrize("name", SOLVER_CASES)
def test_half_of_the_planned_noise_attains_more_than_promised(name):
    case = solver_case(name, Relation.REPLACE, runs=1)
    if name == "objective-perturbation":
        pytest.skip("its cost has no event per release; the audit by lower bounds finds it")
    promised = case.plan.guarantee
    found = replay(replace(weaker_plan(case.plan, 0.5)), case.first, case.second)
    assert found.attained > 1.3 * promised.epsilon


def test_estimators_pass_and_losses_add_up():
    rng = np.random.default_rng(3)
    X, y = rng.uniform(-1.0, 1.0, (80, 3)), rng.integers(0, 2, 80)
    other = X.copy()
    other[5] = [1e308, -1e308, 0.0]
    for solver in ("auto", "cd", "greedy-cd"):
        model = LogisticRegression(solver=solver, bounds=(-1.0, 1.0), classes=[0, 1])
        found = replay(model, (X, y), (other, y))
        assert found.passed, str(found)
        assert found.loss == pytest.approx(sum(entry.loss for entry in found.releases))
        assert "passed" in str(found)
    ridge = Ridge(relation="zero_out", bounds=(-1.0, 1.0), y_bounds=(0.0, 1.0))
    assert replay(ridge, (X, y), without_row(Data(X, y.astype(float)), Relation.ZERO_OUT, 3)).passed


@pytest.mark.parametrize("make", [PrivateScaler, PrivateBounds, PrivateQuantiles])
def test_transformers_pass(make):
    rng = np.random.default_rng(4)
    X = rng.standard_normal((200, 2))
    for pair in hostile_neighbours(Data(X, np.zeros(200)), Relation.REPLACE, rng):
        found = replay(make(epsilon=2.0), pair.first, pair.second)
        assert found.passed, (pair.change, str(found))
        assert 0.0 <= found.attained <= found.promised == 2.0


def test_a_private_search_passes_wherever_the_row_is():
    """A row that candidates are trained on, and rows that they are scored on; both are in the fit of the winner."""
    rng = np.random.default_rng(5)
    X, y = rng.uniform(-1.0, 1.0, (60, 2)), rng.integers(0, 2, 60)
    model = LogisticRegression(bounds=(-1.0, 1.0), classes=[0, 1], solver="gd")
    search = PrivateGridSearch(model, {"alpha": [1e-4, 1e-2, 1.0]}, epsilon=2.0)
    for row in (0, 20, 40, 59):
        other = X.copy()
        other[row] = 1e308
        found = replay(search, (X, y), (other, y))
        assert found.passed, str(found)
        assert "QuantileSelection.choose" in [entry.what for entry in found.releases]
        assert found.attained <= found.promised == 2.0


# --- planted faults ------------------------------------------------------------------------------------------


STATISTICAL = {"selection noise as the thesis prints it", "low bits of floating-point noise"}  # in files of their own


@pytest.mark.parametrize("fault", [fault for fault in FAULTS if fault not in STATISTICAL])
def test_the_right_implementation_passes_and_the_fault_is_found(fault):
    result = FAULTS[fault]()
    assert result.right
    assert result.wrong, result.shown


def test_noise_that_no_mechanism_draws_is_an_error():
    class OwnNoise(GradientDescent):
        def _descend(self, scaled, plan, run):
            return run.rng.normal(scaled.shape), 1

    with pytest.raises(UnseenReleaseError, match=r"generator\.normal, 2 of 2 numbers"):
        replay(plan_for(OwnNoise(**vars(GD))), FIRST, SECOND)


def test_what_is_intercepted_is_put_back():
    before = dict(vars(type(plan_for().mechanism))), SOLVERS["cd"]
    replay(plan_for(), FIRST, SECOND)
    assert dict(vars(type(plan_for().mechanism))) == before[0]


def test_what_cannot_be_audited_is_refused():
    with pytest.raises(TypeError, match="cannot be audited"):
        replay(object(), FIRST, SECOND)
    plan = GD.plan(PROBLEM, Public.of(12, 2, relation="add_remove", bounds=(-1.0, 1.0), public_n=12), BUDGET)
    with pytest.raises(ValueError, match="without one of its rows"):
        replay(plan, FIRST, SECOND)
