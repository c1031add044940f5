"""The noise that reaches the output is the noise that was planned: accepted as it is, rejected at 2/3 of it.

On a table of zeros every release is pure noise, so its law is known exactly. Kolmogorov-Smirnov tests at
level 1e-4 with fixed seeds: were the seeds redrawn, one run of this file in 1,000 would raise a false alarm.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from discreet.data.public import Public
from discreet.data.rows import Data
from discreet.privacy import mechanisms
from discreet.privacy.budget import Budget
from discreet.privacy.random.generator import seeded_generator
from discreet.privacy.relation import Relation
from discreet.problem.losses import Logistic, Multinomial, Squared
from discreet.problem.problem import Problem
from discreet.scaling import histograms, learn
from discreet.scaling.learn import learn_scaling
from discreet.scaling.plan import plan_scaling
from discreet.solvers import CoordinateDescent, GradientDescent, StochasticGradientDescent
from tests.statistics import both_arms

ROWS, COLUMNS = 50, 4_000
ONES = {"low": -np.ones(COLUMNS), "high": np.ones(COLUMNS)}
ZEROS = Data(np.zeros((ROWS, COLUMNS)), np.ones(ROWS))


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize("budget", [Budget(1.0, 1e-5), Budget.pure(1.0)], ids=str)
def test_coordinate_descent_adds_the_planned_noise(budget, relation):
    problem = Problem(Logistic(), fit_intercept=False)
    solver = CoordinateDescent(passes=1, clip=3.0, average=False, outer=1, scale_share=0.0)
    plan = solver.plan(problem, Public(ROWS, COLUMNS, relation, **ONES), budget)
    w = solver.solve(problem, ZEROS, plan, seeded_generator(1)).w
    step, clip = 1.0 / 0.25, 3.0 / np.sqrt(COLUMNS)
    scale = step / ROWS * clip * relation.factor * plan.mechanism.multiplier
    law = stats.laplace(scale=scale) if budget.kind == "pure" else stats.norm(scale=scale)
    both_arms(w, law)


@pytest.mark.parametrize("relation", list(Relation))
def test_gradient_descent_adds_the_planned_noise_to_every_output(relation):
    problem = Problem(Multinomial(3), fit_intercept=False)
    solver = GradientDescent(steps=1, clip=3.0, step=1.0, scale_share=0.0)
    plan = solver.plan(problem, Public(ROWS, COLUMNS, relation, **ONES), Budget(1.0, 1e-5))
    w = solver.solve(problem, ZEROS, plan, seeded_generator(2)).w
    step = 1.0 / (0.5 * COLUMNS)
    both_arms(w, stats.norm(scale=step / ROWS * 3.0 * relation.factor * plan.mechanism.multiplier))


def test_laplace_noise_on_a_vector_pays_for_its_dimension():
    problem = Problem(Logistic(), fit_intercept=False)
    solver = GradientDescent(steps=1, clip=3.0, step=1.0, scale_share=0.0)
    plan = solver.plan(problem, Public(ROWS, COLUMNS, **ONES), Budget.pure(2.0))
    w = solver.solve(problem, ZEROS, plan, seeded_generator(3)).w
    assert plan.mechanism.multiplier == pytest.approx(0.5, rel=1e-6)
    scale = 1.0 / (0.25 * COLUMNS) / ROWS * 3.0 * 2.0 * np.sqrt(COLUMNS) * plan.mechanism.multiplier
    both_arms(w, stats.laplace(scale=scale))


@pytest.mark.parametrize("sampler", ["poisson", "single"])
def test_stochastic_descent_adds_the_planned_noise(sampler):
    problem = Problem(Squared(), fit_intercept=False)
    batch = 5 if sampler == "poisson" else 1
    solver = StochasticGradientDescent(
        sampler=sampler, batch_size=batch, passes=batch / ROWS, clip=3.0, step=1.0, average=False, scale_share=0.0
    )
    public = Public(ROWS, COLUMNS, target_low=-1.0, target_high=1.0, **ONES)
    plan = solver.plan(problem, public, Budget(1.0, 1e-5))
    assert plan.settings.steps == 1
    w = solver.solve(problem, ZEROS, plan, seeded_generator(4)).w
    shift = 3.0 if sampler == "poisson" else 6.0  # what the multiplier divides by, see mechanisms/sampled.py
    both_arms(w, stats.norm(scale=1.0 / COLUMNS / batch * shift * plan.mechanism.multiplier))


@pytest.mark.parametrize("relation", list(Relation))
def test_learned_centres_carry_the_planned_noise(relation):
    public = Public(10_000_000, COLUMNS, relation, low=np.full(COLUMNS, -2.0), high=np.full(COLUMNS, 2.0))
    scaling_plan = plan_scaling(public, Budget(1.0, 1e-9), None, centred=True, target=False)
    scaling_plan = replace(scaling_plan, method="moments", histogram=None, location=None, closer=None)
    scaling = learn_scaling(scaling_plan, ZEROS, public, seeded_generator(5))
    sensitivity = mechanisms.bounded_moments(relation, COLUMNS)
    both_arms(scaling.shift, stats.norm(scale=2.0 * sensitivity.l2 * scaling_plan.moments.multiplier / public.rows))


@pytest.mark.parametrize("relation", list(Relation))
def test_exponent_histograms_carry_the_planned_noise(relation, monkeypatch):
    seen = []
    monkeypatch.setattr(histograms, "radius_of", lambda counts, *_: seen.append(counts.copy()) or 1.0)
    public = Public(10_000_000, COLUMNS, relation)
    scaling_plan = plan_scaling(public, Budget(1.0, 1e-9), None, centred=True, target=False)
    assert scaling_plan.method == "columns"
    learn_scaling(scaling_plan, ZEROS, public, seeded_generator(6))
    noise = np.array(seen[:COLUMNS])[:, :-1]  # of the first look; the last bin counts the zeros
    sensitivity = mechanisms.one_hot_counts(relation, COLUMNS)
    both_arms(noise, stats.norm(scale=sensitivity.l2 * scaling_plan.histogram.multiplier))


@pytest.mark.parametrize("relation", list(Relation))
def test_locations_carry_the_planned_noise(relation):
    """Half of the columns get a closer look, and the noise is for as many."""
    public = Public(10_000_000, COLUMNS, relation)
    found = learn.Ranges.declared(np.full(COLUMNS, -3.0), np.full(COLUMNS, 3.0))
    mechanism = mechanisms.Gaussian(5.0)
    far = list(range(0, COLUMNS, 2))
    means = learn.Counter(ZEROS, public, seeded_generator(7)).means(found, far, mechanism)
    sensitivity = mechanisms.bounded_values(relation, len(far))
    both_arms(means[far], stats.norm(scale=3.0 * sensitivity.l2 * 5.0 / public.rows))
    assert (means[1::2] == 0.0).all()
