"""The non-private optimum: certificates, and agreement with scikit-learn and with brute force."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import linear_model

from discreet.data.validation import array_rows
from discreet.problem import optimum
from discreet.problem.constraints import Box, L1Ball, L2Ball, Simplex
from discreet.problem.losses import Logistic, SmoothedHinge, Squared
from discreet.problem.penalties import L1, L2, ElasticNet, Zero
from discreet.problem.problem import Problem
from tests.catalogue import name_of, problems, table


@pytest.mark.parametrize("problem", problems(), ids=name_of)
def test_no_perturbation_improves_the_optimum(problem):
    X, y = table(problem.loss)
    best = problem.optimum(X, y)
    assert best.certificate.value <= 1e-6
    assert problem.objective(X, y, best.coef, best.intercept) == pytest.approx(best.value, rel=1e-10)
    rng = np.random.default_rng(1)
    for size in (1e-4, 1e-2, 1.0):
        for _ in range(30):
            coef = best.coef + size * rng.standard_normal(np.shape(best.coef))
            if problem.constraint is not None:
                coef = problem.constraint.project(coef)
            intercept = best.intercept + size * rng.standard_normal(np.shape(best.intercept))
            assert problem.objective(X, y, coef, intercept) >= best.value - 1e-9


@pytest.mark.slow
def test_a_narrow_hinge_is_minimised_too():
    """Its curvature jumps, so that Newton steps alone stop at 0.98."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((3_000, 30))
    margins = X @ rng.standard_normal(30) * 4.0 / np.sqrt(30)
    y = np.where(rng.random(3_000) < 1.0 / (1.0 + np.exp(-margins)), 1.0, -1.0)
    problem = Problem(SmoothedHinge(0.05), L2(1e-4))
    best = problem.optimum(X, y)
    scaled = optimum.exactly_scaled(problem, array_rows(X, y))
    assert best.value <= scaled.value(optimum.lbfgs(scaled)) * (1.0 + 1e-9)
    assert best.value < 0.5 * scaled.value(optimum.newton(scaled, 1e-10))


@pytest.mark.parametrize("penalty", [L1(0.05), L2(0.1), ElasticNet(0.05, 0.3)], ids=lambda p: p.name)
@pytest.mark.parametrize("loss", [Squared(), Logistic()], ids=lambda loss: loss.name)
def test_the_duality_gap_bounds_the_true_gap(loss, penalty):
    """At points that are not optimal, the certificate must never be below the gap it bounds."""
    from discreet.data.validation import array_rows
    from discreet.problem.optimum import certify, exactly_scaled

    problem = Problem(loss, penalty)
    X, y = table(loss)
    best = problem.optimum(X, y)
    scaled = exactly_scaled(problem, array_rows(X, y))
    optimum = np.append(scaled.scaling.from_user(best.coef), best.intercept + scaled.scaling.shift @ best.coef)
    if not loss.classification:
        optimum[-1] -= scaled.scaling.target_shift
    rng = np.random.default_rng(0)
    kinds = []
    for size in (1e-3, 1e-2, 0.1, 1.0):
        w = optimum + size * rng.standard_normal(scaled.shape)
        certificate = certify(scaled, w)
        kinds.append(certificate.kind)
        if certificate.kind == "duality gap":
            assert certificate.value >= scaled.value(w) - best.value - 1e-10
    assert kinds[:2] == ["duality gap"] * 2  # far away the centred dual point may be infeasible


def test_matches_scikit_learn():
    X, y = table(Squared())
    lasso = linear_model.Lasso(alpha=0.05, tol=1e-12, max_iter=100_000).fit(X, y)
    ours = Problem(Squared(), L1(0.05)).optimum(X, y)
    np.testing.assert_allclose(ours.coef, lasso.coef_, atol=1e-6)
    X, y = table(Logistic())
    logistic = linear_model.LogisticRegression(C=1 / (0.1 * len(y)), tol=1e-10, max_iter=10_000).fit(X, y)
    ours = Problem(Logistic(), L2(0.1)).optimum(X, y)
    np.testing.assert_allclose(ours.coef, logistic.coef_.ravel(), atol=1e-5)
    assert ours.intercept == pytest.approx(logistic.intercept_[0], abs=1e-5)


@pytest.mark.parametrize("constraint", [L1Ball(0.3), L2Ball(0.3), Simplex(1.0), Box(-0.05, 0.1)], ids=lambda c: c.name)
def test_constrained_optimum_is_feasible_and_beats_random_feasible_points(constraint):
    problem = Problem(Squared(), Zero(), constraint)
    X, y = table(Squared())
    best = problem.optimum(X, y)
    assert constraint.contains(best.coef, 1e-8)
    rng = np.random.default_rng(0)
    for _ in range(200):
        coef = constraint.project(best.coef + 0.2 * rng.standard_normal(best.coef.size))
        intercept = np.mean(y - X @ coef)
        assert problem.objective(X, y, coef, intercept) >= best.value - 1e-8


def test_sparse_and_dense_agree_and_weights_zero_removes_a_row():
    problem = Problem(Logistic(), L2(0.1))
    X, y = table(Logistic())
    dense, sparse = problem.optimum(X, y), problem.optimum(sp.csr_array(X), y)
    np.testing.assert_allclose(dense.coef, sparse.coef, atol=1e-7)
    weight = np.ones(len(y))
    weight[:20] = 0.0
    weighted = problem.optimum(X, y, weight)
    # the mean still divides by all rows, so the penalty weighs 120/100 as much
    shorter = Problem(Logistic(), L2(0.1 * 120 / 100)).optimum(X[20:], y[20:])
    np.testing.assert_allclose(weighted.coef, shorter.coef, atol=1e-6)
