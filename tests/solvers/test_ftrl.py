"""What FTRL releases, the laws behind docs/guarantees/ftrl.md, and an audit of the solver.

False alarms: the statistical tests are seeded, and their limits are 6 standard errors or a confidence of 1 - 1e-6,
so that a correct library fails this file with probability below 1e-5.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.audit.lower_bound import epsilon_lower_bound
from discreet.data.public import Public
from discreet.data.rows import Data
from discreet.privacy import mechanisms
from discreet.privacy.accounting import mu_of
from discreet.privacy.budget import Budget
from discreet.privacy.mechanisms.aggregation import TreeSums, row_norm, running_sums
from discreet.privacy.random.generator import seeded_generator
from discreet.privacy.relation import Relation
from discreet.problem.column_scaling import identity_scaling
from discreet.problem.losses import Logistic
from discreet.problem.problem import Problem
from discreet.problem.scaled_problem import scale_problem
from discreet.solvers import FTRL
from discreet.solvers._shared.descents import GrowingTailAverage
from discreet.solvers.ftrl.solver import Leader, LeafLoop
from tests.running_sums import matrix, weights_on_draws

KINDS = ["tree", "square-root"]
PROBLEM = Problem(Logistic(), fit_intercept=False)


def released(scaled, plan, rng):
    """The exact sums that a run would release, in the order of their release."""
    solver = plan.solver
    loop = LeafLoop(solver, plan, scaled, lambda _: rng)
    seen = []
    for _ in solver.follow(loop, rng):
        seen.append(loop.leader.latest * plan.settings.leaf_rows)
    return np.array(seen)


@settings(max_examples=60)
@given(
    kind=st.sampled_from(KINDS),
    relation=st.sampled_from(list(Relation)),
    rows=st.integers(1, 40),
    leaves=st.integers(1, 40),
    seed=st.integers(0, 10_000),
    hostile=st.sampled_from([0.5, 3.0, 1e300, -1e300, 5e-324]),
)
def test_everything_released_moves_by_at_most_mu_in_units_of_its_noise(kind, relation, rows, leaves, seed, hostile):
    """Steps of length zero keep the weights, hence the other gradients, as under a fixed past."""
    rng = np.random.default_rng(seed)
    solver = FTRL(leaves=leaves, epochs=1, aggregation=kind, clip=0.3, step=1e-300, scale_share=0.0)
    X, y = 3.0 * rng.standard_normal((rows, 2)), np.where(rng.random(rows) < 0.5, -1.0, 1.0)
    at = int(rng.integers(rows))
    public = Public(rows, 2, relation, low=np.full(2, -1e100), high=np.full(2, 1e100))
    plan = solver.plan(PROBLEM, public, Budget(1.0, 1e-3))
    noiseless = replace(plan, mechanism=replace(plan.mechanism, multiplier=0.0))
    other, weight = X.copy(), np.ones(rows)
    other[at], y_other = hostile, y.copy()
    if relation is Relation.REPLACE:
        y_other[at] = -y[at]
    else:
        other, weight[at] = X, 0.0  # a null row stands for a missing one: its place is its own draw
    tables = Data(X, y), Data(other, y_other, weight)
    scaled = [scale_problem(PROBLEM, data, identity_scaling(2), rows, "C") for data in tables]
    sums = [released(f, noiseless, seeded_generator(seed)) for f in scaled]
    change = np.diff(np.vstack([np.zeros((1, 2)), sums[0] - sums[1]]), axis=0)  # per leaf
    moved = matrix(kind, plan.settings.leaves) @ change
    assert change.shape[0] == plan.mechanism.leaves
    deviation = plan.mechanism.deviation(mechanisms.clipped_sum(relation) * 0.3)
    assert (moved**2).sum() / deviation**2 <= mu_of(plan.event, relation) ** 2 * (1 + 1e-9)


def test_the_bound_is_attained_by_the_first_leaf_and_by_no_less_noise():
    for kind in KINDS:
        for leaves in (1, 2, 7, 8):
            column = matrix(kind, leaves)[:, 0]
            assert np.linalg.norm(column) == pytest.approx(row_norm(kind, leaves), rel=1e-12)


def test_under_add_remove_the_other_rows_keep_their_leaves():
    """With the same coins, one more row at the end moves no other; a permutation would move nearly all."""

    def leaf_of_rows(relation, rows):
        solver = FTRL(leaves=8)
        plan = solver.plan(PROBLEM, Public(64, 2, relation), Budget(1.0, 1e-3))
        parts = solver._parts(plan, rows, seeded_generator(3))
        assert sorted(np.concatenate(parts)) == list(range(rows))
        return {row: leaf for leaf, part in enumerate(parts) for row in part}

    for relation, stays in ((Relation.ADD_REMOVE, True), (Relation.REPLACE, False)):
        fewer, more = (leaf_of_rows(relation, rows) for rows in (64, 65))
        assert all(more[row] == fewer[row] for row in fewer) == stays
    with pytest.raises(ValueError, match="shuffle=False"):
        FTRL(shuffle=False).plan(PROBLEM, Public(64, 2, Relation.ADD_REMOVE), Budget(1.0, 1e-3))


@pytest.mark.parametrize("relation", [Relation.REPLACE, Relation.ZERO_OUT])
@pytest.mark.parametrize("rows", [1, 2, 50, 64, 1000])
def test_every_row_is_in_one_leaf_of_every_pass(rows, relation):
    for shuffle in (True, False):
        solver = FTRL(leaves=32, shuffle=shuffle)
        plan = solver.plan(PROBLEM, Public(rows, 2, relation), Budget(1.0, 1e-3))
        parts = solver._parts(plan, rows, seeded_generator(0))
        assert sorted(np.concatenate(parts)) == list(range(rows))
        assert len(parts) == plan.settings.leaves <= 32


def test_passes_add_in_squares():
    plans = [FTRL(epochs=e).plan(PROBLEM, Public(500, 2), Budget.gdp(1.0)) for e in (1, 4)]
    assert plans[1].mechanism.multiplier == pytest.approx(2 * plans[0].mechanism.multiplier, rel=1e-6)


def test_the_latest_half_is_a_mean_of_the_latest_iterates():
    average = GrowingTailAverage(np.zeros(1))
    assert average.mean() == 0.0
    for t in range(1, 200):
        average.add(np.array([float(t)]))
        first = 1 if t == 1 else 1 << (t.bit_length() - 2)
        assert average.mean()[0] == pytest.approx(np.mean(np.arange(first, t + 1)))
        assert t == 1 or t / 2 <= t - first + 1


NO_NOISE = mechanisms.Gaussian(0.0).grid(mechanisms.Sensitivity(1.0, 1.0), 2)


def test_the_leader_without_noise_is_dual_averaging():
    leader = Leader(np.zeros(2), 0.5)
    g = np.random.default_rng(0).standard_normal((6, 2))
    for epoch in (g[:4], g[4:]):
        leader.begin(TreeSums(4, (2,)))
        for row in epoch:
            leader.follow(row, 2.0, NO_NOISE, None, lambda v, step: v / (1.0 + step))
    np.testing.assert_allclose(leader.w, -0.5 * g.sum(axis=0) / 2.0 / (1.0 + 0.5 * 6))


def audit_statistic(kind, table, noise, runs, stream):
    """The best test there is: the released sums, whitened and projected on the path of the first leaf."""
    solver = FTRL(leaves=4, epochs=1, aggregation=kind, shuffle=False, clip=0.25, step=1e-9, scale_share=0.0)
    public = Public(4, 1, Relation.REPLACE, low=-np.ones(1), high=np.ones(1))
    plan = solver.plan(PROBLEM, public, Budget(1.0, 0.1))
    plan = replace(plan, mechanism=replace(plan.mechanism, multiplier=noise * plan.mechanism.multiplier))
    scaled = scale_problem(PROBLEM, Data(table, np.ones(4)), identity_scaling(1), 4, "C")
    weights = weights_on_draws(running_sums(kind, 4, (8,)))
    path = np.linalg.solve(weights @ weights.T, np.ones(4))  # the row moves all four running sums alike
    return np.array([released(scaled, plan, stream).ravel() @ path for _ in range(runs)])


def audited(kind, noise):
    stream, X = seeded_generator(11), np.zeros((4, 1))
    X[0] = 1.0
    return epsilon_lower_bound(*(audit_statistic(kind, table, noise, 1_500, stream) for table in (X, -X)), 0.1)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.slow
def test_the_audit_accepts(kind):
    assert audited(kind, 1.0) <= 1.0


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.slow
def test_the_audit_rejects_half_the_noise(kind):
    assert audited(kind, 0.5) > 1.0


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"leaves": 0}, "leaves must be a positive"),
        ({"epochs": 1.5}, "epochs must be a whole"),
        ({"aggregation": "forest"}, "aggregation must be one of"),
    ],
)
def test_wrong_settings_are_refused_by_name(setting, message):
    with pytest.raises(ValueError, match=message):
        FTRL(**setting)
