"""The spanning tree and the token: what is seen of a node, against brute force and closed forms."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import isotonic_regression

from discreet.federated.decentralised.averaging import SpanningTree
from discreet.federated.decentralised.random_walk import Walk, plan_tour, plan_walk, spread
from tests.network_views import COMPLETE, PATH, SMALL, projection


def tree_rows(tree, observers):
    """What the observers of a tree are sent: the sums of their children's subtrees, and the total."""
    size = tree.network.size
    below = np.eye(size, dtype=int)
    for node in np.argsort(-tree.network.distances[tree.root]):
        if node != tree.root:
            below[tree.parents[node]] += below[node]
    rows = [below[c] for c in range(size) if c != tree.root and tree.parents[c] in observers and c not in observers]
    rows = np.array([*rows, below[tree.root]])
    # What an observer sent itself contains what it was sent; the sums that its children sent it are in the rows.
    rows[:, list(observers)] = 0
    return rows


@pytest.mark.parametrize("name", SMALL)
def test_the_loss_of_a_tree_is_the_projection(name):
    tree = SpanningTree(SMALL[name], root=1)
    for observers in ([0], [1], [2], [0, 2]):
        found = tree.seen_by(observers)
        for u in set(range(tree.network.size)) - set(observers):
            assert found[u] == pytest.approx(projection(tree_rows(tree, observers), u), rel=1e-9)
    assert tree.seen_by([]) == pytest.approx(1.0 / math.sqrt(tree.network.size))
    assert tree.seen_by(range(1, tree.network.size))[0] == 1.0


def test_a_tree_averages_exactly():
    tree = SpanningTree(SMALL["kite"], root=2)
    values = np.random.default_rng(0).integers(-1000, 1000, (6, 3)) / 64.0
    assert (tree.average(values, None, None) == values.sum(axis=0) / 6).all()


def exact_walk(path, size, observers, node, contraction, passing=()):
    """The exact loss where each step is z -> contraction * z + shift + noise: a linear Gaussian view."""
    steps = len(path)
    noise, shift, rows, shifts = np.zeros(steps), 0.0, [], []
    for t, here in enumerate(path):
        if here in observers:  # sees the token, and knows what it does with it
            rows, shifts = [*rows, noise.copy()], [*shifts, shift]
        if t in passing:
            continue
        noise, shift = contraction * noise, contraction * shift
        if here == node:
            shift += 1.0
        if here not in observers:
            noise[t] = 1.0
    rows, shifts = np.array([*rows, noise]), np.array([*shifts, shift])
    kept = np.abs(rows).sum(axis=1) > 0.0
    covariance = rows[kept] @ rows[kept].T
    return math.sqrt(max(0.0, shifts[kept] @ np.linalg.pinv(covariance, rcond=1e-12) @ shifts[kept]))


def test_the_loss_of_a_walk_is_never_below_the_exact_one():
    """Steps on quadratics of curvatures from 0 to 2 / step are linear, so that the truth is known."""
    attained = 0.0
    for seed in range(8):
        walk = (plan_tour if seed % 2 else plan_walk)(SMALL["kite"], passes=3, seed=seed)
        for v in range(6):
            bound = walk.seen_by([v])
            assert (bound <= walk.local + 1e-12).all()
            for u in set(range(6)) - {v}:
                exact = max(exact_walk(walk.path, 6, {v}, u, c, walk.passing) for c in (1.0, 0.7, 0.0, -1.0))
                assert exact <= bound[u] * (1.0 + 1e-9)
                attained = max(attained, exact / bound[u]) if bound[u] > 0.0 else attained
    assert attained > 0.999  # the bound cannot be lowered for all walks


def test_adding_up_single_visits_would_be_too_little():
    """Each visit alone fades with the steps after it; two visits before the token is seen do not fade separately."""
    path = (0, 1, 0, 2, 1, 2, 1, 2, 1, 2)
    walk = Walk(COMPLETE, path)
    exact = exact_walk(path, 4, {3}, 0, 1.0) ** 2
    separate = 1.0 / 10 + 1.0 / 8
    assert separate < exact <= walk.seen_by([3])[0] ** 2 * (1.0 + 1e-12)


def test_everybody_together_sees_each_visit_of_a_node():
    walk = plan_walk(SMALL["ring"], passes=4, seed=3)
    assert (walk.seen_by([1, 2, 3, 4])[0] ** 2 <= walk.visits[0] + 1e-9).all()
    alternating = Walk(PATH, (0, 1, 0, 1, 2, 1))
    assert alternating.seen_by([1, 2])[0] == pytest.approx(math.sqrt(2.0)) == alternating.local[0]


def test_the_spread_of_visits_is_the_best_one():
    """The best payments are the nondecreasing ones nearest to the visits; no random feasible ones are better."""
    rng = np.random.default_rng(5)
    for _ in range(20):
        length = int(rng.integers(2, 12))
        visits = (rng.random(length) < 0.4).astype(float)
        visits[rng.integers(length)] = 1.0
        places = np.flatnonzero(visits).tolist()
        paid = isotonic_regression(visits).x
        assert (np.cumsum(paid) <= np.cumsum(visits) + 1e-12).all()
        assert spread(places, length) == pytest.approx(paid @ paid)
        for other in rng.dirichlet(np.full(length, 0.5), 200) * len(places):
            if (np.cumsum(other) <= np.cumsum(visits)).all():
                assert other @ other >= paid @ paid - 1e-12


@pytest.mark.parametrize("name", SMALL)
def test_on_a_tour_each_node_makes_one_step_in_every_pass(name):
    net = SMALL[name]
    tour = plan_tour(net, passes=4, seed=1)
    for start in range(0, 4 * net.size, net.size):
        assert sorted(tour.stops[start : start + net.size]) == list(range(net.size))
    assert (tour.visits == 4).all()
    assert tour.path == plan_tour(net, passes=4, seed=1).path


def test_whoever_passes_a_token_on_sees_it():
    """From 0 through 1 to 2 and back: 1 makes no step on the way back, and sees what 2 did with no noise after it."""
    walk = Walk(PATH, (0, 1, 2, 1, 0), passing=(3,))
    assert walk.seen_by([1])[2] == 1.0
    assert walk.visits.tolist() == [2, 1, 1]
    assert walk.stops == (0, 1, 2, 0)
    blind = Walk(COMPLETE, (0, 1, 2, 0))
    assert blind.seen_by([1])[2] == pytest.approx(math.sqrt(0.5))


def test_a_token_cannot_jump():
    with pytest.raises(ValueError, match="no edge"):
        Walk(PATH, (0, 2))
    walk = plan_walk(SMALL["kite"], passes=50)
    assert walk.visits.sum() == 300
    assert walk.visits.min() > 20  # uniform in the long run
