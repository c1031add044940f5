"""Public facts come from one place: a plan without rows and a fit on rows know the same."""

import ast
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import discreet
from discreet import LogisticRegression, PrivacyLeakWarning, Ridge
from discreet.data.public import Public, public_facts
from discreet.data.validation import array_rows
from discreet.preprocessing import PrivateScaler
from discreet.preprocessing.base import facts_of
from discreet.privacy.relation import Relation
from discreet.problem.losses import Squared
from discreet.problem.problem import Problem

PACKAGE = Path(discreet.__file__).parent


def calls_of(name, tree):
    """Where a syntax tree calls something by this name."""
    return [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and name in (getattr(node.func, "id", None), getattr(node.func, "attr", None))
    ]


def test_no_module_builds_public_facts_by_hand():
    for path in PACKAGE.rglob("*.py"):
        assert not calls_of("Public", ast.parse(path.read_text())), path
    assert calls_of("Public", ast.parse("x = Public(1, 2)"))  # the test can fail


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, size=(400, 3))
    return X, X[:, 0] + 0.1 * rng.normal(size=400)


@pytest.mark.parametrize("relation", ["replace", "zero_out", "add_remove"])
def test_plan_and_fit_of_all_ways_in_see_the_same_facts(table, relation):
    X, y = table
    declared = {"bounds": (-1, [1, 2, 3]), "relation": relation, "public_n": 350 if relation == "add_remove" else None}
    expected = Public.of(400, 3, y_bounds=(-2, 2), **declared).to_dict()
    model = Ridge(y_bounds=(-2, 2), solver="gd", **declared)
    assert model.plan(400, 3).public.to_dict() == expected
    assert model.fit(X, y).plan_.public.to_dict() == expected
    solved = discreet.solve(Problem(Squared()), X, y, "gd", 1.0, y_bounds=(-2, 2), **declared)
    assert solved.plan.public.to_dict() == expected
    bounds = declared.pop("bounds")
    without_target = Public.of(400, 3, bounds=bounds, **declared)
    seen, budget = facts_of(array_rows(X, y), bounds, epsilon=1.0, delta=None, **declared)
    assert seen.to_dict() == without_target.to_dict()
    planned = PrivateScaler(bounds=bounds, **declared).plan(400, 3)
    assert planned == PrivateScaler(bounds=bounds, **declared)._plan(without_target, budget)


def test_only_a_fit_may_read_bounds_and_it_says_so(table):
    X, y = table
    model = Ridge(bounds="data", y_bounds="data", solver="gd")
    with pytest.raises(ValueError, match="bounds must be a pair"):
        model.plan(400, 3)
    with pytest.warns(PrivacyLeakWarning) as told:
        model.fit(X, y)
    leaks = [w for w in told if w.category is PrivacyLeakWarning]
    assert {str(w.message).split("=")[0] for w in leaks} == {"bounds", "y_bounds"}
    assert {w.filename for w in told} == {__file__}  # the warning points at the caller
    public = model.plan_.public
    assert public.leaks == ("the bounds of the columns", "the bounds of the target")
    np.testing.assert_array_equal(public.low, X.min(axis=0))
    assert public.target_high == y.max()


def test_bounds_read_from_the_rows_are_always_usable():
    X = np.array([[0.0, 1e-200, -1e300, 2e-90], [0.0, -3e-150, 1e300, 2e-90 + 1e-101]])
    with pytest.warns(PrivacyLeakWarning):
        public = public_facts(array_rows(X, np.zeros(2)), bounds="data")
    np.testing.assert_array_equal(public.low, [0.0, 0.0, -1e100, 2e-90])
    assert (public.high >= public.low).all()


def test_declarations_that_contradict_are_refused():
    with pytest.raises(ValueError, match="must contain 0"):
        Public.of(10, 2, bounds=(1, 2), sparse=True)
    with pytest.raises(ValueError, match="must contain 0"):
        LogisticRegression(bounds=(1, 2)).plan(100, 2, sparse=True)
    with pytest.raises(ValueError, match="differs from the 10 rows"):
        Public.of(10, 2, public_n=9)
    with pytest.raises(ValueError, match="public_n="):
        Public.of(10, 2, relation=Relation.ADD_REMOVE)
    assert public_facts(array_rows(sp.csr_array(np.eye(3)), np.ones(3))).sparse
