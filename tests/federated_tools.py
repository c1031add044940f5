"""What the tests of federated runs share: small tables, runs with faults, a naive server, and what must always hold."""

from __future__ import annotations

import numpy as np

from discreet.federated import Client, Reply, Request, Server, plan_federated
from discreet.federated.server import ModelMap
from discreet.problem import L2, Logistic, Problem

NAMES = ("a", "b", "c", "d", "e")


def table(rows, columns, seed=0):
    """Columns in [-1, 1] and labels that they explain."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, (rows, columns))
    weights = 4.0 * rng.standard_normal(columns) / np.sqrt(columns)
    return X, np.where(X @ weights + 0.3 + rng.logistic(size=rows) > 0.0, 1.0, -1.0)


def make_plan(**changes):
    """Five clients with 12 rows each; each row is protected, so that dual variables depend on what was told alone."""
    chosen = {
        "clients": len(NAMES),
        "rounds": 5,
        "epsilon": 4.0,
        "delta": 1e-5,
        "unit": "record",
        "rows_per_client": 12,
    }
    return plan_federated(Problem(Logistic(), L2(0.05)), 3, (-1.0, 1.0), **chosen | changes)


def make_clients(plan, states=None, names=NAMES, rows=12, columns=3):
    """One client for each name, with rows of its own."""
    clients = {}
    for place, name in enumerate(names):
        X, y = table(rows, columns, seed=place)
        state = None if states is None else states[name]
        clients[name] = Client(plan, name, X, y, state=state, random_state=7)
    return clients


def make_server(plan, names=NAMES, kind=Server, **settings):
    return kind(plan, names, random_state=7, **settings)


def ask(server, clients):
    """The answers of a round, by client."""
    return {name: clients[name].answer(request) for name, request in server.next_requests().items()}


def play(server, clients, meddle=lambda number, answers: list(answers.values())):
    """All rounds; `meddle` turns the honest answers of a round into what arrives. Returns the reports."""
    reports = []
    while not server.finished:
        number = server.round
        reports.append(server.receive(meddle(number, ask(server, clients))))
    return reports


class NaiveServer(Server):
    """What a first version looks like: it believes what arrives, and averages over whoever answered."""

    def receive(self, replies):
        state, plan = self._state, self.plan
        moved = []
        for reply in replies:
            place = self._place[reply.client]
            step = self.weights - plan.gamma * np.asarray(reply.gradient, dtype=np.float64)
            state.duals[place] = step
            moved.append(step)
            state.accepted[place] = reply.number
        state.sums = plan.clients * np.mean(moved, axis=0, keepdims=True)
        return self._closed((), [], [], ())


def faults_of(server, clients, honest=NAMES):
    """What should hold after every round, whatever happened, and does not."""
    plan, table_, model = server.plan, server.duals, ModelMap(server.plan)
    found = []
    if not np.isfinite(table_).all() or not np.isfinite(server.weights).all():
        return ["numbers that are not finite"]
    if not np.allclose(server.weights, model.prox(table_.mean(axis=0)), rtol=0.0, atol=1e-9):
        found.append("the model is not the proximal map of the mean of the table")
    largest = np.abs(table_).max()
    if largest > plan.rounds * plan.gamma * plan.bound:
        found.append("a dual variable beyond what bounded messages can make of it")
    for name in honest:
        state, used = clients[name]._state, server.accepted[name]
        known = {state.base_number: state.base_dual, state.number: state.dual}
        row = table_[server.clients.index(name)]
        if used not in known or not np.allclose(known[used], row, rtol=0.0, atol=1e-12):
            found.append(f"the dual variable of {name!r} differs between the client and the server")
        if state.number > plan.participations:
            found.append(f"{name!r} has answered too often")
    return found


def changed(reply, **parts):
    """A reply with some parts replaced."""
    kept = {name: getattr(reply, name) for name in ("client", "round", "number", "gradient")}
    return Reply(**kept | parts)


def request_of(plan, number=1, accepted=0, weights=None):
    return Request(number, np.zeros(plan.dimension) if weights is None else weights, accepted)
