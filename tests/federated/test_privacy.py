"""What clients tell: sensitivities of neighbours, noise, an audit in two arms, limits and the ledger."""

from __future__ import annotations

import math
from copy import copy

import numpy as np
import pytest

from discreet import Ledger
from discreet.audit import mu_lower_bound
from discreet.federated import Client, Refusal, Reply, Server, StateInMemory, plan_federated
from discreet.federated.client import _local_problem
from discreet.privacy import accounting
from discreet.problem import Logistic, Problem, Squared, Zero
from tests.federated_tools import make_clients, make_plan, make_server, play, request_of, table
from tests.statistics import variance_fits

pytestmark = pytest.mark.filterwarnings("ignore::discreet.InsecureRandomnessWarning")
CLIENTS = 4
ROWS = 5


def plan_of(**changes):
    """One column and an intercept; gradients are clipped tightly, so that hostile rows have their full effect."""
    chosen = {"clients": CLIENTS, "epsilon": 2.0, "delta": 1e-5, "rounds": 4, "clip": 0.2, "rows_per_client": ROWS}
    problem = changes.pop("problem", Problem(Logistic(), Zero()))
    return plan_federated(problem, 1, (-1.0, 1.0), **chosen | changes)


def hostile(label, rows=ROWS):
    """Rows at the corner of the box, all with one label."""
    return np.ones((rows, 1)), np.full(rows, label)


def replaced(weight=None):
    """A client and a neighbour: the first row has another label, or (with weights) stops counting."""
    X, y = hostile(1.0)
    other = y.copy()
    other[0] = -1.0
    return (X, y, None), (X, y, weight) if weight is not None else (X, other, None)


def pairs(unit, relation):
    """Neighbouring clients, each as rows, labels and weights."""
    null = np.zeros(ROWS) if unit == "client" else np.append(0.0, np.ones(ROWS - 1))
    if relation == "zero_out":
        return replaced(null)
    if unit == "record":
        return replaced()
    return (*hostile(1.0), None), (*hostile(-1.0), None)


@pytest.mark.parametrize("unit", ["client", "record"])
@pytest.mark.parametrize("relation", ["replace", "zero_out"])
def test_a_message_moves_by_no_more_than_planned_whatever_the_server_asks(unit, relation):
    """For every model and every dual variable; a bound of half the size would be broken."""
    plan = plan_of(unit=unit, relation=relation)
    first, second = (
        Client(plan, "a", X, y, sample_weight=weight, random_state=0) for X, y, weight in pairs(unit, relation)
    )
    rng, largest = np.random.default_rng(0), 0.0
    for size in (0.0, 0.1, 1.0, 30.0, 1e4):
        for _ in range(10):
            z, dual = size * rng.standard_normal(2), size * rng.standard_normal(2)
            told = [plan.on_grid(client._gradient(z, dual)) for client in (first, second)]
            moved = np.linalg.norm(told[0] - told[1])
            assert moved <= plan.grid.sensitivity
            largest = max(largest, moved)
    assert largest > 0.5 * plan.grid.sensitivity


def test_huge_rows_and_targets_are_clipped_before_they_count():
    plan = plan_of(problem=Problem(Squared()), y_bounds=(-1.0, 1.0), unit="record")
    usual = Client(plan, "a", *hostile(1.0), random_state=0)
    for entry in (1e308, -1e308, 5e-324):
        X, y = hostile(1.0)
        X[0], y[0] = entry, -entry
        other = Client(plan, "a", X, y, random_state=0)
        z = np.array([0.3, -0.2])
        assert np.linalg.norm(other._gradient(z, -z) - usual._gradient(z, -z)) <= plan.grid.sensitivity


def drift(plan, rows, exact):
    """How far the gradients of two neighbouring clients are apart, round by round, for a hostile server.

    Past messages are common to both: their mean. With `exact`, each client's own gradient moves its dual variable
    instead, as it would be for whole clients. One row of the two clients differs and is far beyond its clip. Every
    other row points in a direction of its own; the server asks for models at which one of them after the other is
    the only one that is not beyond its clip. What the memories have in common is then turned round, bit by bit.
    """
    angles = np.pi * np.arange(rows) / (rows - 1)
    X = np.column_stack([np.cos(angles), np.sin(angles)])
    problems = [_local_problem(plan, X, np.append(end, np.zeros(rows - 1)), None) for end in (1e9, -1e9)]
    duals, found = [np.zeros(2), np.zeros(2)], []
    for angle in angles[1:]:
        w = 1e5 * np.array([-np.sin(angle), np.cos(angle)])
        z = 0.5 * (w + plan.gamma * problems[0]._gradient_at(w) + duals[0])
        both = [
            problem.gradient(2.0 * z - dual, plan.tolerance, z) for problem, dual in zip(problems, duals, strict=True)
        ]
        found.append(np.linalg.norm(both[0] - both[1]))
        told = both if exact else [np.mean(both, axis=0)] * 2
        duals = [z - plan.gamma * step for step in told]
    return max(found)


def test_exact_dual_variables_would_break_the_promise_for_rows():
    """The memories of two neighbours drift apart, and their messages with them; noisy ones do not."""
    problem = Problem(Squared(), fit_intercept=False)
    plan = plan_federated(
        problem, 2, (-1.0, 1.0), 3, y_bounds=(-1e9, 1e9), unit="record", rows_per_client=11, clip=1.0, gamma=490.0
    )
    assert drift(plan, 11, exact=False) <= plan.grid.sensitivity
    assert drift(plan, 11, exact=True) > 1.2 * plan.grid.sensitivity


def test_the_dual_variable_of_a_row_protecting_client_is_made_of_what_it_told():
    plan = plan_of(unit="record")
    first, second = (Client(plan, "a", X, y, random_state=0) for X, y, _ in pairs("record", "replace"))
    z = np.array([0.4, 0.1])
    for client in (first, second):
        reply = client.answer(request_of(plan, weights=z))
        assert np.array_equal(client.dual, z - plan.gamma * reply.gradient)
    whole = plan_of(unit="client")
    client = Client(whole, "a", *hostile(1.0), random_state=0)
    reply = client.answer(request_of(whole, weights=z))
    assert np.linalg.norm(client.dual - (z - whole.gamma * reply.gradient)) > 0.0  # exact: the noise is not in it


@pytest.mark.parametrize("unit", ["client", "record"])
def test_messages_have_the_planned_noise_fresh_in_every_reply(unit):
    plan = plan_of(unit=unit, rounds=300)
    client = Client(plan, "a", *hostile(1.0), random_state=3)
    z, noise = np.zeros(2), []
    for number in range(1, 301):
        dual = client.dual
        reply = client.answer(request_of(plan, number, number - 1))
        noise.append(reply.gradient - plan.on_grid(client._gradient(z, dual)))
    noise = np.array(noise)
    assert variance_fits(noise.T, plan.grid.scale)
    assert not variance_fits(0.75 * noise.T, plan.grid.scale)
    assert len(np.unique(noise)) == noise.size
    assert (noise / plan.grid.step == np.rint(noise / plan.grid.step)).all()


def scores(plan, label, runs, replies):
    """What the server can make of all replies of a client whose gradient stays at the clip, one number a run."""
    (X, y), found = hostile(label), np.empty(runs)
    for run in range(runs):
        client = Client(plan, "a", X, y, random_state=run + 10_000 * int(label > 0))
        found[run] = sum(client.answer(request_of(plan, k, k - 1)).gradient.sum() for k in range(1, replies + 1))
    return found


@pytest.mark.slow
def test_an_audit_finds_no_more_than_promised_and_finds_replies_that_are_not_counted():
    """False alarms below 1e-6: what the lower bound promises."""
    plan = plan_of(epsilon=8.0, rounds=12, participations=1, per_round=1, gamma=1.0)
    mu = accounting.mu_of(plan.event("local", "client"), plan.relation)
    honest = mu_lower_bound(*(scores(plan, label, 500, 1) for label in (1.0, -1.0)))
    assert 0.2 * mu < honest <= mu
    forgetful = copy(plan)  # the planted fault: a client that does not count its replies
    object.__setattr__(forgetful, "participations", 12)
    uncounted = mu_lower_bound(*(scores(forgetful, label, 250, 12) for label in (1.0, -1.0)))
    assert uncounted > mu


def test_the_released_model_has_the_noise_of_all_clients():
    """One round in the central model: the mean of the messages has noise s / sqrt(N), and no less."""
    plan = plan_of(model="central", rounds=1, dropouts=1, clip=0.2, epsilon=1.0)
    found = []
    for run in range(200):
        clients = {str(i): Client(plan, str(i), *hostile(1.0), random_state=run) for i in range(CLIENTS)}
        server = Server(plan, list(clients), random_state=0)
        play(server, clients)
        found.append(server.weights)
    noise = (np.array(found) - np.mean(found, axis=0)) / plan.gamma
    assert variance_fits(noise.T * math.sqrt(200 / 199), plan.grid.scale / math.sqrt(CLIENTS))
    assert not variance_fits(0.75 * noise.T, plan.grid.scale / math.sqrt(CLIENTS))


def test_gradients_lie_where_the_sum_of_the_noises_hides_them():
    """Multiples of N - d steps: then the sum of rounded noises is a function of the sum with continuous noise."""
    plan = plan_of(model="central", dropouts=1, clip=0.2)
    client = Client(plan, "a", *hostile(1.0), random_state=0)
    exact = plan.on_grid(client._gradient(np.array([0.1, 0.7]), np.zeros(2)))
    step = plan.counts_others * plan.grid.step
    assert plan.counts_others == 3
    assert (exact / step == np.rint(exact / step)).all()


def test_the_same_seed_gives_the_same_run_and_another_run_other_noise():
    plan = make_plan()
    runs = []
    for chosen in (plan, make_plan(), make_plan(run="tomorrow")):
        server = make_server(chosen)
        play(server, make_clients(chosen))
        runs.append(server.weights)
    assert np.array_equal(runs[0], runs[1])
    assert not np.isclose(runs[0], runs[2]).any()


def test_without_a_seed_no_two_runs_are_alike():
    plan = plan_of()
    told = [Client(plan, "a", *hostile(1.0)).answer(request_of(plan)).gradient for _ in range(2)]
    assert not np.isclose(told[0], told[1]).any()


def test_a_client_refuses_a_plan_beyond_its_own_limit():
    plan = plan_of(model="central", epsilon=1.0)
    X, y = hostile(1.0)
    local = plan.guarantees["local", "client"].epsilon
    assert local > 1.5
    with pytest.raises(ValueError, match=r"above its limit 1\.5"):
        Client(plan, "a", X, y, max_epsilon=1.5)
    Client(plan, "a", X, y, max_epsilon=1.5, trusts_server=True)
    Client(plan, "a", X, y, max_epsilon=local)
    with pytest.raises(ValueError, match=r"above its limit 0\.9"):
        Client(plan, "a", X, y, max_epsilon=0.9, trusts_server=True)


def booked(plan, ledger, store):
    X, y = hostile(1.0)
    return Client(plan, "a", X, y, state=store, ledger=ledger, dataset="mine", random_state=0)


def test_the_whole_run_is_booked_once_before_the_first_reply():
    plan, ledger, store = plan_of(), Ledger("sqlite://", allow_seeded=True), StateInMemory()
    ledger.open("mine", epsilon=2.0, delta=1e-5)
    for number in (1, 2, 3):  # the client restarts in between
        assert isinstance(booked(plan, ledger, store).answer(request_of(plan, number, number - 1)), Reply)
        assert ledger.spent("mine") == pytest.approx(2.0, rel=1e-6)
    assert len(ledger.entries("mine")) == 1
    assert "at most 4 replies" in ledger.entries("mine")[0].note


class FailsOnce(StateInMemory):
    """A disk that is full when the state is saved for the n-th time."""

    def __init__(self, at):
        super().__init__()
        self.left = at

    def save(self, state):
        self.left -= 1
        if self.left == 0:
            raise OSError("No space left on device")
        super().save(state)


@pytest.mark.parametrize("at", [1, 2, 3])
def test_a_client_that_fails_between_ledger_and_state_books_once(at):
    """However often it is asked and started again; without its state it cannot know, and books anew."""
    plan, ledger, store = plan_of(), Ledger("sqlite://", allow_seeded=True), FailsOnce(at)
    ledger.open("mine", epsilon=3.0, delta=1e-5)
    with pytest.raises(OSError, match="No space left"):
        booked(plan, ledger, store).answer(request_of(plan))
    assert len(ledger.entries("mine")) == (at > 1)  # the ledger is not asked before the state can be written
    for _ in range(2):
        assert isinstance(booked(plan, ledger, store).answer(request_of(plan)), Reply)
    assert [entry.status for entry in ledger.entries("mine")] == ["committed"]
    assert isinstance(booked(plan, ledger, StateInMemory()).answer(request_of(plan)), Reply)
    assert len(ledger.entries("mine")) == 2


def test_a_ledger_that_does_not_cover_the_run_makes_the_client_refuse():
    plan, ledger, store = plan_of(), Ledger("sqlite://", allow_seeded=True), StateInMemory()
    ledger.open("mine", epsilon=1.0, delta=1e-5)
    client = booked(plan, ledger, store)
    answer = client.answer(request_of(plan))
    assert isinstance(answer, Refusal)
    assert "does not cover" in answer.reason
    assert client.replies == 0
    assert ledger.spent("mine") == 0.0


def test_a_small_client_counts_no_row_more_than_planned():
    plan = plan_of(unit="record")
    X, y = table(2, 1)
    few = Client(plan, "a", X, y, random_state=0)
    assert few.problem.divisor == ROWS
    assert Client(plan, "a", *table(9, 1), random_state=0).problem.divisor == 9


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        (np.ones((2, 2)), [1.0, -1.0], "dense columns"),
        (np.ones((2, 1)), [1.0, 0.0], "labels"),
        (np.full((2, 1), np.nan), [1.0, -1.0], "NaN"),
    ],
)
def test_rows_that_do_not_fit_the_plan_are_refused(X, y, message):
    with pytest.raises(ValueError, match=message):
        Client(plan_of(), "a", X, y)
