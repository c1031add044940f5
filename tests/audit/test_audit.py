"""Empirical audits in two arms: accept every solver as it is, reject a copy with half the noise.

The worst case of every solver is in discreet/audit/solver_cases.py. With confidence 1 - 1e-6 per audit, the chance that
this file rejects a correct library is below 3e-5. `make audit` runs every solver under every relation.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from discreet.audit import epsilon_lower_bound, mu_lower_bound
from discreet.audit.planted import FAULTS
from discreet.audit.solver_cases import SOLVER_CASES, solver_case
from discreet.audit.suite import audit_solver
from discreet.data.rows import Data
from discreet.privacy.budget import Budget
from discreet.privacy.random.generator import seeded_generator
from discreet.privacy.relation import Relation
from discreet.solvers import SOLVERS
from tests.audit_tools import DELTA, EPSILON

# One of each kind: Gaussian steps, selections with them, sampled batches, both, several releases, selections, Laplace.
# The tests of ftrl and of the perturbations have audits of their own, and a replay looks at all solvers under all
# relations, without chance: test_replay.py.
CASES = ["cd", "greedy-cd", "sgd", "svrg", "newton", "newton-classes", "frank-wolfe", "gd-pure", "screened"]
ALTERNATING = [(name, list(Relation)[i % 3]) for i, name in enumerate(CASES)]


@pytest.mark.parametrize(("name", "relation"), ALTERNATING)
def test_the_audit_accepts(name, relation):
    case = solver_case(name, relation, runs=1_000)
    assert case.lower_bound() <= case.plan.guarantee.epsilon


@pytest.mark.parametrize("name", CASES)
def test_the_audit_rejects_half_the_noise(name):
    case = solver_case(name, Relation.REPLACE, runs=2_000)
    assert case.lower_bound(noise=0.5) > case.plan.guarantee.epsilon


@pytest.mark.slow
def test_the_selection_noise_of_the_thesis_is_found():
    """Laplace noise of scale 1 on scores of sensitivity 1 is printed as 1-DP; Gumbel noise of scale 1 is 2-DP."""
    result = FAULTS["selection noise as the thesis prints it"]()
    assert result.right
    assert result.wrong, result.shown


@pytest.mark.slow
def test_an_audit_of_a_solver_has_both_arms():
    result = audit_solver("gd", Relation.ZERO_OUT, runs=1_000)
    assert result.passed
    assert result.fault >= 0.25
    assert result.attained == pytest.approx(1.0)
    assert result.mu <= result.promised_mu
    assert audit_solver("sgd-single", Relation.ADD_REMOVE).refused.startswith("sampler")


def test_every_solver_is_audited():
    audited = {solver.name for solver, _ in SOLVER_CASES.values()}
    assert audited == set(SOLVERS), "each solver needs a case in discreet/audit/solver_cases.py"


def test_solvers_refuse_relations_in_their_own_words():
    with pytest.raises(ValueError, match="needs a public number of rows"):
        solver_case("sgd-single", Relation.ADD_REMOVE)


@pytest.mark.slow
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


def test_the_bound_on_mu_is_sound_and_sharper():
    """Never above the truth, within 30 % of it, and a larger epsilon than Clopper-Pearson limits alone show."""
    from discreet.privacy.accounting import gaussian_epsilon

    rng = np.random.default_rng(1)
    for mu in (0.5, 1.0, 2.0):
        first, second = rng.standard_normal(20_000) + mu, rng.standard_normal(20_000)
        bound = mu_lower_bound(first, second)
        assert 0.7 * mu <= bound <= mu
        assert gaussian_epsilon(1e-5, bound) > epsilon_lower_bound(first, second, 1e-5)


def test_the_bound_on_mu_needs_runs_and_knows_equal_samples():
    rng = np.random.default_rng(2)
    assert mu_lower_bound(rng.standard_normal(500), rng.standard_normal(500)) <= 0.1
    assert mu_lower_bound(np.zeros(50), np.zeros(50)) == 0.0
    with pytest.raises(ValueError, match="at least two runs"):
        mu_lower_bound(np.zeros(1), np.zeros(1))
