"""Objective perturbation: exact densities against the account, the law of the noise, audits and refusals.

Kolmogorov-Smirnov tests at level 1e-4 and audits with confidence 1 - 1e-6, all with fixed seeds: were the seeds
redrawn, one run of this file in 1,000 would raise a false alarm.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from discreet import IncompatibleSolverError, solve
from discreet.data.public import Public
from discreet.data.rows import Data
from discreet.privacy import accounting
from discreet.privacy.accounting import gaussian_delta
from discreet.privacy.budget import Budget
from discreet.privacy.mechanisms import perturbations
from discreet.privacy.random.generator import seeded_generator
from discreet.privacy.relation import Relation
from discreet.problem.constraints import Box, L2Ball
from discreet.problem.losses import Huber, Logistic, Multinomial, SmoothedHinge, Squared
from discreet.problem.penalties import L2, ElasticNet
from discreet.problem.problem import Problem
from discreet.solvers import ObjectivePerturbation
from discreet.solvers._shared import minimisers as certified
from tests.audit_tools import one_row_bound

BUDGET = Budget(1.0, 1e-6)
LOSSES = [Logistic(), SmoothedHinge(0.5), Huber(0.7)]
EPSILONS = (0.0, 0.1, 0.3, 0.6, 1.0, 1.5)


class Exact:
    """The law of the exact minimiser on a grid of weights: density of the noise times the determinant."""

    def __init__(self, loss, ridge, deviation, dimension, reach, points):
        self.loss, self.ridge, self.deviation = loss, ridge, deviation
        axis = np.linspace(-reach, reach, points)
        self.grid = np.stack(np.meshgrid(*[axis] * dimension, indexing="ij"), axis=-1).reshape(-1, dimension)
        self.cell = (axis[1] - axis[0]) ** dimension

    def density(self, rows, targets):
        noise, hessian = -self.ridge * self.grid, self.ridge * np.eye(self.grid.shape[1])
        hessian = np.broadcast_to(hessian, (len(self.grid), *hessian.shape)).copy()
        for x, y in zip(rows, targets, strict=True):
            margins, target = self.grid @ x, np.full(len(self.grid), y)
            noise = noise - self.loss.slope(margins, target)[:, None] * x
            hessian += self.loss.curvature(margins, target)[:, None, None] * np.outer(x, x)
        return stats.norm(scale=self.deviation).pdf(noise).prod(axis=1) * np.linalg.det(hessian)

    def divergence(self, first, second, epsilon):
        """The exact delta between two tables, each a pair of rows and targets."""
        excess = self.density(*first) - math.exp(epsilon) * self.density(*second)
        return float(np.maximum(excess, 0.0).sum()) * self.cell


def accounted(loss, relation, ridge, deviation, epsilon, radius=1.0):
    """The promised delta: the event alone, with the sensitivities as the solver computes them."""
    shift = perturbations.log_determinants(loss, radius, 1, ridge)
    multiplier = deviation / perturbations.gradient_sum(relation, loss, radius).l2
    tails = perturbations.tails_of(relation, loss)
    return accounting.delta_of(accounting.objective_event(shift, multiplier, tails), epsilon, relation)


def directions(dimension):
    """Unit rows at several angles to the first axis, with targets on both sides."""
    if dimension == 1:
        return [(np.array([1.0]), y) for y in (-1.0, 1.0)] + [(np.array([-1.0]), 1.0)]
    angles = (0.0, 0.25 * math.pi, 0.5 * math.pi, 0.8 * math.pi)
    return [(np.array([math.cos(a), math.sin(a)]), y) for a in angles for y in (-1.0, 1.0)]


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
@pytest.mark.parametrize(("ridge", "noise"), [(0.3, 1.0), (2.0, 0.7), (5.0, 3.0)])
def test_exact_densities_on_the_line_keep_the_account(loss, ridge, noise):
    """One common row; the changed row vanishes, appears or is replaced."""
    deviation = noise * loss.lipschitz
    exact = Exact(loss, ridge, deviation, 1, 12.0 * (deviation + 2.0) / ridge, 20_001)
    common = ([np.array([0.6])], [1.0])
    tables = [(common[0] + [x], common[1] + [y]) for x, y in directions(1)]
    assert exact.density(*common).sum() * exact.cell == pytest.approx(1.0, abs=1e-3)
    for epsilon in EPSILONS:
        vanished = accounted(loss, Relation.ZERO_OUT, ridge, deviation, epsilon)
        replaced = accounted(loss, Relation.REPLACE, ridge, deviation, epsilon)
        for table in tables:
            assert exact.divergence(table, common, epsilon) <= vanished + 1e-4
            assert exact.divergence(common, table, epsilon) <= vanished + 1e-4
        for first, second in itertools.permutations(tables, 2):
            assert exact.divergence(first, second, epsilon) <= replaced + 1e-4


def test_an_account_without_the_determinants_is_exceeded():
    """The other arm: with a small ridge and much noise the determinants are what gives a row away."""
    loss, ridge, deviation = Logistic(), 0.1, 6.0
    exact = Exact(loss, ridge, deviation, 1, 12.0 * (deviation + 2.0) / ridge, 100_001)
    row, nothing = ([np.array([1.0])], [1.0]), ([], [])
    found = max(exact.divergence(row, nothing, 0.3), exact.divergence(nothing, row, 0.3))
    assert found > 2.0 * gaussian_delta(0.3, loss.lipschitz / deviation)
    assert found <= accounted(loss, Relation.ZERO_OUT, ridge, deviation, 0.3)


@pytest.mark.parametrize("loss", [Logistic(), SmoothedHinge(0.5)], ids=lambda loss: loss.name)
def test_exact_densities_in_the_plane_keep_the_account_of_one_tail(loss):
    """Replaced rows at every angle: the theorem that needs no union bound."""
    ridge, deviation = 3.0, 1.2
    exact = Exact(loss, ridge, deviation, 2, 7.0 * (deviation + 1.0) / ridge, 161)
    tables = [([x], [y]) for x, y in directions(2)]
    for epsilon in (0.3, 0.8):
        promised = accounted(loss, Relation.REPLACE, ridge, deviation, epsilon)
        found = [exact.divergence(tables[0], other, epsilon) for other in tables[1:]]
        assert max(found) <= promised + 1e-4
        assert max(found) > 0.05 * promised  # the tables are not all alike


def rotated(n, log_c, angle, grid):
    """E (1 - c e^-M)_+ for two corners of length n at an angle, on a grid of standard normal points."""
    x, y, weight = grid
    corners = [(n, 0.0), (n * math.cos(angle), n * math.sin(angle))]
    corners.append((corners[0][0] + corners[1][0], corners[1][1]))
    worst = np.zeros_like(x)
    for a, b in corners:
        worst = np.maximum(worst, a * x + b * y + 0.5 * (a * a + b * b))
    return float((weight * np.maximum(1.0 - np.exp(log_c - worst), 0.0)).sum())


@pytest.mark.parametrize("n", [0.2, 0.7, 1.5])
@pytest.mark.parametrize("log_c", [0.0, 0.1, 0.5, 1.5])
def test_equal_rows_are_the_worst_replacement(n, log_c):
    """The claim of the guarantee page: it falls with the angle, then grows, and never passes the start."""
    axis = np.linspace(-8.0, 8.0, 641)
    x, y = np.meshgrid(axis, axis, indexing="ij")
    grid = x, y, np.exp(-0.5 * (x * x + y * y)) / (2.0 * math.pi) * (axis[1] - axis[0]) ** 2
    found = np.array([rotated(n, log_c, angle, grid) for angle in np.linspace(0.0, math.pi, 13)])
    assert found[0] == pytest.approx(gaussian_delta(log_c, 2.0 * n), abs=2e-4)
    assert found.max() <= found[0] + 2e-4
    turning = np.sign(np.where(np.abs(np.diff(found)) < 2e-5, 0.0, np.diff(found)))
    assert (np.diff(turning[turning != 0.0]) >= 0.0).all()


def test_how_many_tails():
    assert perturbations.tails_of(Relation.REPLACE, Logistic()) == 1
    assert perturbations.tails_of(Relation.ZERO_OUT, Huber()) == 2
    assert perturbations.tails_of(Relation.REPLACE, Huber()) == 4


ROWS, COLUMNS = 50, 4_000


def looks_like(draws, law):
    return stats.kstest(np.ravel(draws), law.cdf).pvalue > 1e-4


@pytest.mark.parametrize("relation", list(Relation))
def test_it_adds_the_planned_noise(relation):
    """With rows of zeros the minimiser is -b / ridge, and the veil is thin; 2/3 of the noise would be rejected."""
    problem = Problem(Logistic(), L2(1e-9), fit_intercept=False)
    solver = ObjectivePerturbation(row_norm=0.5, ridge=200.0, scale_share=0.0)
    public = Public(ROWS, COLUMNS, relation, low=-np.ones(COLUMNS), high=np.ones(COLUMNS))
    plan = solver.plan(problem, public, BUDGET)
    w = solver.solve(problem, Data(np.zeros((ROWS, COLUMNS)), np.ones(ROWS)), plan, seeded_generator(1)).w
    sensitivity = relation.factor * 0.5 * math.sqrt(COLUMNS)
    law = stats.norm(scale=plan.mechanism.multiplier * sensitivity / (ROWS * 200.0))
    assert looks_like(w, law)
    assert not looks_like(2 / 3 * w, law)


@pytest.mark.slow
def test_the_pure_form_draws_both_noises_with_a_gamma_radius():
    mechanism, stream = perturbations.ObjectiveNoise(2.0, 0.1, 1, pure=True), seeded_generator(3)
    for part, scale in ((mechanism.linear, 2.0), (mechanism.output_noise, 200.0)):
        grid = part.grid(perturbations.within(0.5), 4)
        draws = [grid.noise(stream, 4) for _ in range(3_000)]
        radius = np.linalg.norm(draws, axis=1)
        assert looks_like(radius, stats.gamma(4, scale=scale))
        assert not looks_like(2 / 3 * radius, stats.gamma(4, scale=scale))
    assert accounting.pure_epsilon_of(mechanism.event, "replace") == pytest.approx(0.1 + 0.5 + 0.005)


def test_a_minimiser_at_the_edge_of_its_certificate_is_hidden(monkeypatch):
    """The veil is noise of its multiplier for two points that are each as far off as the certificate allows."""
    problem = Problem(Logistic(), L2(1e-9), fit_intercept=False)
    solver = ObjectivePerturbation(ridge=1.0, scale_share=0.0)
    public = Public(ROWS, COLUMNS, low=-np.ones(COLUMNS), high=np.ones(COLUMNS))
    plan = solver.plan(problem, public, BUDGET)
    seen = []

    def nowhere(scaled, radius, distance):
        seen.append(distance)
        return scaled.start()

    monkeypatch.setattr("discreet.solvers.objective_perturbation.minimum_within", nowhere)
    data = Data(np.zeros((ROWS, COLUMNS)), np.ones(ROWS))
    w = solver.solve(problem, data, plan, seeded_generator(4)).w
    distance = 2.0 * seen[0]  # half of it is for the rounding of the linear term
    law = stats.norm(scale=10.0 * plan.mechanism.multiplier * 2.0 * distance)
    assert looks_like(w, law)
    assert not looks_like(2 / 3 * w, law)


def lower_bound(relation, noise, budget):
    """A strong ridge keeps the slope of the hinge at its bound, and the determinants out of sight."""
    problem = Problem(SmoothedHinge(0.5), L2(0.01), fit_intercept=False)
    solver = ObjectivePerturbation(row_norm=1.0, ridge=100.0, scale_share=0.0)
    return one_row_bound(solver, problem, (1.0, -1.0), relation, noise, budget)


@pytest.mark.slow
@pytest.mark.parametrize("relation", [Relation.REPLACE, Relation.ZERO_OUT])
@pytest.mark.parametrize("budget", [Budget(1.0, 0.1), Budget.pure(1.0)], ids=str)
def test_the_audit_accepts(relation, budget):
    assert lower_bound(relation, 1.0, budget) <= 1.0


@pytest.mark.slow
@pytest.mark.parametrize("budget", [Budget(1.0, 0.1), Budget.pure(1.0)], ids=str)
def test_the_audit_rejects_half_the_noise(budget):
    assert lower_bound(Relation.REPLACE, 0.5, budget) > 1.0


@pytest.mark.parametrize(
    ("problem", "budget", "message"),
    [
        (Problem(Squared(), L2(0.1)), BUDGET, "squared loss has no bound.*Huber"),
        (Problem(Logistic(), ElasticNet(0.1, 0.5)), BUDGET, "without an l1 part"),
        (Problem(Logistic(), L2(0.1), Box(-1.0, 1.0)), BUDGET, "free of constraints"),
        (Problem(Logistic(), L2(0.1), L2Ball(1.0)), BUDGET, "not separable"),
        (Problem(Multinomial(3), L2(0.1)), BUDGET, "several classes"),
        (Problem(Logistic(), L2(0.1)), Budget.zcdp(0.5), "not in zCDP or Gaussian DP"),
        (Problem(Logistic(), L2(0.1)), Budget.gdp(0.5), "not in zCDP or Gaussian DP"),
    ],
    ids=["squared", "elastic-net", "box", "ball", "classes", "zcdp", "gdp"],
)
def test_what_it_cannot_do_is_refused_with_a_reason(problem, budget, message):
    with pytest.raises(IncompatibleSolverError, match=message):
        ObjectivePerturbation().plan(problem, Public(100, 3), budget)


def test_the_required_ridge_is_computed_and_told():
    problem, public = Problem(Logistic(), L2(1e-5)), Public(1_000, 5)
    plan = ObjectivePerturbation().plan(problem, public, BUDGET)
    told = plan.settings
    assert told.determinant_epsilon == pytest.approx(0.1)
    assert math.log1p(0.25 * told.row_norm**2 / (1_000 * told.ridge)) == pytest.approx(0.1)
    assert accounting.epsilon_of(plan.event, 1e-6, "replace") <= 1.0
    generous = ObjectivePerturbation().plan(problem, public, Budget(500.0, 1e-6))
    assert generous.settings.determinant_epsilon == pytest.approx(3.0)
    with pytest.raises(ValueError, match="ridge must be well above"):
        ObjectivePerturbation(ridge=1e-8).plan(problem, public, BUDGET)


def test_the_tilted_objective_is_the_one_that_is_minimised():
    """The gradient of mean loss, ridge and linear term vanishes at the minimum; Huber's kinks do no harm."""
    from discreet.data.validation import array_rows
    from discreet.problem.optimum import exactly_scaled
    from tests.catalogue import table

    for loss in LOSSES:
        scaled = certified.clip_rows(exactly_scaled(Problem(loss, L2(0.05)), array_rows(*table(loss))), 2.0, 0.05)
        with_linear_term = certified.with_linear_term(scaled, np.linspace(-0.2, 0.3, scaled.columns))
        w = certified.minimum_within(with_linear_term, 2.0, 1e-8)
        slope = scaled.gradient(w) + scaled.penalty_terms.l2 * w + with_linear_term.linear_term
        assert np.linalg.norm(slope) < 1e-6


def test_what_is_told_does_not_depend_on_the_rows():
    problem, rng = Problem(Logistic(), L2(0.1)), np.random.default_rng(0)
    told = set()
    for X in (rng.standard_normal((80, 3)), np.zeros((80, 3)), np.full((80, 3), 1e300)):
        y = 2.0 * rng.integers(0, 2, 80) - 1.0
        found = solve(problem, X, y, "objective-perturbation", BUDGET, bounds=(-1.0, 1.0))
        told.add(found.iterations)
    assert told == {found.plan.settings.steps}
