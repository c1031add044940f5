"""Settings and plans for which a proof would not hold are refused by name."""

from __future__ import annotations

import ast
import json
from dataclasses import FrozenInstanceError, dataclass, fields, replace
from pathlib import Path
from typing import get_type_hints

import numpy as np
import pytest
import scipy.sparse as sp

import discreet.solvers
from discreet import IncompatibleSolverError
from discreet.data.public import Public
from discreet.data.rows import Data
from discreet.privacy.budget import Budget
from discreet.privacy.random.generator import secure_generator
from discreet.problem.losses import Logistic, Squared
from discreet.problem.penalties import L1, L2
from discreet.problem.problem import Problem
from discreet.solvers import SOLVERS, BoltOn, CoordinateDescent, ExponentialMechanism, Newton, ObjectivePerturbation
from discreet.solvers.ftrl.solver import Leader
from discreet.solvers.ftrl.stream import Stream
from discreet.solvers.plan import Settings
from tests.catalogue import BUDGET, SIZES, problem_for

CLIPPED = [name for name, kind in SOLVERS.items() if "clip" in {field.name for field in fields(kind)}]


@pytest.mark.parametrize("clip", [1e308, 1e101, 1e-101, 5e-324])
@pytest.mark.parametrize("solver", CLIPPED)
def test_absurd_thresholds_are_refused(solver, clip):
    with pytest.raises(ValueError, match="clip must lie between 1e-100 and 1e"):
        SOLVERS[solver](clip=clip)


@pytest.mark.parametrize("solver", CLIPPED)
def test_sane_thresholds_are_taken(solver):
    assert SOLVERS[solver](clip=1e-9).clip == 1e-9


@pytest.mark.parametrize(
    ("kind", "name"),
    [(Newton, "radius"), (ObjectivePerturbation, "ridge"), (BoltOn, "row_norm"), (ExponentialMechanism, "reach")],
)
@pytest.mark.parametrize("value", [1e200, 3e-162])
def test_absurd_sizes_are_refused(kind, name, value):
    with pytest.raises(ValueError, match=f"{name} must lie between"):
        kind(**{name: value})


X, Y = np.zeros((6, 2)), np.array([1.0, -1.0] * 3)


@pytest.mark.parametrize(
    ("data", "problem", "message"),
    [
        (Data(sp.csr_array(X), Y), Problem(Logistic()), "dense and sparse"),
        (Data(X[:5], Y[:5]), Problem(Logistic()), "made for 6 rows"),
        (Data(np.zeros((6, 3)), Y), Problem(Logistic()), "made for 2 columns"),
        (Data(X, Y), Problem(Logistic(), L1(0.1)), "another solver or for another problem"),
        (Data(X, 1e6 * Y), Problem(Logistic()), "labels -1 and"),
    ],
)
def test_a_plan_serves_only_tables_with_its_public_facts(data, problem, message):
    solver = CoordinateDescent()
    public = Public(6, 2, low=np.full(2, 5.0), high=np.full(2, 6.0))
    plan = solver.plan(Problem(Logistic()), public, Budget(1.0, 1e-3))
    with pytest.raises(ValueError, match=message):
        solver.solve(problem, data, plan, secure_generator())


def plan_of(name, budget=BUDGET):
    rows, columns = SIZES.get(name, (400, 3))
    return SOLVERS[name]().plan(problem_for(name), Public(rows, columns), budget)


@pytest.mark.parametrize("budget", [BUDGET, Budget(float("inf"), 1e-6)], ids=str)
@pytest.mark.parametrize("name", SOLVERS)
def test_settings_are_frozen_typed_and_fit_into_json(name, budget):
    settings = plan_of(name, budget).settings
    assert isinstance(settings, Settings)
    with pytest.raises(FrozenInstanceError):
        setattr(settings, fields(settings)[0].name, 1)
    hints = get_type_hints(type(settings))
    for name_of_field, hint in hints.items():
        allowed = (float, int) if hint is float else hint
        assert isinstance(getattr(settings, name_of_field), allowed), name_of_field
    written = json.dumps(settings.to_dict(), allow_nan=False)
    assert plan_of(name, budget).to_dict()["settings"] == json.loads(written)


def test_what_is_not_set_is_left_out_and_infinity_has_a_name():
    @dataclass(frozen=True)
    class Small(Settings):
        clip: float
        screening: int | None = None

    assert Small(float("inf")).to_dict() == {"clip": "inf"}
    assert Small(1.0, 3).to_dict() == {"clip": 1.0, "screening": 3}


def test_the_plan_says_which_solvers_read_the_rows_block_by_block():
    assert "block by block" in str(plan_of("newton"))
    assert "all at once" in str(plan_of("cd"))
    assert "all at once" in str(plan_of("sgd"))  # of a table in memory it holds a scaled copy
    assert plan_of("gd").to_dict()["needs_all_rows"] is False
    assert plan_of("cd").to_dict()["needs_all_rows"] is True


def asserts_in(source):
    return [node.lineno for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Assert)]


def test_solvers_check_without_assert():
    """python -O removes asserts; what guards noise or a plan must stay."""
    folder = Path(discreet.solvers.__file__).parent
    found = {path.name: asserts_in(path.read_text()) for path in folder.rglob("*.py")}
    assert {name: lines for name, lines in found.items() if lines} == {}
    assert asserts_in("def f(x):\n    assert x") == [2]  # the test can fail


def test_a_stream_takes_plans_of_ftrl_with_declared_bounds_only():
    public = Public(40, 2, low=np.zeros(2), high=np.ones(2))
    problem = Problem(Logistic())
    other = SOLVERS["gd"](scale_share=0.0).plan(problem, public, BUDGET)
    with pytest.raises(TypeError, match="planned by FTRL, not by 'gd'"):
        Stream(other, capped=True)
    learned = SOLVERS["ftrl"](aggregation="tree", epochs=1, shuffle=False).plan(problem, Public(4_000, 2), BUDGET)
    with pytest.raises(ValueError, match="declared bounds"):
        Stream(learned, capped=True)


def test_a_leader_without_noise_releases_nothing():
    leader = Leader(np.zeros(2), 1.0)
    with pytest.raises(RuntimeError, match="begin a tree first"):
        leader.follow(np.ones(2), 1.0, None, None, lambda w, _: w)
    np.testing.assert_array_equal(leader.w, 0.0)


def test_a_changed_plan_changes_what_is_run():
    """Settings steer the run: two planned steps are two steps."""
    solver, problem = SOLVERS["gd"](steps=5), Problem(Logistic())
    plan = solver.plan(problem, Public(6, 2, low=np.full(2, -1.0), high=np.full(2, 1.0)), Budget(1.0, 1e-3))
    plan = replace(plan, settings=replace(plan.settings, steps=2))
    assert solver.solve(problem, Data(X, Y), plan, secure_generator()).iterations == 2


def test_compiled_loops_refuse_losses_they_do_not_know():
    class Foreign(Squared):
        code = None

    problem, budget = Problem(Foreign(), L2(0.1)), Budget(1.0, 1e-6)
    refusing = {
        name for name, kind in SOLVERS.items() if "compiled loop" in str(kind().why_incompatible(problem, budget))
    }
    compiled = {name for name, kind in SOLVERS.items() if kind().capabilities.compiled}
    assert compiled >= refusing >= {"cd", "sgd", "svrg", "sketched"}
    with pytest.raises(IncompatibleSolverError, match="does not know the slope of the squared loss"):
        SOLVERS["cd"]().plan(problem, Public(100, 3), budget)
    SOLVERS["gd"]().plan(problem, Public(100, 3), budget)
