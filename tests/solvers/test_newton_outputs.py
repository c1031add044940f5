"""Newton steps with several outputs: sensitivities, the bound on the curvature, the law of the noise, the result.

Optimality without noise, stored rows, calibration and the audit are in the tests for every solver.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from discreet import solve
from discreet.data.public import Public
from discreet.data.rows import Data
from discreet.kernels.gradient import clipped_gradient_sum
from discreet.privacy import mechanisms
from discreet.privacy.budget import Budget
from discreet.privacy.random.generator import seeded_generator
from discreet.privacy.relation import Relation
from discreet.problem.losses import Logistic, Multinomial, OneVsRest
from discreet.problem.penalties import L2
from discreet.problem.problem import Problem
from discreet.problem.scaled_block import MatrixBlock
from discreet.scaling.second_moment import Metric
from discreet.solvers import Newton
from discreet.solvers.newton.descent import Descent, curvature_sum, slope_norms
from discreet.solvers.newton.planning import COUPLING, CURVATURE_RADIUS, HESSIAN, row_curvature_bound
from tests.neighbours import CASE, scaled_neighbours, some_weights
from tests.statistics import both_arms

LOSSES = [Multinomial(3), OneVsRest(Logistic(), 3), Multinomial(2)]


def some_metric(columns, seed, spread=1e3):
    rng = np.random.default_rng(seed)
    vectors = np.linalg.qr(rng.standard_normal((columns, columns)))[0]
    return Metric(np.geomspace(1.0, spread, columns), vectors)


@settings(max_examples=100)
@given(**CASE, loss=st.sampled_from(LOSSES), clip=st.sampled_from([1e-3, 0.8, 50.0]))
def test_gradients_move_by_at_most_their_sensitivity_in_the_metric(relation, X, weight, row, at, seed, loss, clip):
    """In the Frobenius norm of the whitened matrix of all outputs' gradients."""
    metric, sums = None, []
    for scaled in scaled_neighbours(relation, loss, X, weight, row, at, seed, "C"):
        metric = metric or some_metric(scaled.columns, seed)
        with np.errstate(all="ignore"):
            slopes = scaled.slopes(some_weights(scaled, seed))
        sums.append(clipped_gradient_sum(scaled.X, slopes, metric.norms(scaled.X), clip, scaled.weight))
    move = metric.whiten(sums[0] - sums[1])
    assert move.shape == (loss.outputs, metric.values.size)
    assert np.linalg.norm(move) <= mechanisms.clipped_sum(relation).l2 * clip * (1 + 1e-8)


@settings(max_examples=100)
@given(**CASE, loss=st.sampled_from(LOSSES))
def test_curvatures_move_by_at_most_their_sensitivity(relation, X, weight, row, at, seed, loss):
    sums = []
    for scaled in scaled_neighbours(relation, loss, X, weight, row, at, seed, "C"):
        block = MatrixBlock(scaled.X, scaled.y, scaled.weight, loss)
        sums.append(curvature_sum(block, some_weights(scaled, seed), None))
    claimed = mechanisms.clipped_sum(relation).l2 * row_curvature_bound(loss)
    assert np.linalg.norm(sums[0] - sums[1]) <= claimed * (1 + 1e-12)


def test_a_loss_that_exceeds_its_bound_is_shortened():
    class Wrong(Multinomial):
        def curvature(self, margin, y):
            return np.full((len(y), 3), [1e300, np.inf, np.nan])

    total = curvature_sum(MatrixBlock(np.ones((5, 2)), np.zeros(5), None, Wrong(3)), np.zeros((3, 2)), None)
    assert np.linalg.norm(total) <= 5 * row_curvature_bound(Multinomial(3)) * (1 + 1e-12)


@settings(max_examples=200)
@given(classes=st.integers(2, 8), size=st.sampled_from([0.0, 0.3, 3.0, 30.0]), seed=st.integers(0, 10_000))
def test_curvatures_of_a_row_keep_their_bounds(classes, size, seed):
    """Norm below 1/2, Hessian at most (I - 11'/K) / 2 and at most twice its diagonal; once the diagonal fails."""
    loss = Multinomial(classes)
    margins = size * np.random.default_rng(seed).standard_normal((1, classes))
    p = np.exp(margins[0] - margins.max())
    p /= p.sum()
    hessian, diagonal = np.diag(p) - np.outer(p, p), loss.curvature(margins, [0])[0]
    assert np.linalg.norm(diagonal) <= row_curvature_bound(loss)
    bound = 0.5 * (np.eye(classes) - 1.0 / classes)
    assert np.linalg.eigvalsh(bound - hessian)[0] >= -1e-12
    assert np.linalg.eigvalsh(COUPLING * np.diag(diagonal) - hessian)[0] >= -1e-12
    if size <= 3.0:
        assert np.linalg.eigvalsh(np.diag(diagonal) - hessian)[0] < -1e-4 * diagonal.min()


def planned(loss, rows, columns, relation=Relation.REPLACE, epsilon=1.0, **options):
    problem = Problem(loss, L2(1e-3), fit_intercept=False)
    public = Public.of(rows, columns, bounds=(-1.0, 1.0), relation=relation, public_n=rows)
    solver = Newton(scale_share=0.0, **options)
    return problem, solver, solver.plan(problem, public, Budget(epsilon, 1e-6))


@pytest.mark.parametrize("relation", list(Relation))
def test_the_noise_of_all_outputs_is_white_in_the_metric(relation, monkeypatch):
    """Rows of zeros, so that all is noise: accepted as it is, rejected at 2/3 of it; both arms at level 1e-4."""
    problem, solver, plan = planned(Multinomial(4), 50, 6, relation, steps=1, clip=0.7, radius=1.0)
    seen = []
    whole = Descent._noisy_gradient

    def spy(self, t):
        gradient = whole(self, t)
        seen.append(self.metric.whiten(gradient) * self.scaled.rows)
        return gradient

    monkeypatch.setattr(Descent, "_noisy_gradient", spy)
    rng = seeded_generator(3)
    for _ in range(40):
        solver.solve(problem, Data(np.zeros((50, 6)), np.zeros(50)), plan, rng)
    share = plan.mechanism.shares[-1]
    claimed = 0.7 * relation.factor * plan.mechanism.multiplier / np.sqrt(share)
    both_arms(np.ravel(seen), stats.norm(scale=claimed))


def test_curvatures_are_planned_where_they_are_seen_and_cost_no_radius():
    shares = planned(Multinomial(4), 20_000, 6)[2].mechanism.shares
    assert shares[HESSIAN] > 0.0
    assert shares[CURVATURE_RADIUS] == 0.0
    assert planned(Multinomial(4), 200, 6, epsilon=0.1)[2].mechanism.shares[HESSIAN] == 0.0
    assert "mean curvature of each output" in str(planned(Multinomial(4), 20_000, 6)[2])


def blobs(rows=6_000, columns=5, classes=4):
    rng = np.random.default_rng(0)
    X = np.clip(0.4 * rng.standard_normal((rows, columns)), -1.0, 1.0)
    scores = X @ rng.standard_normal((columns, classes)) * 4.0 + np.array([1.0, 0.5, 0.0, -1.5])
    return X, np.argmax(scores + rng.gumbel(size=scores.shape), axis=1).astype(float)


@pytest.mark.parametrize(("fault", "near"), [(1.0, True), (0.25, False)])
def test_few_steps_come_near_the_optimum(fault, near, monkeypatch):
    """Half the way from a constant and more, on average over seeds; gradients that are a quarter as long do not."""
    X, y = blobs()
    problem = Problem(Multinomial(4), L2(1e-4))
    gradient = Descent._noisy_gradient
    monkeypatch.setattr(Descent, "_noisy_gradient", lambda self, t: fault * gradient(self, t))
    best = problem.optimum(X, y).value
    shares = np.bincount(y.astype(int)) / len(y)
    constant = -(shares * np.log(shares)).sum()
    found = []
    for seed in range(4):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fit = solve(problem, X, y, "newton", Budget(2.0, 1e-6), bounds=(-1.0, 1.0), random_state=seed)
        found.append((problem.objective(X, y, fit.coef, fit.intercept) - best) / (constant - best))
    assert (np.mean(found) < 0.08) == near, found


def test_slopes_are_measured_in_the_euclidean_norm():
    np.testing.assert_array_equal(slope_norms(np.array([-2.0, 3.0])), [2.0, 3.0])
    np.testing.assert_allclose(slope_norms(np.array([[3.0, -4.0], [0.0, 0.0]])), [5.0, 0.0])
