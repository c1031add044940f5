"""`discreet federated network`: the plan in words and as JSON, and the picture."""

from __future__ import annotations

import json

import numpy as np
import pytest

from discreet.federated.decentralised import plan_network
from discreet.federated.decentralised.plots import neighbours_first, plot_losses
from discreet.problem import L2, Logistic, Problem
from tests.cli_tools import run
from tests.network_views import RING, SMALL


def test_the_command_shows_losses_and_draws_them(tmp_path):
    pytest.importorskip("networkx")
    picture = tmp_path / "losses.png"
    shown = run("federated", "network", "--graph", "ring", "--nodes", 8, "--method", "gossip", "--plot", picture).stdout
    assert "ring, 8 nodes" in shown
    assert "someone who reads all messages:    1 at most" in shown
    assert picture.read_bytes().startswith(b"\x89PNG")
    run("federated", "network", "--nodes", 8, "--plot", picture, code=2)  # not overwritten unasked


def test_the_command_prints_json():
    pytest.importorskip("networkx")
    shown = run(
        "federated", "network", "--graph", "star", "--nodes", 5, "--budget-for", "max", "--epsilon", 2, "--json"
    )
    found = json.loads(shown.stdout)
    assert found["max_epsilon"] == pytest.approx(2.0, rel=1e-5)
    assert np.shape(found["epsilon"]) == (5, 5)


def test_the_command_trains_on_a_table(tmp_path):
    pytest.importorskip("networkx")
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, (400, 2))
    rows = np.column_stack([X, X @ [1.0, -1.0] > 0.0])
    table = tmp_path / "table.csv"
    np.savetxt(table, rows, delimiter=",", header="a,b,y", comments="", fmt="%.4f")
    given = ("--table", table, "--target", "y", "--bounds", "-1,1", "--classes", "0,1", "--nodes", 8, "--seed", 1)
    shown = run("federated", "network", *given, "--epsilon", 1e4, "--json")
    found = json.loads(shown.stdout)["result"]
    assert "seed" in shown.stderr  # noise that can be removed is warned of
    assert found["accuracy"] > 0.8
    assert found["held_out_rows"] == 80


def test_wrong_options_are_refused():
    pytest.importorskip("networkx")
    run("federated", "network", "--graph", "torus", code=2)
    run("federated", "network", "--epsilon", "inf", code=2)
    run("federated", "network", "--method", "gossip", "--message-noise", 0, code=2)


@pytest.mark.parametrize("method", ["gossip", "walk"])
def test_a_plan_can_be_drawn(method, tmp_path):
    plan = plan_network(Problem(Logistic(), L2(0.1)), 3, (-1.0, 1.0), RING, method=method)
    plot_losses(plan, tmp_path / "p.png")
    assert (tmp_path / "p.png").stat().st_size > 10_000
    without = plan_network(Problem(Logistic(), L2(0.1)), 3, (-1.0, 1.0), RING, epsilon=float("inf"))
    with pytest.raises(ValueError, match="nothing to draw"):
        plot_losses(without, tmp_path / "q.png")


def test_the_order_of_the_picture_has_every_node_once():
    for net in SMALL.values():
        assert sorted(neighbours_first(net)) == list(range(net.size))
