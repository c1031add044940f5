"""Settings and plans for which a proof would not hold are refused by name."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest
import scipy.sparse as sp

from discreet.data.public import Public
from discreet.data.rows import Data
from discreet.privacy.budget import Budget
from discreet.privacy.random.generator import secure_generator
from discreet.problem.losses import Logistic
from discreet.problem.penalties import L1
from discreet.problem.problem import Problem
from discreet.solvers import SOLVERS, BoltOn, CoordinateDescent, ExponentialMechanism, Newton, ObjectivePerturbation

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
