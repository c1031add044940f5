"""Newton steps in a private metric: sensitivities in the metric, the law of the noise, and degenerate tables.

Optimality without noise, forms of tables, calibration and the audit are in the tests for every solver.
"""

from __future__ import annotations

import itertools
import math
import warnings
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from discreet import IncompatibleSolverError, Ridge, solve
from discreet.audit.lower_bound import epsilon_lower_bound
from discreet.data.public import Public
from discreet.kernels.gradient import clipped_gradient_sum, row_norms
from discreet.privacy import mechanisms
from discreet.privacy.accounting import mu_of
from discreet.privacy.budget import Budget
from discreet.privacy.mechanisms.additive import BudgetSplit
from discreet.privacy.random.generator import seeded_generator
from discreet.privacy.relation import Relation
from discreet.problem.constraints import Box
from discreet.problem.losses import Huber, Logistic, SmoothedHinge, Squared
from discreet.problem.penalties import L1, L2, ElasticNet, PenaltyTerms, prox
from discreet.problem.problem import Problem
from discreet.scaling import second_moment
from discreet.scaling.second_moment import Metric, SecondMoment
from discreet.solvers import CoordinateDescent, Newton
from discreet.solvers._shared.minimisers import QuadraticModel
from discreet.solvers.newton.planning import CALIBRATION, GRADIENTS, HESSIAN, LABELS, MOMENT
from discreet.testing.solver_laws import SameDraws
from tests.audit_tools import DELTA, EPSILON
from tests.catalogue import degenerate_tables, table
from tests.neighbours import CASE, scaled_neighbours, some_weights
from tests.statistics import both_arms

LOSSES = [Squared(), Logistic(), Huber(0.7), SmoothedHinge(0.5)]


def solve_seeded(problem, X, y, solver, budget=None, seed=0, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return solve(problem, X, y, solver, budget or Budget(1.0, 1e-4), random_state=seed, **options)


def some_metric(columns, seed, spread=1e3):
    rng = np.random.default_rng(seed)
    vectors = np.linalg.qr(rng.standard_normal((columns, columns)))[0]
    return Metric(np.geomspace(1.0, spread, columns), vectors)


def coordinates(matrix):
    """The isometry of Lemma B: diagonal entries, and sqrt(2) times those above."""
    upper = np.triu_indices(len(matrix), 1)
    return np.append(np.diag(matrix), math.sqrt(2.0) * matrix[upper])


@settings(max_examples=150)
@given(**CASE, radius=st.sampled_from([1e-3, 0.5, 3.0, 1e4]))
def test_second_moments_move_by_at_most_their_sensitivity(relation, X, weight, row, at, seed, radius):
    sums = [
        second_moment.clipped_second_moment(scaled.X, scaled.norms(), radius, scaled.weight)
        for scaled in scaled_neighbours(relation, Squared(), X, weight, row, at, seed, "C")
    ]
    claimed = mechanisms.outer_products(relation, sums[0].shape[0]) * radius**2
    move = coordinates(sums[0] - sums[1])
    assert np.isfinite(move).all()
    assert np.linalg.norm(move) <= claimed.l2 * (1 + 1e-9)
    assert np.abs(move).sum() <= claimed.l1 * (1 + 1e-9)


def test_the_bound_on_second_moments_is_attained():
    first, second = (
        second_moment.clipped_second_moment(row, row_norms(row), 1.0, None) for row in np.eye(2)[:, None, :]
    )
    assert np.linalg.norm(first - second) == pytest.approx(mechanisms.outer_products(Relation.REPLACE, 2).l2)
    assert np.linalg.norm(first) == pytest.approx(mechanisms.outer_products(Relation.ZERO_OUT, 2).l2)


@settings(max_examples=150)
@given(**CASE, loss=st.sampled_from(LOSSES), clip=st.sampled_from([1e-3, 0.8, 50.0]))
def test_gradients_move_by_at_most_their_sensitivity_in_the_metric(relation, X, weight, row, at, seed, loss, clip):
    metric, sums = None, []
    for scaled in scaled_neighbours(relation, loss, X, weight, row, at, seed, "C"):
        metric = metric or some_metric(scaled.columns, seed)
        with np.errstate(all="ignore"):
            slopes = scaled.slopes(some_weights(scaled, seed))
        sums.append(clipped_gradient_sum(scaled.X, slopes, metric.norms(scaled.X), clip, scaled.weight))
    move = (metric.vectors.T @ (sums[0] - sums[1])) / np.sqrt(metric.values)
    assert np.isfinite(move).all()
    assert np.linalg.norm(move) <= mechanisms.clipped_sum(relation).l2 * clip * (1 + 1e-8)


@settings(max_examples=150)
@given(**CASE, unit=st.sampled_from([1e-6, 1.0, 1e6]))
@pytest.mark.slow
def test_size_counts_move_by_at_most_their_sensitivity(relation, X, weight, row, at, seed, unit):
    counts = []
    for scaled in scaled_neighbours(relation, Squared(), X, weight, row, at, seed, "C"):
        with np.errstate(all="ignore"):
            sizes = np.abs(scaled.slopes(some_weights(scaled, seed))) * scaled.norms()
        counts.append(second_moment.norm_counts(sizes, scaled.weight, unit))
        assert counts[-1].sum() == pytest.approx(scaled.weight.sum())
    assert np.linalg.norm(counts[0] - counts[1]) <= mechanisms.one_hot_counts(relation, 1).l2 * (1 + 1e-12)


def test_every_size_has_a_bin():
    sizes = np.array([0.0, 5e-324, 1.0, 1e308, np.inf, np.nan])
    counts = second_moment.norm_counts(sizes, None, 1.0)
    assert counts.sum() == sizes.size
    assert counts[0] == 2
    assert counts[-1] == 3


def test_a_limit_leaves_about_the_allowed_number_of_rows_above():
    sizes = np.random.default_rng(0).lognormal(sigma=1.0, size=20_000)
    found = second_moment.private_norm_bound(
        second_moment.norm_counts(sizes, None, 1.0),
        1.0,
        500.0,
        mechanisms.Gaussian(3.0),
        Relation.REPLACE,
        seeded_generator(0),
        sizes.size,
    )
    assert (sizes > found).sum() <= 550
    assert (sizes > found * 2 ** (-1 / second_moment.PER_OCTAVE)).sum() >= 450


def test_a_limit_reaches_over_a_gap():
    """Two groups of rows, as of two classes: no group is clipped for lying apart."""
    for share in (0.55, 0.9, 0.97):
        sizes = np.where(np.arange(100_000) < share * 100_000, 1.0, 4.0)
        found = second_moment.private_norm_bound(
            second_moment.norm_counts(sizes, None, 1.0),
            1.0,
            100.0,
            mechanisms.Gaussian(10.0),
            Relation.REPLACE,
            seeded_generator(0),
            sizes.size,
        )
        assert 4.0 <= found < 8.0


def test_sizes_far_beyond_the_usual_are_told_apart_where_the_noise_is_weak():
    sizes = np.where(np.arange(10_000) < 20, 1_000.0, 1.0)
    counts = second_moment.norm_counts(sizes, None, 1.0)
    weak, strong = (
        second_moment.private_norm_bound(
            counts, 1.0, 0.5, mechanisms.Gaussian(z), Relation.REPLACE, seeded_generator(0), sizes.size
        )
        for z in (0.1, 3.0)
    )
    assert 1_000.0 <= weak < 1_300.0
    assert strong <= 32.0


@pytest.mark.parametrize("epsilon", [1e4, 1e6])
def test_a_huge_budget_is_as_good_as_an_infinite_one(epsilon):
    """A column whose tail is 500 times as long as usual: no range and no threshold stays in the way. Seeded."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=4_000), np.exp(1.5 * rng.normal(size=4_000))])
    y = X @ [1.0, 0.2] + rng.normal(size=4_000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found, best = (Ridge(epsilon=e, random_state=0).fit(X, y) for e in (epsilon, math.inf))
    losses = [np.mean((model.predict(X) - y) ** 2) for model in (found, best)]
    assert losses[0] <= 1.001 * losses[1]


@pytest.mark.parametrize(("level", "holds"), [(second_moment.CLEAR, True), (3.0, False)])
def test_noise_alone_seldom_sets_an_absurd_limit(level, holds, monkeypatch):
    """Rows of one size and many empty bins: the limit stays, in all but one draw of 20,000. A lower level fails."""
    monkeypatch.setattr(second_moment, "CLEAR", level)
    counts = second_moment.norm_counts(np.ones(50_000), None, 1.0)
    mechanism, stream = mechanisms.Gaussian(100.0), seeded_generator(1)
    found = [
        second_moment.private_norm_bound(counts, 1.0, 50.0, mechanism, Relation.REPLACE, stream, 50_000)
        for _ in range(1_000)
    ]
    assert (max(found) < 2.0) == holds


@settings(max_examples=150)
@given(**CASE, radius=st.sampled_from([1e-3, 0.5, 3.0, 1e4]), loss=st.sampled_from(LOSSES))
def test_hessians_move_by_at_most_their_sensitivity_in_the_metric(relation, X, weight, row, at, seed, radius, loss):
    sums = []
    for scaled in scaled_neighbours(relation, loss, X, weight, row, at, seed, "C"):
        metric = some_metric(scaled.columns, seed)
        factor = np.sqrt(loss.curvature(scaled.margins(some_weights(scaled, seed)), scaled.y) / loss.smoothness)
        norms = metric.norms(scaled.X)
        sums.append(second_moment.clipped_second_moment(scaled.X, norms, radius, scaled.weight, None, metric, factor))
    claimed = mechanisms.outer_products(relation, sums[0].shape[0]) * radius**2
    assert np.linalg.norm(coordinates(sums[0] - sums[1])) <= claimed.l2 * (1 + 1e-6)


@pytest.mark.parametrize("relation", list(Relation))
def test_the_whitened_release_carries_the_noise_of_its_radius(relation):
    """On rows of zeros all is noise: accepted as it is, rejected at 2/3 of it; both arms at level 1e-4."""
    X, metric = np.zeros((50, 60)), some_metric(60, 0)
    total = second_moment.clipped_second_moment(X, metric.norms(X), 3.0, None, None, metric)
    arguments = (3.0, 1, mechanisms.Gaussian(1.7), relation, seeded_generator(4))
    draws = coordinates(second_moment.release(total, *arguments).matrix)
    both_arms(draws, stats.norm(scale=1.7 * 9.0 * math.sqrt(relation.factor)))


@pytest.mark.parametrize(("noise", "broken"), [(1.0, False), (0.5, True)])
@pytest.mark.slow
def test_the_audit_of_the_hessian(noise, broken):
    """One row replaced by an orthogonal one, both of the length of the radius: the worst that Lemma A allows."""
    metric, stream = some_metric(2, 0), seeded_generator(5)
    mechanism = mechanisms.additive(Budget(EPSILON, DELTA), 1.0)
    mechanism = replace(mechanism, multiplier=noise * mechanism.multiplier)

    def draws(direction):
        row = (np.sqrt(metric.values) * np.eye(2)[direction] @ metric.vectors.T)[None, :] * 2.0
        total = second_moment.clipped_second_moment(row, metric.norms(row), 2.0, None, None, metric)
        arguments = (2.0, 1, mechanism, Relation.REPLACE, stream)
        found = [second_moment.release(total, *arguments).matrix for _ in range(10_000)]
        return np.array([matrix[0, 0] - matrix[1, 1] for matrix in found])

    assert (epsilon_lower_bound(draws(0), draws(1), DELTA) > EPSILON) == broken


def test_the_whitened_release_is_that_of_whitened_rows():
    rng = np.random.default_rng(0)
    X, factor, weight = rng.standard_normal((200, 4)), rng.random(200), rng.random(200)
    metric = some_metric(4, 1)
    white = factor[:, None] * X @ (metric.vectors / np.sqrt(metric.values))
    wanted = second_moment.clipped_second_moment(white, row_norms(white), 0.3, weight)
    for table_ in (X, sp.csr_array(X)):
        found = second_moment.clipped_second_moment(table_, metric.norms(table_), 0.3, weight, None, metric, factor)
        np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-12)
    white = X @ (metric.vectors / np.sqrt(metric.values))
    np.testing.assert_allclose(metric.unwhitened(white.T @ white), X.T @ X, rtol=1e-9)


@pytest.mark.parametrize("fault", [False, True])
def test_symmetric_noise_is_white_in_the_frobenius_norm(fault):
    """Kolmogorov-Smirnov on diagonal and scaled upper entries; both arms at level 1e-6, so is the false alarm.

    The planted fault halves the noise above the diagonal.
    """
    grid = mechanisms.Gaussian(1.7).grid(mechanisms.outer_products(Relation.REPLACE, 60) * 2.0, 3_600)
    noise = second_moment.symmetric_noise(grid, seeded_generator(3), 60)
    np.testing.assert_array_equal(noise, noise.T)
    if fault:
        noise = 0.5 * noise + 0.5 * np.diag(np.diag(noise))
    draws = coordinates(noise) / (1.7 * 2.0 * math.sqrt(2.0))
    assert (stats.kstest(draws, "norm").pvalue < 1e-6) == fault


@pytest.mark.parametrize("fault", [False, True])
def test_noise_spread_in_the_metric_has_the_norm_of_white_noise(fault):
    """Squared metric norms are chi-squared; level 1e-6 in both arms. The fault spreads in the Euclidean norm."""
    metric = some_metric(5, 0)
    draws = seeded_generator(4).normal((2_000, 5))
    spread = draws if fault else np.array([metric.unwhiten(draw) for draw in draws])
    np.testing.assert_allclose(metric.whiten(metric.unwhiten(draws[0])), draws[0], rtol=1e-9)
    squares = metric.norms(spread) ** 2
    assert (stats.kstest(squares, stats.chi2(5).cdf).pvalue < 1e-6) == fault


def test_the_metric_of_any_released_matrix_is_positive():
    rng = np.random.default_rng(0)
    for matrix in (np.zeros((3, 3)), -np.eye(3), np.diag([1.0, 0.0, -5.0]), rng.standard_normal((3, 3))):
        symmetric = 0.5 * (matrix + matrix.T)
        for deviation in (0.0, 1e-9, 2.0):
            metric = Metric.from_second_moment(SecondMoment(symmetric, deviation))
            assert (metric.values > 0.0).all()
            assert metric.values.min() >= 0.5 * math.sqrt(6.0) * deviation * (1 - 1e-12)
            np.testing.assert_allclose(np.linalg.eigvalsh(metric.matrix), metric.values, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("fault", [False, True])
def test_twice_the_metric_exceeds_the_second_moment_without_noise(fault):
    """For any noise up to its edge; else steps of the squared loss would overshoot and diverge.

    The fault lifts the eigenvalues to half of the edge and no further.
    """
    rng, worst = np.random.default_rng(0), math.inf
    for size in rng.uniform(0.0, 3.0, 200):
        rows = rng.standard_normal((6, 4))
        truth = size * rows.T @ rows / np.linalg.norm(rows.T @ rows, 2)
        noise = rng.standard_normal((4, 4))
        noise = (noise + noise.T) / np.linalg.norm(noise + noise.T, 2)
        released = SecondMoment(truth + noise, 1.0 / math.sqrt(8.0))  # its edge is 1
        metric = Metric.from_second_moment(released)
        if fault:
            values, vectors = np.linalg.eigh(released.matrix)
            metric = Metric(np.maximum(values, 0.5), vectors)
        worst = min(worst, float(np.linalg.eigvalsh(2.0 * metric.matrix - truth)[0]))
    assert (worst < -1e-9) == fault


def test_metric_norms_are_those_of_the_inverse_matrix_for_dense_and_sparse_rows():
    X = np.random.default_rng(0).standard_normal((300, 6)) * (np.random.default_rng(1).random((300, 6)) < 0.5)
    metric = some_metric(6, 2)
    wanted = np.sqrt(np.einsum("ij,jk,ik->i", X, np.linalg.inv(metric.matrix), X))
    np.testing.assert_allclose(metric.norms(X), np.maximum(wanted, 1e-150), rtol=1e-9)
    np.testing.assert_allclose(metric.norms(sp.csr_array(X)), metric.norms(X), rtol=1e-12)
    weight = np.linspace(0.0, 1.0, 300)
    moments = [second_moment.clipped_second_moment(t, row_norms(X), 1.3, weight) for t in (X, sp.csc_array(X))]
    np.testing.assert_allclose(*moments, rtol=1e-12, atol=1e-12)
    rows = X * (np.sqrt(weight) * np.minimum(1.0, 1.3 / row_norms(X)))[:, None]
    np.testing.assert_allclose(moments[0], rows.T @ rows, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("l1", [0.0, 0.3])
@pytest.mark.parametrize("high", [np.inf, 0.2])
def test_the_quadratic_model_is_minimised_exactly(l1, high):
    rng = np.random.default_rng(0)
    A = rng.standard_normal((6, 6))
    matrix, linear = A @ A.T + 0.1 * np.eye(6), rng.standard_normal(6)
    penalty = PenaltyTerms(np.full(6, l1), np.full(6, 0.2), np.full(6, -np.inf), np.full(6, high))
    w = QuadraticModel(matrix, penalty).minimise(linear, np.zeros(6))
    np.testing.assert_allclose(w, prox(w - (matrix @ w - linear), 1.0, penalty), atol=1e-9)


def test_shares_cost_what_one_release_costs():
    shares = BudgetSplit(4.0, (0.25, 0.0, 0.5, 0.25))
    assert mu_of(shares.event, Relation.REPLACE) == pytest.approx(0.25)
    assert shares.part(0).multiplier == pytest.approx(8.0)
    assert shares.whole.multiplier == pytest.approx(4.0)


SHARED = [Newton(), Newton(steps=1), Newton(clip=1.0), Newton(steps=5, radius=2.0)]


@pytest.mark.parametrize(
    ("settings_", "copies"),
    [*itertools.product(SHARED, [1, 40]), (Newton(steps=5_000), 1), (Newton(steps=500), 40)],
)
def test_shares_are_those_of_the_releases_that_are_made(settings_, copies, monkeypatch):
    """Counts the draws of a run: as many parts are used as have a share, each with its own multiplier.

    The longer table is long enough for a Hessian.
    """
    used = []
    plain = mechanisms.Gaussian.grid

    def counted(self, *arguments, **options):
        used.append(self.multiplier)
        return plain(self, *arguments, **options)

    monkeypatch.setattr(mechanisms.Gaussian, "grid", counted)
    X, y = table(Logistic())
    X, y, settings_ = np.tile(X, (copies, 1)), np.tile(y, copies), replace(settings_, scale_share=0.0)
    plan = solve_seeded(Problem(Logistic(), L2(0.1)), X, y, settings_, bounds=(-40.0, 40.0)).plan
    shares = plan.mechanism
    assert sum(shares.shares) == pytest.approx(1.0)
    assert sorted(used) == sorted(shares.part(k).multiplier for k, share in enumerate(shares.shares) if share > 0.0)
    left = 1.0 - shares.shares[LABELS] - shares.shares[CALIBRATION]
    assert shares.shares[MOMENT] == pytest.approx(settings_.moment_share * left)
    assert shares.shares[LABELS] > 0.0
    assert (shares.shares[HESSIAN] > 0.0) == (copies > 1 and plan.settings.steps > 1)
    assert len(shares.shares) == GRADIENTS + plan.settings.steps


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
@pytest.mark.parametrize("penalty", [L2(0.1), L1(0.05), ElasticNet(0.05, 0.5)], ids=lambda penalty: penalty.name)
def test_without_noise_the_steps_themselves_reach_the_optimum(loss, penalty):
    """A fixed number of steps runs the private path with zero noise, not the certified minimiser."""
    X, y = table(loss)
    problem = Problem(loss, penalty)
    solution = solve_seeded(problem, X, y, Newton(steps=150), Budget(math.inf, 0.5))
    best = problem.optimum(X, y).value
    assert problem.objective(X, y, solution.w, solution.intercept) - best <= 1e-6 * best


@pytest.mark.parametrize("relation", ["replace", "zero_out", "add_remove"])
def test_degenerate_tables_give_finite_models(relation):
    for X in degenerate_tables():
        for loss in (Logistic(), Squared()):
            y = np.where(np.arange(len(X)) % 2, 1.0, -1.0)
            options = {"public_n": len(X)} if relation == "add_remove" else {}
            solution = solve_seeded(Problem(loss, L2(0.01)), X, y, "newton", relation=relation, **options)
            assert np.isfinite(solution.w).all()
            assert math.isfinite(float(solution.intercept))


def test_a_box_and_sparse_rows():
    X, y = table(Logistic())
    problem = Problem(Logistic(), constraint=Box(-0.05, 0.02))
    dense, sparse = (
        solve_seeded(problem, rows, y, "newton", seed=SameDraws(0), bounds=(-40.0, 40.0)).w
        for rows in (X, sp.csr_array(X))
    )
    np.testing.assert_allclose(dense, sparse, rtol=1e-7, atol=1e-9)
    assert problem.constraint.contains(dense, 1e-12)


def test_too_many_columns_and_wrong_settings_are_refused():
    problem = Problem(Logistic())
    with pytest.raises(IncompatibleSolverError, match="at most 5,000 columns, not 5,001"):
        Newton().plan(problem, Public(1_000, 5_001), Budget(1.0, 1e-3))
    with pytest.raises(IncompatibleSolverError, match="pure"):
        Newton().plan(problem, Public(100, 3), Budget.pure(1.0))
    for setting in ({"steps": 0}, {"clip": -1.0}, {"radius": math.nan}, {"moment_share": 1.0}):
        with pytest.raises(ValueError, match=next(iter(setting))):
            Newton(**setting)


def test_far_better_than_coordinate_descent_on_correlated_columns():
    """The medians of five seeds differ by a factor of about 700; 50 leaves room for another source of noise."""
    rng = np.random.default_rng(0)
    mix = np.eye(6) + np.ones((6, 6))
    X = rng.standard_normal((20_000, 6)) @ mix
    y = np.where(X @ np.array([1.0, -1.0, 1.0, -1.0, 1.0, -1.0]) + rng.logistic(size=20_000) > 0, 1.0, -1.0)
    problem = Problem(Logistic(), L2(1e-4))
    best = problem.optimum(X, y).value
    errors = {}
    for solver in (Newton(), CoordinateDescent()):
        runs = [solve_seeded(problem, X, y, solver, seed=seed, bounds=(-40.0, 40.0)) for seed in range(5)]
        errors[solver.name] = np.median([problem.objective(X, y, run.w, run.intercept) - best for run in runs])
    assert 50.0 * errors["newton"] < errors["cd"]


def test_the_hessian_pays_where_outcomes_are_rare():
    """One row in fifty is positive; the medians of three seeds differ by a factor of about 1.5.

    Most of what the Hessian was good for is done by the start, which has the right share of positive rows.
    """
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50_000, 5))
    y = np.where(X.sum(axis=1) / 4.0 - 4.0 + rng.logistic(size=50_000) > 0, 1.0, -1.0)
    problem, budget = Problem(Logistic(), L2(1e-5)), Budget(2.0, 1e-9)
    best = problem.optimum(X, y).value
    errors = {}
    for share in (0.03, 0.0):
        runs = [solve_seeded(problem, X, y, Newton(hessian_share=share), budget, seed) for seed in range(3)]
        assert [run.plan.settings.hessian_share for run in runs] == [share] * 3
        errors[share] = np.median([problem.objective(X, y, run.w, run.intercept) - best for run in runs])
    assert errors[0.03] < errors[0.0]


def test_a_hessian_lost_in_its_noise_is_not_planned():
    problem = Problem(Logistic(), L2(1e-3))
    for rows, columns, planned in ((50_000, 5, True), (300, 10, False), (20_000, 100, False)):
        plan = Newton().plan(problem, Public(rows, columns), Budget(1.0, 1e-9))
        assert (plan.settings.hessian_share > 0.0) == planned


def curved(name, rng):
    """Tables on which a Hessian that is taken too small makes steps overshoot."""
    if name == "squared":
        X = rng.standard_normal((3_000, 1))
        return Problem(Squared(), L2(1e-4)), X, X[:, 0] + rng.standard_t(3, 3_000)
    if name == "huber":
        X = rng.standard_normal((30_000, 1))
        return Problem(Huber(1.35), L2(1e-4)), X, 100.0 * (X[:, 0] + rng.standard_normal(30_000))
    if name == "hinge":  # rare outcomes, balanced in a small group
        X = (rng.random((30_000, 1)) < 0.05).astype(float)
        chance = np.where(X[:, 0] > 0.0, 0.5, 0.002)
        return Problem(SmoothedHinge(0.5), L2(1e-4)), X, np.where(rng.random(30_000) < chance, 1.0, -1.0)
    y = np.where(rng.random(30_000) < 0.03, 1.0, -1.0)
    return Problem(Logistic(), L2(1e-4)), rng.standard_normal((30_000, 1)) + 2.0 * y[:, None], y


@pytest.mark.parametrize("name", ["squared", "huber", "hinge", "logistic"])
@pytest.mark.parametrize("epsilon", [0.3, 1.0])
def test_the_hessian_does_no_harm(name, epsilon):
    """The worst of ten seeds against the worst without a Hessian, in units of the constant's excess."""
    problem, X, y = curved(name, np.random.default_rng(0))
    best = problem.optimum(X, y).value
    constant = problem.objective(X, y, np.zeros(1), 0.0) - best
    worst = [
        max(
            problem.objective(X, y, run.w, run.intercept) - best
            for run in (
                solve_seeded(problem, X, y, Newton(hessian_share=s), Budget(epsilon, 1e-6), k) for k in range(10)
            )
        )
        for s in (0.03, 0.0)
    ]
    assert worst[0] <= 3.0 * worst[1] + 0.02 * constant


def test_a_relative_error_below_1e_4_on_the_raw_electricity_table(shared_data):
    """Budget (1, 1/n^2), nothing declared, nothing tuned: the worst of ten seeds has 5e-5."""
    z = shared_data("electricity")
    X, y = z["X"], 2.0 * z["y"] - 1.0
    problem = Problem(Logistic(), L2(1e-3))
    best = problem.optimum(X, y).value
    runs = [solve_seeded(problem, X, y, "newton", Budget(1.0, 1.0 / len(y) ** 2), seed=seed) for seed in range(3)]
    assert np.median([problem.objective(X, y, run.w, run.intercept) / best - 1.0 for run in runs]) <= 1e-4
