"""Networks: weights, distances, and the graphs that NetworkX makes."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from discreet.federated.decentralised.network import GRAPHS, Network, network_named


@pytest.mark.parametrize("name", GRAPHS)
def test_metropolis_weights_lead_to_the_mean(name):
    pytest.importorskip("networkx")
    net = network_named(name, 24, seed=2)
    weights = net.weights
    assert (weights == weights.T).all()
    assert weights.sum(axis=1) == pytest.approx(1.0)
    assert weights.min() >= -1e-15
    assert net.second_eigenvalue < 1.0
    connected = [[j for j in range(net.size) if j != i and weights[i, j] > 0.0] for i in range(net.size)]
    assert [list(found) for found in net.neighbours] == connected


def test_graphs_have_the_shape_that_their_name_says():
    pytest.importorskip("networkx")
    degrees = {name: {len(found) for found in network_named(name, 24).neighbours} for name in GRAPHS}
    assert degrees["ring"] == {2}
    assert degrees["grid"] == {2, 3, 4}
    assert degrees["expander"] == {6}
    assert degrees["star"] == {1, 23}
    assert network_named("karate").size == 34
    assert network_named("les-miserables").size == 77
    assert network_named("expander", 24, seed=1).neighbours == network_named("expander", 24, seed=1).neighbours
    assert network_named("expander", 24, seed=1).neighbours != network_named("expander", 24, seed=2).neighbours
    assert network_named("ring", 10).distances[0].tolist() == [0, 1, 2, 3, 4, 5, 4, 3, 2, 1]


def test_networks_that_are_none_are_refused():
    with pytest.raises(ValueError, match="not connected"):
        Network(("a", "b", "c"), ((1,), (0,), ()))
    with pytest.raises(ValueError, match="without loops"):
        Network(("a", "b"), ((0, 1), (0,)))
    with pytest.raises(ValueError, match="without loops"):
        Network(("a", "b", "c"), ((1,), (), (1,)))
    with pytest.raises(ValueError, match="name of its own"):
        Network(("a", "a"), ((1,), (0,)))
    with pytest.raises(ValueError, match="graph must be one of"):
        network_named("torus")


def test_without_networkx_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "networkx", None)
    with pytest.raises(RuntimeError, match=r"pip install discreet\[graphs\]"):
        network_named("ring")


def test_the_centre_is_near_to_all():
    path = Network(tuple("abcde"), ((1,), (0, 2), (1, 3), (2, 4), (3,)))
    assert path.centre == 2
    assert np.array_equal(path.distances, path.distances.T)
