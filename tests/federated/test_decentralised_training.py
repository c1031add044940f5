"""Training on a graph: converges without noise, is planned without rows, and reproduces under a seed."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from discreet import Budget
from discreet._common.exceptions import InsecureRandomnessWarning
from discreet.federated.decentralised import plan_network, train_network
from discreet.federated.decentralised.training import ClippedRows
from discreet.federated.local_problem import LocalProblem
from discreet.privacy.accounting import gaussian_mu
from discreet.privacy.random.generator import seeded_generator
from discreet.problem import L2, Logistic, Problem
from tests.network_views import RING, SMALL

KITE = SMALL["kite"]
PROBLEM = Problem(Logistic(), L2(0.1), fit_intercept=False)
BOUNDS = (-1.0, 1.0)


def rows_of_nodes(size, rows=30, columns=3, seed=0):
    """Nodes that differ: each has columns around a place of its own."""
    rng = np.random.default_rng(seed)
    data = []
    for _ in range(size):
        X = np.clip(rng.normal(0.3 * rng.normal(size=columns), 0.4, (rows, columns)), -1.0, 1.0)
        data.append((X, np.where(rng.random(rows) < 1.0 / (1.0 + np.exp(-X @ [3.0, -2.0, 1.0])), 1.0, -1.0)))
    return data


def gradient(data, weights):
    """Of the mean over nodes of the mean loss of their rows, and the penalty."""
    parts = [-(X.T @ (y / (1.0 + np.exp(y * (X @ weights))))) / len(y) for X, y in data]
    return np.mean(parts, axis=0) + 0.1 * weights


@pytest.mark.parametrize("method", ["tree", "gossip", "admm-walk"])
def test_admm_converges_to_the_optimum_without_noise(method):
    data = rows_of_nodes(KITE.size)
    more = {"gossip_steps": 60} if method == "gossip" else {}
    plan = plan_network(
        PROBLEM, 3, BOUNDS, KITE, method=method, epsilon=math.inf, rounds=80, gamma=4.0, clip=50.0, **more
    )
    result = train_network(plan, data)
    assert np.linalg.norm(gradient(data, result.models[-1])) < 1e-4
    assert np.linalg.norm(gradient(data, result.models[0])) > 1e-2  # not solved from the start


def test_the_token_with_gradient_steps_comes_near_without_noise():
    """Steps of one node at a time with a constant length stay around the optimum."""
    data = rows_of_nodes(KITE.size)
    plan = plan_network(PROBLEM, 3, BOUNDS, KITE, method="walk", epsilon=math.inf, rounds=200, gamma=0.1, clip=50.0)
    result = train_network(plan, data)
    average = result.models[len(result.models) // 2 :].mean(axis=0)
    assert np.linalg.norm(gradient(data, average)) < 0.03 < np.linalg.norm(gradient(data, np.zeros(3)))


@pytest.mark.parametrize("method", ["tree", "gossip", "walk", "admm-walk"])
def test_a_seed_reproduces_a_run_and_only_that_plan(method):
    data = rows_of_nodes(RING.size)
    plan = plan_network(PROBLEM, 3, BOUNDS, RING, method=method, rounds=3)
    other = plan_network(PROBLEM, 3, BOUNDS, RING, method=method, rounds=3, epsilon=2.0)

    def trained(one, seed):
        with pytest.warns(InsecureRandomnessWarning):
            return train_network(one, data, random_state=seed).weights

    first = trained(plan, 1)
    assert (first == trained(plan, 1)).all()
    assert (first != trained(plan, 2)).any()
    noise = {one.digest for one in (plan, other)}
    assert len(noise) == 2


def test_noise_of_messages_and_values_is_what_was_accounted():
    """The spread of what the speaker sends, over many columns, is that of the plan; half of it would be found.

    The relative error of a standard deviation over 4,000 columns is 1.1 %; 5 % is 4.5 times as much.
    """
    plan = plan_network(Problem(Logistic(), fit_intercept=False), 4_000, BOUNDS, KITE, method="gossip", rounds=1)
    silent = [(np.zeros((1, 4_000)), np.ones(1)) for _ in range(KITE.size)]
    sent = train_network(plan, silent, random_state=seeded_generator(3)).models[0] / -plan.federated.gamma
    planned = plan.federated.grid.scale * math.sqrt(plan.protocol.variance)
    assert sent.std() == pytest.approx(planned, rel=0.05)
    assert sent.std() != pytest.approx(0.5 * planned, rel=0.05)
    assert plan.message_grid.scale == pytest.approx(plan.protocol.message_noise * plan.federated.grid.scale)
    assert plan.message_grid.step <= 2.0**-29 * plan.message_grid.scale


def models_tell(plan, runs=150):
    """Whole runs on two states of a node's rows: the distance of the models, in standard deviations.

    Each node has one row whose gradient is far above the clip, so that the node's data move it by twice the clip.
    """
    rng, found = seeded_generator(8), []
    for label in (1.0, -1.0):
        data = [(np.ones((1, 1)), np.array([label if node == 0 else 1.0])) for node in range(KITE.size)]
        found.append([train_network(plan, data, random_state=one).models[0, 0] for one in rng.spawn(runs)])
    first, second = map(np.array, found)
    return abs(first.mean() - second.mean()) / math.sqrt(0.5 * (first.var() + second.var()))


@pytest.mark.parametrize("method", ["tree", "gossip"])
@pytest.mark.slow
def test_whole_runs_attain_the_loss_towards_someone_outside(method):
    """A false alarm once in 10^4 runs: 4 standard errors of a distance between two means of 150; the seed is fixed."""
    problem = Problem(Logistic(), fit_intercept=False)
    plan, half = (
        plan_network(problem, 1, BOUNDS, KITE, method=method, epsilon=Budget.gdp(mu), rounds=1, gamma=0.1, clip=0.01)
        for mu in (3.0, 6.0)
    )
    error = 4.0 * math.sqrt(2.0 / 150 + 1.5**2 / 300)
    assert abs(models_tell(plan) - plan.losses.reader[0]) < error
    assert models_tell(half) > plan.losses.reader[0] + error  # with half the noise


def test_the_target_keeps_the_budget():
    budget = Budget(1.0, 1e-3)
    for method in ("tree", "gossip", "walk", "admm-walk"):
        local, mean, most = (
            plan_network(PROBLEM, 3, BOUNDS, KITE, method=method, epsilon=budget, target=target)
            for target in ("local", "mean", "max")
        )
        assert local.losses.local.max() == pytest.approx(gaussian_mu(1.0, 1e-3), rel=1e-6)
        assert 0.97 <= mean.losses.epsilon(1e-3)[~np.eye(6, dtype=bool)].mean() <= 1.0
        assert most.losses.mu.max() == pytest.approx(gaussian_mu(1.0, 1e-3), rel=1e-6)
        assert mean.federated.multiplier <= most.federated.multiplier <= local.federated.multiplier * (1.0 + 1e-6)
        for plan in (local, mean, most):
            assert (plan.losses.mu <= plan.losses.local[:, None]).all()


def test_a_token_of_admm_is_certified_by_the_local_bound_only():
    plan = plan_network(PROBLEM, 3, BOUNDS, KITE, method="admm-walk")
    pairs = plan.losses.mu + np.diag(plan.losses.local)
    assert (pairs == plan.losses.local[:, None]).all()
    visited = plan.protocol.visits > 0
    assert (plan.claimed[visited] < plan.losses.local[visited]).all()
    assert "NOT certified" in str(plan)
    assert plan_network(PROBLEM, 3, BOUNDS, KITE, method="walk").claimed is None


def test_steps_of_the_token_are_non_expansive():
    """Clipping rows keeps it, clipping the gradient of a node does not: the certificate needs the former."""
    rng = np.random.default_rng(1)
    X, y = rng.uniform(-1.0, 1.0, (20, 3)), np.sign(rng.normal(size=20))
    longest = 2.0 / (0.25 * 3)
    clipped = ClippedRows(X, y, None, Logistic(), 20, 1.0, 0.3)
    largest = 0.0
    for _ in range(500):
        a, b = 5.0 * rng.normal(size=(2, 3))
        moved = a - b - longest * (clipped.gradient_at(a) - clipped.gradient_at(b))
        largest = max(largest, np.linalg.norm(moved) / np.linalg.norm(a - b))
        assert np.linalg.norm(clipped.gradient_at(a)) <= 0.3
    assert largest <= 1.0 + 1e-12


def expands(step, curvature, clip):
    """How much farther apart two points get by a step along the clipped gradient of a quadratic."""

    def moved(w):
        found = curvature * w
        return w - step * found * min(1.0, clip / np.linalg.norm(found))

    rng = np.random.default_rng(2)
    pairs = [(w, w + 1e-3 * rng.normal(size=2)) for w in 3.0 * rng.normal(size=(2_000, 2))]
    return max(np.linalg.norm(moved(a) - moved(b)) / np.linalg.norm(a - b) for a, b in pairs)


def test_clipping_the_gradient_of_a_node_would_expand():
    assert expands(2.0, np.array([1.0, 0.05]), 0.1) > 1.01
    assert expands(2.0, np.array([1.0, 0.05]), 1e9) <= 1.0 + 1e-9


def test_the_step_of_a_token_is_limited():
    with pytest.raises(ValueError, match="non-expansive"):
        plan_network(PROBLEM, 3, BOUNDS, KITE, method="walk", gamma=2.7)
    assert plan_network(PROBLEM, 3, BOUNDS, KITE, method="walk", gamma=2.6).federated.gamma == 2.6


def test_a_plan_is_made_without_rows_and_says_what_it_costs():
    plan = plan_network(PROBLEM, 3, BOUNDS, KITE, method="gossip", target="mean")
    text = str(plan)
    assert "mean over pairs" in text
    assert f"{plan.messages:,}" in text
    content = plan.to_dict()
    assert content["max_epsilon"] >= content["mean_epsilon"]
    assert content["epsilon"][0][0] == 0.0
    without = plan_network(PROBLEM, 3, BOUNDS, KITE, epsilon=math.inf)
    assert np.isinf(without.losses.pairs).all()
    assert without.to_dict()["mean_epsilon"] == "inf"


def test_too_little_noise_for_the_grid_leaves_the_local_bound():
    plan = plan_network(PROBLEM, 3, BOUNDS, KITE, epsilon=Budget.gdp(1_000.0))
    assert plan.federated.multiplier < 1.0 / 64.0
    assert (plan.losses.mu + np.diag(plan.losses.local) == plan.losses.local[:, None]).all()


def test_plans_that_do_not_fit_together_are_refused():
    """A plan put together by hand cannot claim the losses of another protocol, or of fewer releases."""
    tree = plan_network(PROBLEM, 3, BOUNDS, KITE, rounds=10)
    walk = plan_network(PROBLEM, 3, BOUNDS, KITE, method="walk", rounds=11)
    with pytest.raises(ValueError, match="needs a protocol of class Gossip"):
        replace(tree, method="gossip")
    with pytest.raises(ValueError, match="each node of the network"):
        replace(tree, protocol=plan_network(PROBLEM, 3, BOUNDS, RING).protocol)
    with pytest.raises(ValueError, match="pays for 10"):
        replace(walk, federated=tree.federated)
    longer = plan_network(PROBLEM, 3, BOUNDS, KITE, method="admm-walk", gamma=3.0)
    with pytest.raises(ValueError, match="non-expansive"):
        replace(longer, method="walk")


def test_wrong_requests_are_refused():
    with pytest.raises(ValueError, match="rows for 2"):
        train_network(plan_network(PROBLEM, 3, BOUNDS, KITE), rows_of_nodes(2))
    with pytest.raises(ValueError, match="method"):
        plan_network(PROBLEM, 3, BOUNDS, KITE, method="rumour")
    with pytest.raises(ValueError, match="delta > 0"):
        plan_network(PROBLEM, 3, BOUNDS, KITE, epsilon=1.0, delta=0.0)


def test_a_row_clip_is_what_the_sensitivity_rests_on():
    """Without it the gradient of a node would exceed the clip that its noise is made for."""
    X, y = np.ones((4, 3)), np.ones(4)
    problem = LocalProblem(X, -y, None, Logistic(), 4, 1.0)
    far = np.full(3, 10.0)
    assert np.linalg.norm(ClippedRows.of(problem, 0.5).gradient_at(far)) <= 0.5
    assert np.linalg.norm(ClippedRows.of(problem, 1e9).gradient_at(far)) > 1.5
