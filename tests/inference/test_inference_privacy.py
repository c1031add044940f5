"""What a fit for intervals releases moves by no more than its page says, whatever the rows are."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import Ledger, LinearRegression, LogisticRegression, Relation
from discreet.privacy import accounting, mechanisms
from discreet.problem.losses import Logistic, Squared
from discreet.problem.penalties import Zero
from discreet.problem.problem import Problem
from discreet.scaling.second_moment import Metric
from discreet.solvers.newton.descent import gradient_norms, gradient_sum, root_curvatures
from discreet.solvers.newton.inference import NewtonInference, gradient_moment
from discreet.testing import check_solver
from tests.inference_tools import fitted, labels_table, linear_table
from tests.neighbours import CASE, scaled_neighbours, some_weights

LOSSES = st.sampled_from([Squared(), Logistic()])
CLIPS = st.sampled_from([1e-3, 0.5, 3.0, 1e4])


def some_metric(columns, seed):
    rng = np.random.default_rng(seed)
    vectors = np.linalg.qr(rng.standard_normal((columns, columns)))[0]
    return Metric(10.0 ** rng.uniform(-2.0, 2.0, columns), vectors)


def frobenius(matrix):
    return float(np.linalg.norm(matrix))


@settings(max_examples=200, deadline=None)
@given(**CASE, loss=LOSSES, clip=CLIPS)
def test_the_second_moment_of_the_gradients_moves_by_at_most_its_sensitivity(
    relation, X, weight, row, at, seed, loss, clip
):
    sums = []
    for scaled in scaled_neighbours(relation, loss, X, weight, row, at, seed, "C"):
        w, metric = some_weights(scaled, seed), some_metric(scaled.columns, seed)
        part = partial(gradient_moment, w=w, metric=metric, clip=clip, label_free=loss.classification, table_rows=6)
        sums.append(scaled.sum(part))
    assert all(np.isfinite(each).all() for each in sums)
    claimed = mechanisms.outer_products(relation, sums[0].shape[0]) * clip**2
    assert frobenius(sums[0] - sums[1]) <= claimed.l2 * (1 + 1e-6)


@settings(max_examples=200, deadline=None)
@given(**CASE, clip=CLIPS)
def test_label_free_gradients_move_by_at_most_their_sensitivity_in_the_metric(relation, X, weight, row, at, seed, clip):
    sums = []
    for scaled in scaled_neighbours(relation, Logistic(), X, weight, row, at, seed, "C"):
        w, metric = some_weights(scaled, seed), some_metric(scaled.columns, seed)
        total = scaled.sum(partial(gradient_sum, w=w, metric=metric, clip=clip, step=0.0, label_free=True))
        sums.append(metric.whiten(total))
    claimed = mechanisms.clipped_sum(relation) * clip
    assert np.linalg.norm(sums[0] - sums[1]) <= claimed.l2 * (1 + 1e-6)


def block_of(loss, X, y):
    """The one block of a table in the scaled columns of the neighbours' tests."""
    scaled = scaled_neighbours(Relation.REPLACE, loss, X, np.ones(6), X[0], 0, 0, "C")[0]
    return next(iter(scaled.blocks())), scaled


def test_label_free_norms_do_not_depend_on_the_label_and_are_at_least_the_gradients():
    X = np.random.default_rng(0).normal(size=(6, 3))
    block, scaled = block_of(Logistic(), X, None)
    w, metric = some_weights(scaled, 3), some_metric(scaled.columns, 1)
    other = replace(block, y=-block.y, kept={})
    free = [gradient_norms(each, w, metric, True) for each in (block, other)]
    own = [gradient_norms(each, w, metric) for each in (block, other)]
    np.testing.assert_allclose(free[0], free[1])
    np.testing.assert_allclose(free[0], np.maximum(own[0], own[1]))
    assert not np.allclose(own[0], own[1])  # the other arm
    roots = root_curvatures(block, w, metric, 0.3, True)
    assert ((roots >= 0.0) & (roots <= 1.0)).all()


def test_long_rows_add_as_much_as_the_bound_and_would_add_far_more():
    """Rows with gradients beyond the threshold, one by one; the other arm does not clip."""
    for direction in range(2):
        X = 1e3 * np.eye(4)[[direction]].repeat(6, axis=0)[:, :3]
        block, scaled = block_of(Logistic(), X, None)
        metric, w = Metric(np.ones(scaled.columns), np.eye(scaled.columns)), np.zeros(scaled.columns)
        one = block.some(np.array([0]))
        assert frobenius(gradient_moment(one, w, metric, 0.5, True, 6)) == pytest.approx(0.25, rel=1e-4)
        assert frobenius(gradient_moment(one, w, metric, math.inf, True, 6)) > 10.0


@pytest.mark.slow
@pytest.mark.parametrize("loss", [Squared(), Logistic()])
def test_the_solver_keeps_all_laws_of_solvers(loss):
    results = check_solver(NewtonInference, problems=[Problem(loss, Zero())], n=3_000, columns=3)
    assert {result.status for result in results} <= {"passed", "skipped"}


@pytest.mark.parametrize("kind", [LinearRegression, LogisticRegression])
@pytest.mark.parametrize("relation", list(Relation))
def test_the_event_holds_every_release_and_fits_the_budget(kind, relation):
    given = {} if kind is LinearRegression else {"classes": [0, 1]}
    rows = {"public_n": 5_000} if relation is Relation.ADD_REMOVE else {}
    plan = kind(inference=True, relation=relation, **given, **rows).plan(5_000, 3)
    assert sum(plan.mechanism.shares) == pytest.approx(1.0)
    assert accounting.epsilon_of(plan.event, plan.guarantee.delta, relation) <= 1.0 + 1e-9
    last = plan.releases[-1]
    assert last.what == "second-moment matrix of the gradients"
    assert sum(release.share for release in plan.releases) == pytest.approx(1.0, abs=0.01)
    without = replace(plan.mechanism, shares=plan.mechanism.shares[:-1])
    assert without.event != plan.mechanism.event  # the event would change if the last release were forgotten


def test_the_planned_releases_are_the_ones_that_are_made(monkeypatch):
    """Every planned release draws its noise once: counted where noise is drawn."""
    made = []
    for name in ("release", "grid"):
        original = getattr(mechanisms.Gaussian, name)

        def counted(self, *args, _original=original, _name=name, **kwargs):
            made.append(_name)
            return _original(self, *args, **kwargs)

        monkeypatch.setattr(mechanisms.Gaussian, name, counted)
    X, y = labels_table(5_000, 0)
    plan = fitted(X, y, LogisticRegression, random_state=0, bounds=(-5.0, 5.0)).plan_
    closer = ("location of columns far from 0", "closer histograms of these")  # no column is far
    planned = sum(release.times for release in plan.releases if not release.what.endswith(closer))
    assert made.count("grid") == planned  # `release` draws through `grid`, and so do matrices and gradients


def test_the_ledger_books_the_whole_budget_once(tmp_path):
    ledger = Ledger(f"sqlite:///{tmp_path / 'budget.db'}")
    ledger.open("table", 2.0, 1e-5)
    X, y = linear_table(5_000, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = LinearRegression(inference=True, delta=1e-5, ledger=ledger, dataset="table").fit(X, y)
    assert model.inference_.valid
    assert len(ledger.entries("table")) == 1
    assert 0.9 < ledger.spent("table") <= 1.0 + 1e-9
    before = ledger.spent("table")
    str(model.inference_), model.summary(), model.inference_.get_prediction(X[:3])
    assert ledger.spent("table") == before


@pytest.mark.filterwarnings("ignore::discreet.UtilityWarning")
@pytest.mark.parametrize("value", [1e308, -1.7e308, 5e-324])
@pytest.mark.parametrize("kind", [LinearRegression, LogisticRegression])
def test_hostile_rows_leave_finite_intervals(kind, value):
    """One row of extreme entries moves nothing by more than its bound: the intervals stay where they were."""
    X, y = linear_table(5_000, 2) if kind is LinearRegression else labels_table(5_000, 2)
    clean = fitted(X, y, kind, random_state=1).inference_
    X, y = X.copy(), y.copy()
    X[7] = value
    if kind is LinearRegression:
        y[7] = value
    found = fitted(X, y, kind, random_state=1).inference_
    assert found.valid
    assert np.isfinite(found.conf_int()).all()
    assert (np.abs(found.params - clean.params) < 3.0 * clean.bse).all()


@pytest.mark.filterwarnings("ignore::discreet.UtilityWarning")
@pytest.mark.parametrize("kind", [LinearRegression, LogisticRegression])
def test_an_enormous_row_among_tiny_entries_overflows_nothing(kind):
    """Scales of 1e-70, and one row that open ranges do not clip as learned ones would."""
    X, y = linear_table(5_000, 5) if kind is LinearRegression else labels_table(5_000, 5)
    X = 1e-70 * X
    X[3] = 1e308
    found = fitted(X, y, kind, random_state=2).inference_
    assert np.isfinite(found.cov_params()).all() == found.valid


@pytest.mark.parametrize("largest", [1e60, 1e140])
def test_rows_of_infinite_size_add_nothing_to_the_second_moment(largest):
    block, scaled = block_of(Squared(), np.zeros((6, 3)), None)
    w, metric = np.full(scaled.columns, largest), Metric(np.full(scaled.columns, 1e-250), np.eye(scaled.columns))
    total = gradient_moment(block, w, metric, 1.0, False, 6)
    assert np.isfinite(total).all()


def test_open_ranges_are_those_that_were_declared():
    X, y = linear_table(5_000, 3)
    bounds = {"bounds": ([-1.0, -np.inf, -3.0], [1.0, np.inf, np.inf])}
    model = fitted(X, y, random_state=2, **bounds)
    assert model.ranges_[0][0] == -1.0
    assert model.ranges_[1][0] == 1.0
    assert model.ranges_[0][2] == -3.0
    assert (model.ranges_[1][1], model.ranges_[0][1]) == (pytest.approx(1e60, rel=9.0), pytest.approx(-1e60, rel=9.0))
    assert math.isfinite(model.inference_.params[0])


def test_estimates_do_not_depend_on_the_public_estimate_of_the_number_of_rows():
    """Without noise: sums divided by another number give the same estimates and errors."""
    X, y = linear_table(4_000, 4)
    settings_ = {"relation": "add_remove", "epsilon": 1e6, "delta": 1e-6, "random_state": 3}
    one, other = (fitted(X, y, public_n=n, **settings_).inference_ for n in (4_000, 5_000))
    np.testing.assert_allclose(one.params, other.params, atol=2e-3)
    np.testing.assert_allclose(one.bse, other.bse, rtol=0.03)
