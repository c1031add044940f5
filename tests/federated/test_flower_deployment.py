"""Real SuperLink and SuperNode processes on the loopback interface, with TLS, one of them killed on the way."""

from __future__ import annotations

import json
import os
import socket
import ssl
import time
from pathlib import Path

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric import ec

pytest.importorskip("flwr", reason="needs Flower: pip install 'discreet[flower]'")

import httpx
from flwr.proto.fleet_pb2 import RegisterNodeFleetRequest
from flwr.supercore.primitives.asymmetric import public_key_to_bytes
from flwr.supernode.fleet_http_client import FleetHttpClient
from flwr.supernode.node_auth_http_interceptor import NodeAuthHttpInterceptor

from discreet.federated import Server, plan_federated
from discreet.federated.flower import loopback
from discreet.federated.flower.app import write_app
from discreet.federated.flower.data_holder import only_process
from discreet.federated.flower.in_process import run_in_process
from discreet.federated.flower.loopback import deployment_of
from discreet.federated.flower.processes import SECONDS_TO_STOP
from discreet.federated.simulation import clients_of, simulate, split_evenly
from discreet.problem import L2, Logistic, Problem

SEED = 3
pytestmark = pytest.mark.filterwarnings("ignore::discreet.InsecureRandomnessWarning")


def task(clients, rounds, per_round=None, columns=4, rows=120):
    """A plan, rows, labels and who holds which rows."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, (rows, columns))
    y = np.where(X[:, 0] - 0.5 * X[:, 1] + 0.2 * rng.standard_normal(rows) > 0.0, 1.0, -1.0)
    plan = plan_federated(
        Problem(Logistic(), L2(0.01)),
        columns,
        (-1.0, 1.0),
        clients=clients,
        rounds=rounds,
        per_round=per_round,
        epsilon=5.0,
        rows_per_client=rows // clients,
    )
    return plan, X, y, split_evenly(rows, clients)


def server_of(plan, parts):
    return Server(plan, list(parts), random_state=SEED)


@pytest.mark.parametrize("per_round", [None, 3])
def test_the_apps_give_the_numbers_of_the_plain_run(per_round):
    plan, X, y, parts = task(6, 8, per_round)
    plain = simulate(plan, X, y, parts, seed=SEED)
    server = server_of(plan, parts)
    run_in_process(server, clients_of(plan, X, y, parts, SEED))
    assert server.duals.tobytes() == plain.server.duals.tobytes()
    assert server.averaged_weights.tobytes() == plain.server.averaged_weights.tobytes()
    assert server.accepted == plain.server.accepted


def processes_with(marker):
    """Processes whose arguments or environment hold a text."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            text = (folder / "cmdline").read_bytes() + (folder / "environ").read_bytes()
        except OSError:
            continue
        if marker.encode() in text and int(folder.name) != os.getpid():
            found.append(int(folder.name))
    return found


def wait_until(condition, seconds):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def with_code_from_the_server(monkeypatch, marker):
    """Let the app that clients are sent hold code that leaves a mark where it is run."""

    def write_hostile_app(folder, settings):
        write_app(folder, settings)
        (folder / "hostile.py").write_text(f"open({str(marker)!r}, 'w').close()\napp = None\n")
        project = folder / "pyproject.toml"
        project.write_text(project.read_text().replace("discreet.federated.flower.client_app:app", "hostile:app"))
        return folder

    monkeypatch.setattr(loopback, "write_app", write_hostile_app)


def connects(address, authority):
    """Whether a client that trusts this authority talks to the server."""
    host, port = address.split(":")
    try:
        with socket.create_connection((host, int(port))) as plain:
            ssl.create_default_context(cafile=authority).wrap_socket(plain, server_hostname=host).close()
    except ssl.SSLCertVerificationError:
        return False
    return True


def lets_in(address, authority):
    """Whether the SuperLink lets a stranger with a key of its own register itself."""
    key = ec.generate_private_key(ec.SECP384R1())
    signature = NodeAuthHttpInterceptor(key, key.public_key())
    with FleetHttpClient.from_server_address(address, False, authority.read_bytes(), [signature]) as connection:
        try:
            connection.RegisterNode(RegisterNodeFleetRequest(public_key=public_key_to_bytes(key.public_key())))
        except httpx.HTTPStatusError:
            return False
    return True


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc").exists(), reason="looks for processes in /proc, which only Linux has")
def test_real_processes_survive_the_death_of_one_and_give_the_same_numbers(tmp_path, monkeypatch):
    plan, X, y, parts = task(2, 3)
    victim = list(parts)[1]
    with_code_from_the_server(monkeypatch, tmp_path / "mark")

    def round_reached():
        path = tmp_path / "server.state"
        return json.loads(path.read_text())["round"] if path.exists() else 0

    with deployment_of(tmp_path, plan, X, y, parts, seed=SEED, timeout=90.0) as deployment:
        assert connects(deployment.address, tmp_path / "ca.pem")
        assert not connects(deployment.address, None)  # the authorities of this machine do not know it
        assert not lets_in(deployment.address, tmp_path / "ca.pem")
        deployment.start_run()
        wait_until(lambda: round_reached() >= 2, 120.0)
        deployment.kill(victim)
        deployment.start_client(victim)
        outcome = deployment.wait(180.0)
        assert processes_with(str(tmp_path))  # so that the search below can fail
    wait_until(lambda: not processes_with(str(tmp_path)), SECONDS_TO_STOP)
    assert list((tmp_path / "flower" / "apps").glob("*/hostile.py"))  # it was sent
    assert not (tmp_path / "mark").exists()  # and nobody ran it
    assert outcome["ended"] == "all rounds are done"
    assert [one["used"] for one in outcome["rounds"]] == [list(parts)] * plan.rounds
    plain = simulate(plan, X, y, parts, seed=SEED)
    assert outcome["weights"] == plain.server.weights.tolist()
    assert outcome["averaged_weights"] == plain.server.averaged_weights.tolist()
    for number, client in enumerate(plain.clients.values()):
        state = json.loads((tmp_path / f"client-{number}.state").read_text())
        assert (state["number"], state["dual"]) == (client.replies, client.dual.tolist())


def test_one_process_at_a_time_answers_for_a_client(tmp_path):
    with (
        only_process(tmp_path / "state"),
        pytest.raises(RuntimeError, match="another process"),
        only_process(tmp_path / "state"),
    ):
        pass
    with only_process(tmp_path / "state"):
        pass
