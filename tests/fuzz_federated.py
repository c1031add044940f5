"""The files of federated runs, good ones to damage, and what must hold of a file that is accepted."""

from __future__ import annotations

import json
import tempfile
from functools import cache
from pathlib import Path

import numpy as np

from discreet.federated import Client, FederatedPlan, Server, plan_federated
from discreet.federated.client import StateFile
from discreet.federated.planning import read_plan
from discreet.federated.server import ServerState
from discreet.problem import L2, Logistic, Problem
from tests.fuzzing import Target
from tests.mutations import DAMAGED_TEXT

NAMES = ("a", "b", "c", "d")


@cache
def plan() -> FederatedPlan:
    return plan_federated(Problem(Logistic(), L2(0.01)), 2, (-1.0, 1.0), 4, epsilon=2.0, rounds=4, per_round=2)


@cache
def files() -> dict[str, bytes]:
    """A plan, and the states of a client and of the server after two rounds."""
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        state, own = Path(folder) / "server.json", Path(folder) / "client.json"
        server = Server(plan(), NAMES, state=state)
        clients = {
            name: Client(
                plan(), name, rng.uniform(-1.0, 1.0, (5, 2)), [-1, 1, 1, -1, 1], state=own if name == "a" else None
            )
            for name in NAMES
        }
        for _ in range(2):
            server.receive([clients[name].answer(request) for name, request in server.next_requests().items()])
        return {
            "plan": json.dumps(plan().to_dict()).encode(),
            "client": own.read_bytes(),
            "server": state.read_bytes(),
        }


def one_file(kind: str) -> list[bytes]:
    return [files()[kind]]


def use_plan(path: Path) -> None:
    """A plan that is accepted keeps its budget, and comes back from a file as it is."""
    found = read_plan(path)
    assert found.guarantee.epsilon <= found.budget.epsilon * (1.0 + 1e-9), "less noise than the budget needs"
    again = FederatedPlan.from_dict(json.loads(json.dumps(found.to_dict(), allow_nan=False)))
    assert again.digest == found.digest, "another plan after writing and reading"


def use_client_state(path: Path) -> None:
    """A client with a state that is accepted answers with finite numbers or refuses, and counts what it answers."""
    found = StateFile(path).load()
    assert found is not None
    client = Client(plan(), "a", np.eye(2), [-1.0, 1.0], state=path)
    server = Server(plan(), NAMES, random_state=None)
    request = next(iter(server.next_requests().values()))
    before, answer = client.replies, client.answer(request)
    gradient = getattr(answer, "gradient", np.zeros(3))
    assert np.isfinite(gradient).all(), "a message that is not finite"
    assert before <= client.replies <= max(before, plan().participations), "more replies than planned"


def use_server_state(path: Path) -> None:
    """A server with a state that is accepted has a finite model and goes on."""
    found = ServerState.read(path, plan(), NAMES)
    assert found is not None
    server = Server(plan(), NAMES, state=path)
    assert np.isfinite(server.weights).all(), "a model that is not finite"
    for _ in range(6):
        if not server.finished:
            server.next_requests()
            server.receive([])


FEDERATED = (
    Target("federated plan", 20, lambda: one_file("plan"), DAMAGED_TEXT, use_plan),
    Target("federated client", 20, lambda: one_file("client"), DAMAGED_TEXT, use_client_state),
    Target("federated server", 20, lambda: one_file("server"), DAMAGED_TEXT, use_server_state),
)
