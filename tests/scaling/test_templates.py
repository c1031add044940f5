"""Soft scales: how far counts move, which template fits, and that a column that is not seen fades."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from discreet.data.public import Public
from discreet.data.rows import Data
from discreet.privacy import mechanisms
from discreet.privacy.budget import Budget
from discreet.privacy.random.generator import seeded_generator
from discreet.privacy.relation import Relation
from discreet.problem.losses import Squared
from discreet.scaling import templates
from discreet.scaling.histograms import signed_exponent_counts
from discreet.scaling.learn import learn_scaling
from discreet.scaling.plan import plan_scaling
from discreet.scaling.templates import REACH, fitted
from tests.neighbours import CASE, P, neighbours, targets


@settings(max_examples=100)
@given(**CASE)
def test_signed_counts_of_some_columns_move_by_at_most_their_sensitivity(relation, X, weight, row, at, seed):
    first, second = neighbours(relation, X, targets(Squared(), seed), weight, row, at)
    for columns in ([0], [P - 1, 0], list(range(P))):
        move = signed_exponent_counts(first, columns) - signed_exponent_counts(second, columns)
        claimed = mechanisms.one_hot_counts(relation, len(columns))
        assert np.linalg.norm(move) <= claimed.l2 * (1 + 1e-12)
        assert np.abs(move).sum() <= claimed.l1 * (1 + 1e-12)


def test_the_claim_is_tight():
    """The planted fault would be sqrt(columns) under `replace`: a row of other signs moves every column by sqrt 2."""
    first, second = (Data(np.full((1, 4), value), np.zeros(1)) for value in (3.0, -3.0))
    move = np.linalg.norm(signed_exponent_counts(first) - signed_exponent_counts(second))
    assert move == pytest.approx(mechanisms.one_hot_counts(Relation.REPLACE, 4).l2)


def test_templates_are_laws():
    found = templates.templates()
    np.testing.assert_allclose(found.shares.sum(axis=1), 1.0, atol=1e-9)
    assert (found.shares >= -1e-12).all()
    assert found.prior.sum() == pytest.approx(1.0)
    assert (found.width > 0.0).all()


COLUMNS = {
    "normal": (lambda rng, n: 40.0 * rng.standard_normal(n), 0.0, 40.0),
    "indicator": (lambda rng, n: (rng.random(n) < 0.3).astype(float), 0.3, 0.46),
    "years": (lambda rng, n: rng.uniform(1_950.0, 2_020.0, n), 1_985.0, None),
    "incomes": (lambda rng, n: 3e4 * np.exp(0.6 * rng.standard_normal(n)), 3.6e4, 2.2e4),
    "negative": (lambda rng, n: -50.0 + 10.0 * rng.standard_normal(n), -50.0, None),
}


@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize("noise", [0.0, 0.15])
def test_columns_get_their_centre_and_width(name, noise):
    draw, centre, width = COLUMNS[name]
    rng = np.random.default_rng(0)
    values = draw(rng, 4_000)
    counts = signed_exponent_counts(Data(values[:, None], np.zeros(4_000))) / 4_000
    found = fitted(counts + noise * rng.standard_normal(counts.shape), noise)
    assert found.centre[0] == pytest.approx(centre, abs=0.8 * (width or 0.5 * abs(centre)))
    if width is not None:
        assert 0.4 * width < found.width[0] < 2.5 * width
    clipped = np.abs(values - found.centre[0]) > REACH * found.width[0]
    assert clipped.mean() < 0.1
    assert found.trust[0] > 0.3


def test_a_column_that_is_not_seen_fades():
    rng = np.random.default_rng(0)
    counts = signed_exponent_counts(Data(rng.standard_normal((500, 3)), np.zeros(500))) / 500
    seen, hidden = (fitted(counts + noise * rng.standard_normal(counts.shape), noise) for noise in (0.01, 5.0))
    assert seen.trust.min() > 0.9
    assert hidden.trust.max() < 0.6 * seen.trust.min()


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize("declared", [0, 2])
def test_hostile_rows_leave_finite_scales_inside_what_is_declared(relation, declared):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((200, 6))
    X[0], X[1], X[2] = 1e308, -5e-324, np.array([1e30, -1e-310, 0.0, -0.0, 1e-308, -1e308])
    low, high = np.full(6, -np.inf), np.full(6, np.inf)
    low[:declared], high[:declared] = -3.0, 3.0
    low[5] = 0.0
    public = Public(200, 6, relation, low=low, high=high)
    plan = plan_scaling(public, Budget(0.5, 1e-5), None, True, False)
    assert plan.method == "soft"
    scaling = learn_scaling(plan, Data(X, np.zeros(200)), public, seeded_generator(0))
    matrix = scaling.matrix(Data(X, np.zeros(200)), "C", False)
    assert np.isfinite(matrix).all()
    assert np.abs(matrix[:, declared:5]).max() < 2.0 * REACH
    assert (scaling.low >= low).all()
    assert (scaling.high <= high).all()
