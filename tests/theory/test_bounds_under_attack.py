"""Cases in which a bound was once below the truth, or left out of its assumptions what it needs.

Runs are seeded; what is compared differs by many standard errors.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from discreet.data.public import Public
from discreet.data.rows import Data
from discreet.privacy.budget import Budget
from discreet.privacy.random.generator import seeded_generator
from discreet.privacy.relation import Relation
from discreet.problem.constraints import L1Ball
from discreet.problem.losses import Logistic, Squared
from discreet.problem.penalties import L2, Zero
from discreet.problem.problem import Problem
from discreet.solvers import (
    FTRL,
    CoordinateDescent,
    FrankWolfe,
    GradientDescent,
    GreedyCoordinateDescent,
    StochasticGradientDescent,
)
from discreet.theory import greedy_cd_bound, output_perturbation_bound
from discreet.theory.distance import NoiseNorm
from discreet.theory.selections import SelectionError
from tests.bound_tools import gumbel_choice, mean_over, mean_under, seldom_over


def greedy(**settings):
    """Greedy coordinate descent as the theorem has it: declared step lengths, and no move is left out."""
    return GreedyCoordinateDescent(learn_smoothness=False, least_entry=0.0, **settings)


RIDGE = Problem(Logistic(), L2(2.0), fit_intercept=False)


def huber_excesses(rng, columns, deviation, scale, steps, runs):
    """The excess of a sum of Huber losses, which bend within 1 of their minimum, after greedy coordinate descent."""
    w, every = np.zeros((runs, columns)), np.arange(runs)
    w[:, 0] = 1.0
    for _ in range(steps):
        slope = np.clip(w, -1.0, 1.0)
        j = gumbel_choice(rng, np.abs(slope), scale)
        w[every, j] -= slope[every, j] + deviation * rng.normal(size=runs)
    size = np.abs(w)
    return np.where(size <= 1.0, 0.5 * w**2, size - 0.5).sum(axis=1)


def test_the_radius_must_hold_up_to_the_gap_and_not_only_up_to_the_start():
    """A gap that is larger than the excess of the start: steps go to where the start's radius says nothing.

    Where the excess is at most x >= 1/2 the norm |w|_1 is at most x + p/2, and where it is at most 1/2, sqrt(p).
    """
    columns, deviation, steps, gap = 400, 20.0, 400, 16_000.0
    excesses = huber_excesses(np.random.default_rng(0), columns, deviation, 3.0, steps, runs=20)
    known = {"selection_scale": 3.0, "deviation": deviation, "gap": gap, "failure": 0.1}
    too_short = greedy_cd_bound(steps, columns, radius=math.sqrt(columns), **known)
    assert (excesses > too_short.value).all()  # so this radius must not be what the bound asks for
    long_enough = greedy_cd_bound(steps, columns, radius=gap + 0.5 * columns, **known)
    assert seldom_over(excesses, long_enough)
    assert any(f"excess is at most {gap:g}" in words for words in long_enough.assumptions)


def test_without_failure_the_radius_is_a_root_mean_square_which_normal_noise_can_satisfy():
    """No number bounds all iterates; their root mean square distance is enough, and is tested here."""
    rng, columns, deviation, steps = np.random.default_rng(1), 5, 0.5, 30
    excesses = huber_excesses(rng, columns, deviation, 0.5, steps, runs=2_000)
    # from x >= |w|_1 - p/2 on, an excess bounds the norm; here its mean square is simulated step by step
    longest = 0.0
    for t in range(steps):
        runs = huber_excesses(np.random.default_rng(1), columns, deviation, 0.5, t, runs=2_000)
        longest = max(longest, float(((runs + 0.5 * columns) ** 2).mean()))
    known = {"selection_scale": 0.5, "deviation": deviation, "gap": 0.5}
    bound = greedy_cd_bound(steps, columns, radius=math.sqrt(longest), **known)
    assert mean_under(excesses, bound)
    assert any("root mean square" in words for words in bound.assumptions)


@pytest.mark.parametrize("columns", [10**9, 10**12, 10**15, 10**18])
def test_the_mean_norm_of_normal_noise_in_many_dimensions(columns):
    """It lies between sqrt(p - 1/2) and sqrt(p); a difference of logarithms of Gamma functions loses all digits."""
    mean = NoiseNorm("gaussian", 1.0, columns).mean
    assert math.sqrt(columns - 0.5) <= mean <= math.sqrt(columns) * (1.0 + 1e-12)


def test_numbers_beyond_the_largest_one_give_an_infinite_bound():
    assert SelectionError(1e200, 3).mean_square == math.inf
    assert SelectionError(1.0, 10**400).mean_square == pytest.approx(math.log(10.0) ** 2 * 400**2, rel=1e-4)
    assert NoiseNorm("gaussian", 1e200, 3).mean_square == math.inf
    assert output_perturbation_bound(3, noise=1e200, smoothness=1.0).value == math.inf


def planned(solver, problem, rows=100, epsilon=1.0, relation=Relation.REPLACE, target=None):
    bounds = {} if target is None else {"target_low": -target, "target_high": target}
    return solver.plan(problem, Public(rows, 1, relation, -np.ones(1), np.ones(1), **bounds), Budget(epsilon, 1e-6))


def test_every_selection_rule_has_its_own_noise_in_the_units_of_the_theorem():
    """With a ridge the scores are |G| / sqrt(M), |G| / sqrt(M + ridge) and |G| sqrt(M) / (M + ridge)."""
    values = {}
    for rule in ("gs-s", "gs-q", "gs-r"):
        solver = greedy(clip=2.0, steps=4, scale_share=0.0, rule=rule)
        public = Public(100, 50, low=-np.ones(50), high=np.ones(50))
        values[rule] = solver.plan(RIDGE, public, Budget(1.0, 1e-6)).error_bound(1.0).value
    assert values["gs-s"] < values["gs-q"] < values["gs-r"]
    with_intercept = replace(RIDGE, fit_intercept=True)
    mixed = greedy(clip=2.0, scale_share=0.0, rule="gs-r")
    assert planned(mixed, with_intercept).error_bound(1.0) is None  # it ranks the intercept in another way
    uneven = greedy(clip=2.0, smoothness=(0.25, 0.5), rule="gs-q")
    assert planned(uneven, with_intercept).error_bound(1.0) is not None


def test_default_thresholds_of_regressions_assume_a_scale_of_the_target():
    """Targets of 100 and -100 have a threshold, and so noise, that is 50 times the one for scale 1."""
    rows, problem = 5_000, Problem(Squared(), L2(1.0), fit_intercept=False)
    solver = greedy(steps=3, scale_share=0.0)
    plan = planned(solver, problem, rows, 50.0, Relation.ZERO_OUT, target=100.0)
    X, y = np.ones((rows, 1)), np.where(np.arange(rows) % 2, 100.0, -100.0)
    best = problem.optimum(X, y).value
    found = [solver.solve(problem, Data(X.copy(), y.copy()), plan, seeded_generator(seed)) for seed in range(60)]
    bound = plan.error_bound(1e-3)
    assert mean_over([problem.objective(X, y, s.coef, s.intercept) - best for s in found], bound)
    ball = Problem(Squared(), Zero(), L1Ball(1.0), fit_intercept=False)
    for method, task in [(solver, problem), (FTRL(scale_share=0.0), problem), (FrankWolfe(scale_share=0.0), ball)]:
        bound = planned(method, task, target=100.0).error_bound(1.0)
        assert any("target has scale 1" in words for words in bound.assumptions)
        own = replace(method, clip=10.0)  # a threshold that was asked for does not depend on it
        bound = planned(own, task, target=100.0).error_bound(1.0)
        assert not any("target" in words for words in bound.assumptions)


def test_declared_smoothness_is_an_assumption():
    """Constants that are too small make steps that diverge."""
    declared = greedy(clip=2.0, smoothness=(1e-4,), steps=3)
    bound = planned(declared, RIDGE).error_bound(1.0)
    assert any("declared smoothness" in words for words in bound.assumptions)
    assert not any("mean square" in words for words in bound.assumptions)


@pytest.mark.parametrize("solver", [GradientDescent(), StochasticGradientDescent(), CoordinateDescent()])
def test_gradient_methods_assume_a_scale_of_a_target_that_is_yet_to_be_learned(solver):
    """Their default thresholds grow with it, and with them the noise."""
    problem = Problem(Squared(), L2(1.0), fit_intercept=False)

    def assumes_a_scale(method, **bounds):
        plan = method.plan(problem, Public(1_000, 2, **bounds), Budget(1.0, 1e-6))
        return any("target has scale 1" in words for words in plan.error_bound(1.0).assumptions)

    declared = {"low": -np.ones(2), "high": np.ones(2), "target_low": -9.0, "target_high": 9.0}
    assert assumes_a_scale(solver)
    assert not assumes_a_scale(replace(solver, scale_share=0.0), **declared)
    assert not assumes_a_scale(replace(solver, clip=10.0))
