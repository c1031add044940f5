"""Laws of the distance between a private run and its noise-free limit: checked on real runs, in two arms.

One arm: the distance exceeds the radius no more often than promised. The other: where a law is exact, a planted law
with less noise is found out. Seeds are fixed; with fresh seeds each statistical test would fail with probability below
1e-3.
"""

from __future__ import annotations

import math
import re
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom

from discreet.data.public import Public
from discreet.privacy.budget import Budget
from discreet.problem import L1, L2, ElasticNet, Huber, Logistic, Multinomial, SmoothedHinge, Squared
from discreet.problem.constraints import L2Ball
from discreet.problem.problem import Problem
from discreet.scaling.learn import declared_scaling
from discreet.solvers import SOLVERS
from discreet.solvers._shared.minimisers import clip_rows, minimum_within
from discreet.solvers.base import scaling_of
from discreet.theory.distance import (
    AveragedContractionDistance,
    ContractionDistance,
    GaussianDistance,
    MomentDistance,
    SphericalDistance,
)
from tests.distance_runs import BUDGET, distances, planned, small_table, twin

FAILURE, RUNS = 0.2, 120
TOO_MANY = int(binom.isf(1e-3, RUNS, FAILURE))  # failures that a true law exceeds with probability below 1e-3
TOO_FEW = int(binom.ppf(1e-3, RUNS, FAILURE))
RIDGE = Problem(Logistic(), L2(0.2), fit_intercept=False)
DECLARED = {"scale_share": 0.0}


def make(name, **settings):
    return SOLVERS[name](**(DECLARED | settings))


def failures(found, law):
    return int((found > law.radius(FAILURE)).sum())


def is_refuted(found, law):
    return failures(found, law) > TOO_MANY


def square_is_refuted(found, expected):
    """Whether the mean square lies above the bound by more than 3.1 standard errors (one in a thousand)."""
    squares = np.square(found)
    return squares.mean() - 3.1 * squares.std() / np.sqrt(squares.size) > expected


# --- output perturbation: the law is exact ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("problem", "budget"),
    [
        (Problem(Logistic(), L2(0.2)), BUDGET),
        (Problem(Logistic(), L2(0.2)), Budget(3.0, 0.0)),
        (Problem(Multinomial(3), L2(0.2)), BUDGET),
    ],
    ids=["Gaussian", "pure", "three classes"],
)
def test_the_distance_of_output_perturbation_has_exactly_the_law(problem, budget):
    X, y = small_table(problem)
    solver = make("output-perturbation")
    plan = planned(solver, problem, X, budget)
    scaled, _ = twin(Problem(problem.loss, L2(1.0)), X, y, _scaling(solver, plan, X, y))
    scaled = replace(scaled, problem=problem, penalty_terms=_own_terms(problem, scaled))
    scaled = clip_rows(scaled, plan.settings.row_norm, plan.settings.ridge)
    best = minimum_within(scaled, plan.settings.row_norm, 1e-9)
    found, law = distances(solver, problem, X, y, RUNS, plan, best)
    assert isinstance(law, GaussianDistance if budget is BUDGET else SphericalDistance)
    assert TOO_FEW <= failures(found, law) <= TOO_MANY
    planted = replace(law, deviation=0.7 * law.deviation) if budget is BUDGET else replace(law, scale=0.7 * law.scale)
    assert is_refuted(found, planted)


def test_a_constraint_keeps_the_norm_but_not_the_law_of_single_entries():
    """A projection shortens distances: the radius stays, and the law no longer says that the noise is Gaussian."""
    problem = Problem(Logistic(), L2(0.2), constraint=L2Ball(0.3))
    X, y = small_table(problem)
    solver = make("output-perturbation")
    plan = planned(solver, problem, X)
    law = plan.distance_law(_scaling(solver, plan, X, y))
    free = replace(plan, problem=replace(problem, constraint=None)).distance_law(_scaling(solver, plan, X, y))
    assert not isinstance(law, GaussianDistance)
    assert law.radius(0.1) == pytest.approx(free.radius(0.1), rel=1e-6)


# --- gradient descent -------------------------------------------------------------------------------------------------

PROBLEMS = [
    RIDGE,
    Problem(Logistic(), ElasticNet(0.3, 0.3), fit_intercept=False),
    Problem(SmoothedHinge(0.5), L2(0.3), constraint=L2Ball(0.4), fit_intercept=False),
    Problem(Huber(0.7), L2(0.2), fit_intercept=False),
    Problem(Squared(), L2(0.5), fit_intercept=False),
]


@pytest.mark.parametrize("average", [False, True], ids=["last", "average"])
@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: f"{problem.loss.name}-{problem.penalty.name}")
def test_gradient_descent_stays_inside_its_radius(problem, average):
    X, y = small_table(problem)
    solver = make("gd", average=average, steps=40)
    plan = planned(solver, problem, X)
    found, law = _runs_of(solver, problem, X, y, plan, clip=_clip_of_gd(solver, plan, X, y))
    assert isinstance(law, AveragedContractionDistance if average else ContractionDistance)
    assert failures(found, law) <= TOO_MANY


def test_several_classes_are_covered_where_nothing_is_clipped():
    problem = Problem(Multinomial(3), L2(0.3), fit_intercept=False)
    X, y = small_table(problem)
    solver = make("gd", average=False, steps=40, clip=2.5)
    found, law = _runs_of(solver, problem, X, y, planned(solver, problem, X))
    assert failures(found, law) <= TOO_MANY
    assert law.size == 9
    tight = make("gd", steps=40, clip=1.0)
    with pytest.raises(ValueError, match=r"clip=2\.4494.* or more"):
        planned(tight, problem, X).distance_law(_scaling(tight, planned(tight, problem, X), X, y))


def test_the_law_of_the_last_iterate_is_exact_on_rows_of_zeros():
    """Then the steps are linear, and all of the distance is noise: less of it in the law is found out."""
    X, y = np.zeros((300, 3)), np.ones(300)
    solver = make("gd", average=False, steps=40)
    plan = planned(solver, RIDGE, X)
    found, law = distances(solver, RIDGE, X, y, RUNS, plan, np.zeros(3))
    assert law.contraction**law.steps * law.start < 0.02 * law.radius(FAILURE)
    assert TOO_FEW <= failures(found, law) <= TOO_MANY
    assert is_refuted(found, replace(law, deviation=0.7 * law.deviation))
    assert is_refuted(found, replace(law, contraction=0.5 * law.contraction))


def test_the_expected_shortfall_is_never_below_the_quantile():
    law = ContractionDistance(np.ones(4), 1, "a vector", contraction=0.9, deviation=0.3, steps=30, start=2.0)
    for averaged in (1, 5, 30):
        averages = AveragedContractionDistance(**vars(law), averaged=averaged)
        for failure in (1e-6, 0.01, 0.3):
            last = [replace(law, steps=t).radius(failure) for t in range(31 - averaged, 31)]
            assert averages.radius(failure) >= np.mean(last)
    assert AveragedContractionDistance(**vars(law), averaged=1).radius(0.01) < 1.15 * law.radius(0.01)
    far = replace(law, start=1e9, steps=1)  # a centre too far away for the noncentral law
    assert AveragedContractionDistance(**vars(far), averaged=1).radius(0.01) == pytest.approx(0.9e9, rel=1e-6)


# --- laws of the expected square --------------------------------------------------------------------------------------

MOMENTS = [
    ("gd", {"steps": 10}, Budget(3.0, 0.0)),
    ("sgd", {"passes": 10.0, "batch_size": 60}, BUDGET),
    ("sgd", {"passes": 10.0, "batch_size": 60, "average": False, "step": 1.0}, BUDGET),
    ("sgd", {"passes": 1.0, "sampler": "single", "step": 0.5}, BUDGET),
    ("cd", {"sampling": "uniform", "clip": 2.0}, BUDGET),
    ("cd", {"sampling": "uniform", "clip": 2.0, "average": False, "step": 0.5}, BUDGET),
    ("cd", {"sampling": "proportional", "clip": 2.0, "outer": 1}, Budget(3.0, 0.0)),
]


@pytest.mark.parametrize(("name", "settings", "budget"), MOMENTS, ids=lambda part: str(part).replace(" ", ""))
def test_the_expected_square_is_bounded(name, settings, budget):
    """On a table with a signal, and on rows of zeros, where the distance is all noise."""
    solver = make(name, **settings)
    X, y = small_table(RIDGE)
    plan = planned(solver, RIDGE, X, budget)
    clip = {"gd": _clip_of_gd, "sgd": _clip_of_sgd}.get(name, lambda *_: np.inf)(solver, plan, X, y)
    found, law = _runs_of(solver, RIDGE, X, y, plan, clip)
    assert isinstance(law, MomentDistance)
    assert not square_is_refuted(found, law.expected_square)
    empty, law = distances(solver, RIDGE, np.zeros((300, 3)), np.ones(300), 40, plan, np.zeros(3))
    assert not square_is_refuted(empty, law.expected_square)


def test_too_little_noise_in_the_expected_square_is_found_out():
    """Last iterates on rows of zeros: the bound is the noise of the steps, plus the batches' variance where there are
    batches; noise of a third of the deviation, 9 times less in the square, is too little."""
    X, y = np.zeros((300, 3)), np.ones(300)
    for name, settings in (("gd", {}), ("sgd", {"batch_size": 290}), ("cd", {"sampling": "uniform", "clip": 2.0})):
        solver = make(name, average=False, **settings)
        budget = Budget(3.0, 0.0) if name == "gd" else BUDGET
        plan = planned(solver, RIDGE, X, budget)
        found, law = distances(solver, RIDGE, X, y, 60, plan, np.zeros(3))
        assert not square_is_refuted(found, law.expected_square)
        assert square_is_refuted(found, law.expected_square / 9.0)


# --- what is not covered ----------------------------------------------------------------------------------------------

REFUSED = [
    ("gd", {}, Problem(Logistic(), L2(0.2)), "fit_intercept=False"),
    ("gd", {}, Problem(Logistic(), L1(0.2), fit_intercept=False), "l2 penalty"),
    ("sgd", {"step": 2.5}, RIDGE, r"step divided by 1\.25"),
    ("cd", {}, RIDGE, 'sampling="uniform"'),
    ("cd", {"sampling": "uniform", "clip": 0.5}, RIDGE, r"clip=1\.7320.* or more"),
    ("cd", {"sampling": "uniform", "step": 1.5, "clip": 2.0}, RIDGE, "step=1 is"),
    ("cd", {"sampling": "uniform", "screening": 3, "clip": 2.0}, RIDGE, "screening=None"),
    ("cd", {"sampling": "uniform", "clip": 9.0}, Problem(Squared(), L2(0.2), fit_intercept=False), "bounded slopes"),
    ("gd", {"scale_share": 0.1}, RIDGE, "scale_share=0"),
    ("cd", {"sampling": "uniform", "clip": 9.0, "scale_share": 0.1}, RIDGE, "scale_share=0"),
]


@pytest.mark.parametrize(("name", "settings", "problem", "words"), REFUSED)
def test_what_no_theorem_covers_is_refused_with_a_setting_that_one_covers(name, settings, problem, words):
    X, y = small_table(problem)
    solver = make(name, **settings)
    plan = planned(solver, problem, X)
    with pytest.raises(ValueError, match=words):
        plan.distance_law(_scaling(solver, plan, X, y))


def test_the_setting_that_a_refusal_names_is_covered():
    X, y = small_table(RIDGE)
    for name, settings in (("cd", {"sampling": "uniform", "clip": 0.5}), ("gd", {"step": 2.5})):
        solver = make(name, **settings)
        with pytest.raises(ValueError, match="is covered") as refusal:
            planned(solver, RIDGE, X).distance_law(_scaling(solver, planned(solver, RIDGE, X), X, y))
        number = float(re.search(r"(?:clip=|divided by )([0-9.]+)", str(refusal.value)).group(1))
        better = make(name, **(settings | ({"clip": number} if name == "cd" else {"step": 2.5 / number})))
        law = planned(better, RIDGE, X).distance_law(_scaling(better, planned(better, RIDGE, X), X, y))
        assert law.radius(0.1) > 0.0


def test_a_penalty_that_hardly_contracts_has_a_law_all_the_same():
    """In columns as wide as these, 1 / (1 + step length * penalty) is 1 in double precision."""
    solver = make("gd")
    plan = solver.plan(RIDGE, Public.of(100, 2, bounds=(-1e90, 1e90)), BUDGET)
    law = plan.distance_law(declared_scaling(plan.scaling_plan, plan.public))
    assert law.radius(0.1) < math.inf


def test_a_private_number_of_rows_and_no_noise_are_refused():
    from discreet.data.public import Public

    X, y = small_table(RIDGE)
    solver = make("gd")
    public = Public.of(*X.shape, bounds=(-1.0, 1.0), relation="add_remove", public_n=300)
    scaling = _scaling(solver, planned(solver, RIDGE, X), X, y)
    with pytest.raises(ValueError, match='relation="replace"'):
        solver.plan(RIDGE, public, BUDGET).distance_law(scaling)
    for name in ("gd", "output-perturbation"):
        with pytest.raises(ValueError, match="epsilon is infinite"):
            planned(make(name), RIDGE, X, Budget(np.inf, 0.5)).distance_law(scaling)


# --- tools of this file -----------------------------------------------------------------------------------------------


def _scaling(solver, plan, X, y):
    from discreet.data.validation import array_rows
    from discreet.privacy.random.generator import seeded_generator

    scaling = scaling_of(plan, array_rows(X, y), seeded_generator(0))
    return scaling if plan.problem.separable else scaling.uniform()


def _own_terms(problem, scaled):
    from discreet.problem.scaled_problem import scaled_penalty_terms

    return scaled_penalty_terms(problem, scaled.scaling)


def _runs_of(solver, problem, X, y, plan, clip=np.inf):
    _, best = twin(problem, X, y, _scaling(solver, plan, X, y), clip)
    return distances(solver, problem, X, y, RUNS, plan, best)


def _clip_of_gd(solver, plan, X, y):
    from discreet.data.validation import array_rows
    from discreet.problem.scaled_problem import scale_problem
    from discreet.solvers._shared.full_batch import NoisyGradient

    scaling = _scaling(solver, plan, X, y)
    return NoisyGradient(scale_problem(plan.problem, array_rows(X, y), scaling, y.size, "C"), plan, solver.clip).clip


def _clip_of_sgd(solver, plan, X, y):
    from discreet.data.validation import array_rows
    from discreet.problem.scaled_problem import scale_problem
    from discreet.solvers.stochastic_gradient import threshold_and_grid

    scaling = _scaling(solver, plan, X, y)
    return threshold_and_grid(solver, scale_problem(plan.problem, array_rows(X, y), scaling, y.size, "C"), plan)[0]
