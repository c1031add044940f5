"""Penalties that users write: what a wrong proximal map can and cannot do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from discreet import Budget, Problem, solve
from discreet.audit import replay
from discreet.data.public import Public
from discreet.data.rows import Data
from discreet.privacy.random.generator import seeded_generator
from discreet.problem import CoupledPenalty, Logistic
from discreet.solvers import SOLVERS

BUDGET = Budget(1.0, 1e-6)
rng = np.random.default_rng(0)
X = rng.uniform(-1.0, 1.0, (60, 3))
Y = np.where(X[:, 0] > 0.0, 1.0, -1.0)


@dataclass(frozen=True)
class Own(CoupledPenalty):
    map: Any
    name = "own"

    def value(self, w):
        return 0.0

    def prox(self, v, step):
        return self.map(np.asarray(v))


WRONG = {
    "one number": (lambda v: 1.0, r"3 numbers for 3 coefficients, got .*\(\)"),
    "too few": (lambda v: v[:1], r"3 numbers for 3 coefficients, got .*\(1,\)"),
    "a matrix": (lambda v: v[None], r"3 numbers for 3 coefficients, got .*\(1, 3\)"),
    "nothing": (lambda v: None, "must return real numbers"),
    "complex": (lambda v: v + 1j, "must return real numbers"),
    "text": (lambda v: ["a"] * v.size, "must return real numbers"),
    "not a number": (lambda v: v * np.nan, "not finite"),
}


@pytest.mark.parametrize("solver", ["admm", "gd", "sgd", "svrg"])
@pytest.mark.parametrize("wrong", WRONG)
def test_a_proximal_map_that_returns_something_else_is_named(wrong, solver):
    map_, message = WRONG[wrong]
    with pytest.raises(ValueError, match=f"prox of the own penalty .*{message}"):
        solve(Problem(Logistic(), Own(map_)), X, Y, solver=solver, budget=BUDGET, bounds=(-1.0, 1.0))


def test_a_list_will_do():
    problem = Problem(Logistic(), Own(lambda v: v.tolist()))
    assert solve(problem, X, Y, solver="admm", budget=BUDGET, bounds=(-1.0, 1.0)).coef.shape == (3,)


@pytest.mark.parametrize("solver", ["admm", "gd", "sgd", "svrg"])
@pytest.mark.parametrize("map_", [lambda v: 3.0 * v, lambda v: -v + 1.0, np.sign], ids=["expands", "reflects", "jumps"])
def test_privacy_does_not_depend_on_what_the_map_does(map_, solver):
    """Expanding, reflecting, jumping maps: the releases move no further than claimed; the replay's level is 1e-6."""
    plan = SOLVERS[solver]().plan(Problem(Logistic(), Own(map_)), Public.of(60, 3, bounds=(-1.0, 1.0)), BUDGET)
    other = X.copy()
    other[5] = -1e300 * np.sign(other[5])
    found = replay(plan, Data(X, Y), Data(other, Y), seeded_generator(1))
    assert found.passed, str(found)
