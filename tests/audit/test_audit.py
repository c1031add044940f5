"""Empirical audits in two arms: accept every solver as it is, reject a copy with half the noise.

The tables are the worst case: one column, one row whose gradient flips from +C to -C, steps so short that
every step's gradient stays there, so the runs attain the accountant's bound. With confidence 1 - 1e-6 per
audit, the chance that this file rejects a correct library is below 2e-5.
"""

from __future__ import annotations

import importlib
from dataclasses import replace

import numpy as np
import pytest

from discreet.audit.lower_bound import epsilon_lower_bound
from discreet.data.rows import Data
from discreet.privacy.budget import Budget
from discreet.privacy.random.generator import seeded_generator
from discreet.privacy.relation import Relation
from discreet.problem.losses import Logistic
from discreet.problem.problem import Problem
from discreet.solvers import (
    SOLVERS,
    SVRG,
    CoordinateDescent,
    FrankWolfe,
    GradientDescent,
    GreedyCoordinateDescent,
    Newton,
    SketchedDescent,
    StochasticGradientDescent,
)
from discreet.testing import AuditCase
from tests.audit_tools import DELTA, EPSILON

RUNS = 4_000
PROBLEM = Problem(Logistic(), fit_intercept=False)
CASES = {
    "cd": CoordinateDescent(passes=4, clip=0.25, step=1e-6, average=False, outer=1, scale_share=0.0),
    "greedy-cd": GreedyCoordinateDescent(steps=4, clip=0.25, step=1e-6, scale_share=0.0),
    "sketched": SketchedDescent("full", steps=4, clip=0.25, step=1e-6, average=False, outer=1, scale_share=0.0),
    "gd": GradientDescent(steps=4, clip=0.25, step=1e-6, average=False, scale_share=0.0),
    "sgd": StochasticGradientDescent(batch_size=4, passes=2, clip=0.25, step=1e-6, average=False, scale_share=0.0),
    "sgd-single": StochasticGradientDescent(
        sampler="single", passes=1, clip=0.25, step=1e-6, average=False, scale_share=0.0
    ),
    "svrg": SVRG(anchors=4, inner=1, anchor_share=0.95, clip=0.25, step=1e-6, average=False, scale_share=0.0),
    "newton": Newton(steps=1, clip=1e-3, radius=1.0, moment_share=0.02, scale_share=0.0),
    "frank-wolfe": FrankWolfe(steps=4, clip=0.25, vertices=((1e-6,), (-1e-6,)), scale_share=0.0),
}
# The worst pair of neighbours, where it is not one row of 1 among rows of 0.
TABLES = {
    "sgd": {"rows": 8},
    "sgd-single": {"rows": 4, "rest": (-1.0,)},  # a row that is not drawn is replaced: these pull the other way
    "greedy-cd": {"row": (1.0, -1.0), "rest": (1.0, 1.0)},  # two coordinates: the choice reveals something as well
    "sketched": {"row": (1.0, -1.0), "rest": (0.0, 0.0)},  # a set of two, both of which move as far as they can
}


def lower_bound(name, relation, noise):
    case = AuditCase.flipped_row(CASES[name], PROBLEM, relation, runs=RUNS, **TABLES.get(name, {}))
    return replace(case, weaker_plan=weaker_plan).lower_bound(noise)


def weaker_plan(plan, noise):
    return replace(plan, mechanism=replace(plan.mechanism, multiplier=noise * plan.mechanism.multiplier))


@pytest.mark.parametrize("relation", [Relation.REPLACE, Relation.ZERO_OUT])
@pytest.mark.parametrize("name", CASES)
def test_the_audit_accepts_every_solver(name, relation):
    assert lower_bound(name, relation, noise=1.0) <= EPSILON


@pytest.mark.parametrize("name", CASES)
def test_the_audit_rejects_half_the_noise(name):
    assert lower_bound(name, Relation.REPLACE, noise=0.5) > EPSILON


# Solvers whose worst case needs tables of another kind, and the module with both arms of their audit.
AUDITED_IN: dict[str, str] = {
    "sufficient-statistics": "tests.solvers.test_sufficient_statistics",
    "ftrl": "tests.solvers.test_ftrl",
    "dual-cd": "tests.solvers.test_dual_cd",
    "exponential": "tests.solvers.test_exponential",
    "output-perturbation": "tests.solvers.test_output_perturbation",
    "objective-perturbation": "tests.solvers.test_objective_perturbation",
    "mirror-descent": "tests.solvers.test_mirror_descent",
    "bolt-on": "tests.solvers.test_bolt_on",
}


def test_every_solver_is_audited():
    assert {solver.name for solver in CASES.values()} | set(AUDITED_IN) == set(SOLVERS)
    for module in AUDITED_IN.values():
        tests = dir(importlib.import_module(module))
        assert "test_the_audit_accepts" in tests
        assert "test_the_audit_rejects_half_the_noise" in tests


def test_private_scales_survive_an_audit_and_half_their_noise_does_not():
    """The radius is the loudest thing scales release: one row of another size shifts its histogram."""
    from discreet.privacy import mechanisms
    from discreet.scaling import histograms

    def statistic(value, noise, stream):
        data = Data(np.array([[value]]), np.zeros(1))
        counts = histograms.exponent_counts(data, [range(1)], np.zeros(1))
        mechanism = mechanisms.additive(Budget(EPSILON, DELTA), 1.0)
        mechanism = replace(mechanism, multiplier=noise * mechanism.multiplier)
        sensitivity = mechanisms.one_hot_counts(Relation.REPLACE, 1)
        draws = [mechanism.release(stream, counts, sensitivity) for _ in range(10_000)]
        ones, tens = 0 - histograms.LOWEST_EXPONENT, 10 - histograms.LOWEST_EXPONENT
        return np.array([draw[0, ones] - draw[0, tens] for draw in draws])

    stream = seeded_generator(5)
    for noise, broken in ((1.0, False), (0.5, True)):
        bound = epsilon_lower_bound(statistic(1.0, noise, stream), statistic(1024.0, noise, stream), DELTA)
        assert (bound > EPSILON) == broken


def test_the_bound_itself_is_sound_and_sharp():
    """Two Gaussians of known divergence: never above the truth, and within 30 % of it."""
    from discreet.privacy.accounting import gaussian_epsilon

    rng = np.random.default_rng(0)
    for mu in (1.0, 1.5, 2.0):
        truth = gaussian_epsilon(DELTA, mu)
        bound = epsilon_lower_bound(rng.standard_normal(50_000) + mu, rng.standard_normal(50_000), DELTA)
        assert 0.7 * truth <= bound <= truth
