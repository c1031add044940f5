"""Output perturbation: how far a row moves the minimiser, a distance that is certified, and the noise that covers both.

Kolmogorov-Smirnov tests at level 1e-4 and audits with confidence 1 - 1e-6, all with fixed seeds: were the seeds
redrawn, one run of this file in 1,000 would raise a false alarm.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from discreet import IncompatibleSolverError, NotPrivateWarning, UtilityWarning, solve
from discreet.data.public import Public
from discreet.data.rows import Data
from discreet.data.validation import array_rows
from discreet.privacy.budget import Budget
from discreet.privacy.mechanisms import perturbations
from discreet.privacy.random.generator import seeded_generator
from discreet.privacy.relation import Relation
from discreet.problem.constraints import Box, L1Ball, L2Ball
from discreet.problem.losses import Huber, Logistic, Multinomial, OneVsRest, SmoothedHinge, Squared
from discreet.problem.optimum import exactly_scaled
from discreet.problem.penalties import L1, L2, ElasticNet, Zero
from discreet.problem.problem import Problem
from discreet.solvers import OutputPerturbation
from discreet.solvers._shared import minimisers as certified
from tests.audit_tools import one_row_bound
from tests.catalogue import table
from tests.neighbours import CASE, N, scaled_neighbours

BUDGET = Budget(1.0, 1e-6)
FORMS = [
    Problem(Logistic(), L2(0.05)),
    Problem(Huber(0.7), ElasticNet(0.05, 0.5)),
    Problem(SmoothedHinge(0.5), L2(0.05), L2Ball(0.3)),
    Problem(Logistic(), L2(0.05), L1Ball(0.3)),
    Problem(Logistic(), ElasticNet(0.05, 0.5), Box(-0.1, 0.2)),
    Problem(Multinomial(3), L2(0.05)),
]


def name_of(problem):
    return f"{problem.loss.name}-{problem.penalty.name}-{problem.constraint.name if problem.constraint else 'free'}"


@pytest.mark.parametrize("problem", FORMS, ids=name_of)
def test_without_noise_it_reaches_the_optimum_over_the_set(problem):
    X, y = table(problem.loss)
    best = problem.optimum(X, y)
    with pytest.warns(NotPrivateWarning):
        found = solve(problem, X, y, "output-perturbation", Budget(math.inf, 0.5))
    assert problem.objective(X, y, found.w, found.intercept) - best.value <= 1e-6 * best.value


@settings(max_examples=60)
@given(**CASE, loss=st.sampled_from([Logistic(), Huber(0.7), SmoothedHinge(0.5), Multinomial(3)]))
def test_one_hostile_row_moves_the_minimiser_by_at_most_its_sensitivity(relation, X, weight, row, at, seed, loss):
    radius, ridge, distance = 1.5, 0.2, 1e-6
    found = []
    for scaled in scaled_neighbours(relation, loss, X, weight, row, at, seed, "C"):
        short = certified.clip_rows(scaled, radius, ridge)
        found.append(certified.minimum_within(short, radius, distance) * np.sqrt(short.penalty_terms.l2))
    gradient = perturbations.gradient_sum(relation, loss, radius)
    claimed = perturbations.minimiser(gradient, ridge, N, distance)
    assert np.linalg.norm(found[0] - found[1]) <= claimed.l2


def test_the_sensitivity_is_attained_and_cannot_be_lowered():
    """Targets far away on both sides keep the slope of the Huber loss at its bound."""
    problem = Problem(Huber(0.7), L2(0.5), fit_intercept=False)
    found = []
    for target in (100.0, -100.0):
        scaled = exactly_scaled(problem, Data(np.ones((1, 1)), np.zeros(1)))
        scaled = certified.clip_rows(replace(scaled, y=np.array([target])), 1.0, 0.5)
        found.append(certified.minimum_within(scaled, 1.0, 1e-9)[0] * math.sqrt(0.5))
    claimed = perturbations.minimiser(perturbations.gradient_sum(Relation.REPLACE, problem.loss, 1.0), 0.5, 1, 0.0)
    assert found[0] - found[1] == pytest.approx(claimed.l2, rel=1e-6)


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize("loss", [Logistic(), OneVsRest(Logistic(), 3)], ids=lambda loss: loss.name)
def test_the_sensitivity_knows_relation_and_loss(relation, loss):
    found = perturbations.minimiser(perturbations.gradient_sum(relation, loss, 2.0), 0.25, 100, 1e-3)
    assert found.l2 == pytest.approx(relation.factor * loss.lipschitz * 2.0 / (100 * 0.5) + 2e-3)


@pytest.mark.parametrize("quick", [True, False], ids=["newton", "accelerated"])
@pytest.mark.parametrize("problem", FORMS, ids=name_of)
def test_the_certified_distance_holds(problem, quick, monkeypatch):
    """Against a minimum certified a thousand times closer; the sure steps alone must manage as well."""
    if not quick:
        monkeypatch.setattr(certified, "_quick_guess", lambda scaled, decrement: scaled.start())
    scaled = certified.clip_rows(exactly_scaled(problem, array_rows(*table(problem.loss))), 2.0, 0.05)
    root = np.sqrt(scaled.penalty_terms.l2)
    best = certified.minimum_within(scaled, 2.0, 1e-9)
    for distance in (1e-2, 1e-4, 1e-6):
        near = certified.minimum_within(scaled, 2.0, distance)
        assert np.linalg.norm(root * (near - best)) <= distance + 1e-9


def test_a_point_that_is_not_near_has_no_certificate():
    """The other arm: the bound is an upper bound far from the minimum too."""
    scaled = certified.clip_rows(exactly_scaled(FORMS[0], array_rows(*table(Logistic()))), 2.0, 0.05)
    best = certified.minimum_within(scaled, 2.0, 1e-9)
    rng = np.random.default_rng(0)
    for size in (1e-3, 0.1, 10.0):
        point, bound = certified.certified_step(scaled, best + size * rng.standard_normal(best.size), 1.0)
        assert np.linalg.norm(np.sqrt(scaled.penalty_terms.l2) * (point - best)) <= bound
        assert bound > 1e-5


def test_the_sure_steps_stop_with_an_error_rather_than_release_something_else(monkeypatch):
    scaled = certified.clip_rows(exactly_scaled(FORMS[0], array_rows(*table(Logistic()))), 2.0, 0.05)
    monkeypatch.setattr(certified, "certified_step", lambda scaled, w, smoothness: (w, math.inf))
    with pytest.raises(RuntimeError, match="nothing is released"):
        certified.minimum_within(scaled, 2.0, 1e-3)


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
def test_rows_are_shortened_and_the_intercept_is_not(sparse):
    X = np.array([[3.0, 4.0, 0.0], [0.1, 0.0, 0.2], [0.0, 0.0, 0.0], [0.0, -9.0, 0.0]])
    scaled = exactly_scaled(Problem(Logistic(), L2(0.1)), array_rows(sp.csr_array(X) if sparse else X, np.ones(4)))
    scaled = replace(scaled, X=sp.csr_array(np.c_[X, np.ones(4)]) if sparse else np.c_[X, np.ones(4)])
    short = certified.clip_rows(scaled, math.sqrt(2.0), 0.3)
    wanted = np.c_[X / np.maximum(1.0, np.linalg.norm(X, axis=1))[:, None], np.ones(4)]
    np.testing.assert_allclose(short.X.toarray() if sparse else short.X, wanted, rtol=1e-12)
    assert short.penalty_terms.l2[-1] == 0.3
    assert (short.penalty_terms.l2 >= 0.3).all()


ROWS, COLUMNS = 50, 4_000
ZEROS = Data(np.zeros((ROWS, COLUMNS)), np.ones(ROWS))


def looks_like(draws, law):
    return stats.kstest(np.ravel(draws), law.cdf).pvalue > 1e-4


@pytest.mark.parametrize("relation", list(Relation))
def test_it_adds_the_planned_noise(relation):
    """Rows of zeros have the minimiser zero, so that the result is the noise; 2/3 of it would be rejected."""
    problem = Problem(Logistic(), L2(0.3), fit_intercept=False)
    solver = OutputPerturbation(row_norm=0.5, scale_share=0.0)
    public = Public(ROWS, COLUMNS, relation, low=-np.ones(COLUMNS), high=np.ones(COLUMNS))
    plan = solver.plan(problem, public, Budget(50.0, 1e-5))
    w = solver.solve(problem, ZEROS, plan, seeded_generator(1)).w
    ridge = max(plan.settings.ridge, 0.3)
    sensitivity = relation.factor * 0.5 * math.sqrt(COLUMNS) / (ROWS * ridge) * 1.001
    law = stats.norm(scale=plan.mechanism.multiplier * sensitivity)
    assert looks_like(w, law)
    assert not looks_like(2 / 3 * w, law)


def test_pure_noise_has_a_gamma_radius_and_any_direction():
    stream, scale = seeded_generator(2), 0.7
    mechanism = perturbations.SphericalLaplace(scale / 2.0)
    grid = mechanism.grid(perturbations.within(1.0), 3)
    draws = np.array([grid.noise(stream, 3) for _ in range(5_000)])
    radius = np.linalg.norm(draws, axis=1)
    assert looks_like(radius, stats.gamma(3, scale=scale))
    assert not looks_like(radius, stats.gamma(2, scale=scale))
    for direction in (draws / radius[:, None]).T:  # in three dimensions a coordinate of the sphere is uniform
        assert looks_like(direction, stats.uniform(-1.0, 2.0))


def lower_bound(relation, noise, budget):
    """The pair of tables that attains the sensitivity: targets beyond reach on either side, or none."""
    problem = Problem(Huber(1.0), L2(0.01), fit_intercept=False)
    solver = OutputPerturbation(row_norm=1.0, ridge=0.5, scale_share=0.0)
    limits = {"target_low": -1e4, "target_high": 1e4}
    return one_row_bound(solver, problem, (1e4, -1e4), relation, noise, budget, **limits)


@pytest.mark.parametrize("relation", [Relation.REPLACE, Relation.ZERO_OUT])
@pytest.mark.parametrize("budget", [Budget(1.0, 0.1), Budget.pure(1.0)], ids=str)
@pytest.mark.slow
def test_the_audit_accepts(relation, budget):
    assert lower_bound(relation, 1.0, budget) <= 1.0


@pytest.mark.parametrize("budget", [Budget(1.0, 0.1), Budget.pure(1.0)], ids=str)
@pytest.mark.slow
def test_the_audit_rejects_half_the_noise(budget):
    assert lower_bound(Relation.REPLACE, 0.5, budget) > 1.0


@pytest.mark.parametrize(
    ("problem", "message"),
    [
        (Problem(Squared(), L2(0.1)), "squared loss has no bound.*Huber"),
        (Problem(Logistic(), Zero()), "needs an l2 penalty"),
        (Problem(Logistic(), L1(0.1)), "needs an l2 penalty"),
        (Problem(Logistic(), ElasticNet(0.1, 0.5), L2Ball(1.0)), "l1 penalty together with a constraint"),
    ],
    ids=["squared", "zero", "l1", "l1-and-ball"],
)
def test_what_it_cannot_do_is_refused_with_a_reason(problem, message):
    with pytest.raises(IncompatibleSolverError, match=message):
        OutputPerturbation().plan(problem, Public(100, 3), BUDGET)


def test_what_is_told_does_not_depend_on_the_rows():
    """Iterations and progress are the planned ones, whatever the minimiser needed."""
    problem, rng = Problem(Logistic(), L2(0.1)), np.random.default_rng(0)
    told = []
    for X in (rng.standard_normal((80, 3)), np.zeros((80, 3)), np.full((80, 3), 1e300)):
        y = 2.0 * rng.integers(0, 2, 80) - 1.0
        options = {"bounds": (-1.0, 1.0), "callback": lambda *step: told.append(step)}
        with pytest.warns(UtilityWarning, match="a constant may predict better"):  # whatever the rows are
            found = solve(problem, X, y, "output-perturbation", BUDGET, **options)
        assert found.iterations == found.plan.settings.steps
    assert told == [(found.iterations, found.iterations)] * 3


@pytest.mark.parametrize("setting", ["row_norm", "ridge"])
def test_wrong_settings_are_refused_by_name(setting):
    with pytest.raises(ValueError, match=f"{setting} must be a positive"):
        OutputPerturbation(**{setting: 0.0})
