"""What a client agrees to: plans that a server has made to look harmless are refused before the first answer."""

from __future__ import annotations

import math
import os
import stat
import sys

import pytest

from discreet.federated import Client
from tests.federated_tools import make_clients, make_plan, make_server, play, table

pytestmark = pytest.mark.filterwarnings("ignore::discreet.InsecureRandomnessWarning")


def holder(plan, **limits):
    return Client(plan, "a", *table(12, 3), **limits)


def test_a_plan_without_noise_needs_a_client_that_says_so():
    plan = make_plan(epsilon=math.inf)
    with pytest.raises(ValueError, match="no noise"):
        holder(plan)
    with pytest.raises(ValueError, match="above its limit"):
        holder(plan, max_epsilon=100.0)
    assert not holder(plan, max_epsilon=math.inf).promise.is_private


def test_a_small_epsilon_with_a_large_delta_is_no_small_cost():
    plan = make_plan(epsilon=0.5, delta=0.5)
    with pytest.raises(ValueError, match=r"delta = 0\.5"):
        holder(plan, max_epsilon=1.0)
    with pytest.raises(ValueError, match=r"delta = 0\.5"):
        holder(plan, max_epsilon=1.0, max_delta=0.4)
    assert holder(plan, max_epsilon=1.0, max_delta=0.5).promise.delta == 0.5
    assert holder(make_plan(), max_epsilon=4.0, max_delta=1e-5).promise.epsilon == 4.0


def test_a_plan_for_rows_is_refused_by_a_client_whose_limit_is_about_all_of_them():
    plan = make_plan(epsilon=1.0)
    assert holder(plan, max_epsilon=1.0).promise.epsilon == 1.0
    with pytest.raises(ValueError, match="for all of its rows together"):
        holder(plan, max_epsilon=1.0, unit="client")
    whole = plan.guarantees["local", "client"]
    assert holder(plan, max_epsilon=whole.epsilon, unit="client").promise == whole
    with pytest.raises(ValueError, match="unit must be one of"):
        holder(plan, unit="person")


@pytest.mark.parametrize("limits", [{"max_epsilon": math.nan}, {"max_epsilon": -1.0}, {"max_delta": math.nan}])
def test_a_limit_that_is_no_limit_is_refused(limits):
    with pytest.raises(ValueError, match="must be"):
        holder(make_plan(), **limits)


@pytest.mark.skipif(sys.platform == "win32", reason="files have no such permissions")
def test_states_are_readable_by_their_owners_alone(tmp_path):
    """Dual variables may be exact, and the server's table holds the messages."""
    plan, path = make_plan(rounds=1), tmp_path / "a.json"
    path.with_name("a.json.new").write_text("left by a crash, for all to read")
    before = os.umask(0o000)
    try:
        server = make_server(plan, state=tmp_path / "server.json")
        play(server, make_clients(plan, {name: tmp_path / f"{name}.json" for name in server.clients}))
    finally:
        os.umask(before)
    for name in ("a.json", "e.json", "server.json"):
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600
    assert not list(tmp_path.glob("*.new"))
