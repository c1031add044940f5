"""Plans of training on a graph that are forged or put together by hand, and graphs of odd kinds."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from discreet import Budget
from discreet.federated.decentralised import Gossip, NetworkSchedule, SpanningTree, Walk, plan_gossip, plan_network
from discreet.federated.decentralised.network import Network
from discreet.federated.decentralised.random_walk import BLOCK
from discreet.federated.decentralised.training import ClippedRows
from discreet.problem import L2, Logistic, Problem
from tests.network_views import RING, SMALL, network

PROBLEM = Problem(Logistic(), L2(0.1), fit_intercept=False)
BOUNDS = (-1.0, 1.0)


@pytest.mark.parametrize("setting", [{"model": "central"}, {"unit": "record"}, {"per_round": 2}, {"participations": 9}])
def test_settings_that_would_change_who_is_protected_are_refused(setting):
    """A plan for the central model has noise for a server that adds up; here all messages are seen."""
    with pytest.raises(TypeError, match=next(iter(setting))):
        plan_network(PROBLEM, 3, BOUNDS, RING, epsilon=Budget(1.0, 1e-5), **setting)


@pytest.mark.parametrize("target", ["local", "mean", "max"])
def test_a_plan_whose_noise_does_not_keep_its_budget_is_refused(target):
    plan = plan_network(PROBLEM, 3, BOUNDS, RING, epsilon=Budget(1.0, 1e-5), target=target)
    weak = replace(plan.federated, budget=Budget(100.0, 1e-5), multiplier=0.9 * plan.federated.multiplier)
    with pytest.raises(ValueError, match="too little for its budget"):
        NetworkSchedule(weak, "tree", plan.protocol, target, plan.budget)


@pytest.mark.parametrize("method", ["gossip", "walk", "tree"])
def test_the_mean_over_the_pairs_keeps_the_budget(method):
    plan = plan_network(PROBLEM, 3, BOUNDS, SMALL["kite"], method=method, epsilon=Budget(2.0, 1e-5), target="mean")
    epsilons = plan.losses.epsilon(1e-5)[~np.eye(6, dtype=bool)]
    assert 0.9 < epsilons.mean() <= 2.0


@pytest.mark.parametrize("target", ["mean", "max"])
@pytest.mark.parametrize("method", ["gossip", "walk", "tree"])
def test_a_large_budget_is_kept_although_only_the_local_loss_is_stated_for_little_noise(method, target):
    plan = plan_network(PROBLEM, 3, BOUNDS, SMALL["kite"], method=method, epsilon=Budget.gdp(500.0), target=target)
    assert getattr(plan.losses.pairs, target)() <= 500.0


@pytest.mark.parametrize("mixing", [(1.0, math.nan), (1.0, 5.0), (1.0, 0.5), (1.0, math.inf)])
def test_gossip_with_mixing_that_could_grow_is_refused(mixing):
    with pytest.raises(ValueError, match="between 1 and 2"):
        Gossip(RING, mixing, 0.1, 0)


def test_nodes_outside_of_the_network_are_refused():
    for node in (-1, 5):
        with pytest.raises(ValueError, match="speaker"):
            Gossip(RING, (1.0,), 0.1, node)
        with pytest.raises(ValueError, match="root"):
            SpanningTree(RING, node)
        with pytest.raises(ValueError, match="path"):
            Walk(RING, (node,))


def test_the_bound_on_rounding_knows_how_large_messages_become():
    """Accelerated gossip with much message noise on a long path: its noise adds up far beyond that of a value."""
    path = network([(i, i + 1) for i in range(63)], 64)
    gossip = plan_gossip(path, message_noise=1.0)
    rng = np.random.default_rng(0)
    largest, before, now = 0.0, np.zeros((64, 200)), 64.0 + rng.normal(size=(64, 200))
    for a in gossip.mixing:
        before, now = now, a * (path.weights @ now) + (1.0 - a) * before + rng.normal(size=now.shape)
        largest = max(largest, np.abs(now).max())
    assert largest < gossip.largest_message
    assert gossip.largest_message > 64.0 * 8.0 + 12.0 * 20.0  # the noise of a value alone would be 12


def test_a_token_on_a_grid_that_is_coarse_against_its_noise_has_the_local_loss():
    """A step so short that the grid cannot follow."""
    plan = plan_network(PROBLEM, 3, BOUNDS, RING, method="walk", gamma=1e-290)
    assert plan.token_grid.step > 2.0**-29 * plan.token_grid.scale
    pairs = plan.losses.mu[~np.eye(5, dtype=bool)]
    np.testing.assert_array_equal(pairs, np.repeat(plan.losses.local, 4))


def test_the_gradient_of_a_token_is_exact_to_a_few_digits_for_any_number_of_rows():
    """All terms have one sign and the same size: plain addition would lose a digit for every 10 rows at worst."""
    n = 40 * BLOCK + 3
    rows = ClippedRows(np.full((n, 1), 0.1), np.ones(n), None, Logistic(), n, 1.0, 0.07)
    exact = math.fsum([-0.5 * 0.1] * n) / n
    assert rows.gradient_at(np.zeros(1))[0] == pytest.approx(exact, rel=1e-15)
    part = ClippedRows(np.full((5, 1), 0.1), np.ones(5), None, Logistic(), 5, 1.0, 0.07)
    np.testing.assert_array_equal(part.gradient_at(np.zeros(1)), part._gradient_at(np.zeros(1)))


def test_graphs_of_networkx_of_all_kinds():
    nx = pytest.importorskip("networkx")
    twice = nx.MultiGraph([("a", "b"), ("a", "b"), ("b", 3.5), (3.5, 3.5)])
    assert Network.from_networkx(twice).neighbours == ((1,), (0, 2), (1,))
    assert Network.from_networkx(nx.MultiDiGraph(twice)).names == ("a", "b", "3.5")
    with pytest.raises(ValueError, match="not connected"):
        Network.from_networkx(nx.Graph([(0, 1), (2, 3)]))
    with pytest.raises(ValueError, match="name of its own"):
        Network.from_networkx(nx.Graph([(1, "1")]))
