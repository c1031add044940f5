"""The attack on low bits succeeds against floating-point noise and fails against the noise of the library.

With 40 trials a coin is right 34 times or more with probability below 5e-6; about ten times they are tossed here.
"""

from __future__ import annotations

import numpy as np
import pytest

from discreet.audit.faults import NaiveGrid, naive_noise
from discreet.audit.low_bits import any_double, box_muller, candidates, find_low_bits, impossible
from discreet.audit.targets import Target
from discreet.data.public import Public
from discreet.data.rows import Data
from discreet.preprocessing.means import learn_means, plan_means
from discreet.privacy.budget import Budget
from discreet.privacy.random.generator import seeded_generator
from discreet.privacy.relation import Relation
from discreet.problem.losses import Logistic
from discreet.problem.penalties import L2
from discreet.problem.problem import Problem
from discreet.solvers import CoordinateDescent, Newton, OutputPerturbation

BUDGET = Budget(0.1, 1e-6)
ROWS, TRIALS = 200, 40
# 64 equal columns: each threshold is an eighth of 2, so that the noise is scaled by a power of two.
SOLVERS = {
    "output-perturbation": (OutputPerturbation(scale_share=0.0), 20),
    "newton": (Newton(scale_share=0.0, steps=1), 56),
    "cd": (CoordinateDescent(scale_share=0.0, clip=2.0, passes=1), 64),
}


def tables(columns):
    """Two tables that differ in one row, with opposite signs; at epsilon 0.1 the noise hides that."""
    rng = np.random.default_rng(0)
    X, y = rng.uniform(-1.0, 1.0, (ROWS, columns)), rng.choice([-1.0, 1.0], ROWS)
    changed = X.copy()
    changed[0] *= -1.0
    return Data(X, y), Data(changed, y)


def target(name):
    if name.startswith("means"):
        columns = int(name.split()[1])
        public = Public.of(ROWS, columns, bounds=(-1.0, 1.0))
        plan = plan_means(public, BUDGET)
        run = lambda data, rng: {"means": learn_means(plan, data, rng)}  # noqa: E731
        return Target(run, Relation.REPLACE, name, lambda data: None), columns
    solver, columns = SOLVERS[name]
    problem = Problem(Logistic(), L2(0.05), fit_intercept=False)
    return solver.plan(problem, Public.of(ROWS, columns, bounds=(-1.0, 1.0)), BUDGET), columns


NAMES = [*SOLVERS, "means 30", "means 100"]


@pytest.mark.parametrize("name", NAMES)
def test_floating_point_noise_is_told_apart(name):
    audited, columns = target(name)
    sampler = any_double if name in ("newton", "cd") else box_muller
    with naive_noise():
        found = find_low_bits(audited, *tables(columns), TRIALS, sampler, seeded_generator(1))
    assert found.found
    assert found.success >= 0.9


@pytest.mark.parametrize("name", NAMES)
def test_the_noise_of_the_library_is_not_told_apart(name):
    audited, columns = target(name)
    found = find_low_bits(audited, *tables(columns), TRIALS, any_double, seeded_generator(2))
    assert not found.found
    assert found.success < 0.85


def test_the_true_value_is_always_possible_and_another_one_hardly_ever():
    """20 numbers, of which 10 pairs are looked at: no false alarm, and 100 of 100 wrong values are seen."""
    rng, numbers = seeded_generator(3), np.random.default_rng(0)
    for scale in (1.0, 1.3, 1.7, 20.3):
        seen = 0
        for _ in range(100):
            value = numbers.standard_normal(20)
            told = NaiveGrid(2.0**-30, scale, "normal").release(rng, value)
            assert impossible(value, told, scale) == 0
            assert impossible(value, told, scale, any_double) == 0
            seen += impossible(value + 1e-3 * numbers.standard_normal(20), told, scale) > 0
        assert seen == 100


def test_sums_that_round_too_coarsely_tell_nothing():
    assert candidates(1e6, 1e6 + 0.125, 1e-3) is None  # noise of 0.125 is finer than sums of a million
    assert candidates(0.25, 0.75, 1.0).size > 0
    assert impossible(np.zeros(0), np.zeros(0), 1.0) == 0
