"""A client: it keeps its rows and its dual variable, and answers requests with noisy gradients."""

from __future__ import annotations

import threading
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from discreet._common.digest import digest_of
from discreet._common.exceptions import BudgetExceededError
from discreet._common.types import FloatArray
from discreet.data.validation import array_rows
from discreet.federated.agreement import MAX_DELTA, agreed
from discreet.federated.client_state import ClientState, StateFile, StateInMemory
from discreet.federated.local_problem import LocalProblem
from discreet.federated.plan import LARGEST_WEIGHT, FederatedPlan, Unit
from discreet.federated.rounds import Refusal, Reply, Request
from discreet.privacy.random.generator import RandomGenerator, generator_from
from discreet.privacy.release import reserve

if TYPE_CHECKING:
    from discreet.privacy.guarantee import Guarantee
    from discreet.privacy.ledger import Ledger


class StateStore(Protocol):
    """Where a client's state is kept: `StateFile`, `StateInMemory`, or a store of your own."""

    def load(self) -> ClientState | None:
        """Return the state, or None if there is none."""
        ...

    def save(self, state: ClientState) -> None:
        """Keep the state; it must be safe from a crash when this returns."""
        ...

    def alone(self) -> AbstractContextManager[None]:
        """Keep other processes from reading and writing it for a block."""
        ...


class Client:
    """One data holder of a federated run.

    Guarantee: whatever it is asked, and by whomever, all its replies together keep the plan's local guarantees, for
    its rows as a whole and for each of them, as long as its state is not lost, copied or put back to an earlier one.
    Processes that share a state file count together.

    Parameters
    ----------
    plan : FederatedPlan
        The plan of the run, the same for all.
    name : str
        The client's name, which the server knows.
    X : array of shape (n_samples, n_features)
        Its rows.
    y : array of shape (n_samples,)
        Targets, or labels in the coding of the loss (-1 and +1).
    sample_weight : array of shape (n_samples,), optional
        Weights between 0 and 1; a row with weight 0 counts as a null row.
    state : path or StateStore, optional
        Where the state is kept. In memory by default, for simulations: a client that restarts has then lost it.
    max_epsilon : float, optional
        The largest epsilon that this client agrees to; a plan that may cost it more is refused. A plan without noise
        is refused unless this is infinite.
    max_delta : float, default=0.01
        The largest delta that may come with that epsilon.
    unit : {"client", "record"}, optional
        Whether the limits and the ledger are about all rows of this client together, or about each of them; by default
        about what the plan protects.
    trusts_server : bool, default=False
        Whether the limits and the ledger are about what the models tell (central), as the server is trusted with the
        messages; else about what the server sees (local).
    ledger : Ledger, optional
        Where the cost of the whole run is booked before the first reply.
    dataset : str, optional
        The name of the rows in the ledger.
    random_state : int or RandomGenerator, optional
        A seed makes the noise reproducible, for tests; None: from the operating system.

    Raises
    ------
    ValueError
        The plan may cost more than the limits, the rows do not fit the plan, or the state is that of another run.
    """

    def __init__(
        self,
        plan: FederatedPlan,
        name: str,
        X: Any,
        y: Any,
        *,
        sample_weight: Any = None,
        state: StateStore | str | Path | None = None,
        max_epsilon: float | None = None,
        max_delta: float = MAX_DELTA,
        unit: Unit | None = None,
        trusts_server: bool = False,
        ledger: Ledger | None = None,
        dataset: str | None = None,
        random_state: int | RandomGenerator | None = None,
    ) -> None:
        self.plan, self.name = plan, name
        limits: dict[str, Any] = {"max_epsilon": max_epsilon, "max_delta": max_delta}
        self.promise: Guarantee = agreed(plan, name, unit=unit, trusts_server=trusts_server, **limits)
        if (ledger is None) != (dataset is None):
            raise ValueError("ledger and dataset belong together.")
        self.ledger, self.dataset = ledger, dataset
        self._rng = generator_from(random_state)  # warns of a seed
        self._key = None if self._rng.secure else self._rng.bytes(32)
        self._store, self._lock = _store(state), threading.Lock()
        self._state = self._loaded()
        self.problem = _local_problem(plan, X, y, sample_weight)

    @property
    def replies(self) -> int:
        """How many replies it has made, out of the plan's `participations`."""
        return self._state.number

    @property
    def dual(self) -> FloatArray:
        """The dual variable after the latest reply. Not private."""
        return self._state.dual.copy()

    def answer(self, request: Request) -> Reply | Refusal:
        """Answer the server.

        Guarantee: a reply costs one of the `participations` releases of the plan; a reply that is sent again, and a
        refusal, cost nothing. Refusals depend on the request, the plan and the count of replies alone.

        Parameters
        ----------
        request : Request
            What the server asks.

        Returns
        -------
        Reply or Refusal
        """
        reason = self._invalid(request)
        if reason is not None:
            return Refusal(self.name, _round_of(request), reason)
        with self._lock, self._store.alone():
            stored = self._loaded()  # another process may have answered since
            self._state = stored if stored.number >= self._state.number else self._state
            return self._answer(request)

    def _answer(self, request: Request) -> Reply | Refusal:
        """The answer to a request that is valid by itself, from the state as it is now."""
        state = self._state
        if state.reply is not None and request.round == state.reply.round:
            return state.reply
        reason = self._out_of_order(request)
        if reason is not None:
            return Refusal(self.name, request.round, reason)
        dual = state.dual if request.accepted == state.number else state.base_dual
        v = 2.0 * request.weights - dual  # rows are protected only if the proximal step from v is near enough
        if self.plan.unit == "record" and not self.problem.reaches(v, self.plan.tolerance):
            return Refusal(self.name, request.round, "the weights are too large for the planned tolerance")
        try:
            self._book()
        except BudgetExceededError:
            return Refusal(self.name, request.round, "the ledger of this client does not cover the run")
        return self._reply(request, dual)

    def _reply(self, request: Request, dual: FloatArray) -> Reply:
        """A new reply; it is on the disk before it is returned."""
        plan, z, number = self.plan, np.array(request.weights, dtype=np.float64), self._state.number + 1
        exact = plan.on_grid(self._gradient(z, dual))
        noise = plan.grid.noise(self._generator(number), exact.shape)
        told = plan.within_bound(exact + noise)
        # Rows: the memory may depend on what was told only. Whole clients: it may be exact, as it is the client's own.
        step = told if plan.unit == "record" else exact
        moved = (1.0 - 2.0 * plan.relaxation) * dual + 2.0 * plan.relaxation * (z - plan.gamma * step)
        reply = Reply(self.name, request.round, number, told)
        self._save(self._state.after(reply, request.accepted, dual, moved))
        return reply

    def _gradient(self, z: FloatArray, dual: FloatArray) -> FloatArray:
        """The gradient at the proximal step, within the clip. Not private."""
        plan = self.plan
        found = self.problem.gradient(2.0 * z - dual, plan.tolerance, z)
        length = float(np.linalg.norm(found))
        return found if length <= plan.clip else found * (plan.clip / length * (1.0 - 2.0**-40))

    def _generator(self, number: int) -> RandomGenerator:
        """The source of the noise of a reply; from a seed, every reply has a key of its own, also after a restart."""
        if self._key is None:
            return self._rng
        context = digest_of("federated reply", self._key, self.plan.digest, self.name, number)
        return RandomGenerator(context, secure=False)

    def _invalid(self, request: Request) -> str | None:
        """What is wrong with a request by itself."""
        if not isinstance(request, Request) or not _is_count(request.round) or not _is_count(request.accepted):
            return "this is not a request"
        if not 1 <= request.round <= self.plan.rounds:
            return f"the plan has rounds 1 to {self.plan.rounds}"
        weights = request.weights
        if not isinstance(weights, np.ndarray) or weights.dtype != np.float64:
            return "the weights are not an array of doubles"
        if weights.shape != (self.plan.dimension,):
            return f"the plan has {self.plan.dimension} weights"
        if not (np.abs(weights) <= LARGEST_WEIGHT).all():  # false for NaN
            return "the weights are not finite, or too large"
        return None

    def _out_of_order(self, request: Request) -> str | None:
        """What does not fit between a request and what this client remembers."""
        state = self._state
        if state.reply is not None and request.round < state.reply.round:
            return f"round {request.round} is over for this client"
        if request.accepted not in (state.number, state.base_number):
            if state.number == 0:
                return "this client has lost its state, and with it the count of its replies"
            return (
                f"the server names reply {request.accepted}, this client knows {state.base_number} and {state.number}"
            )
        if state.number >= self.plan.participations:
            return f"this client has made all of its {self.plan.participations} replies"
        return None

    def _loaded(self) -> ClientState:
        run, found = self.plan.digest.hex(), self._store.load()
        if found is None:
            return ClientState.new(run, self.name, self.plan.dimension)
        if (found.run, found.client, found.dual.size) != (run, self.name, self.plan.dimension):
            raise ValueError(f"the state of client {self.name!r} belongs to another run or client; keep it elsewhere.")
        return found

    def _save(self, state: ClientState) -> None:
        self._store.save(state)
        self._state = state

    def _book(self) -> None:
        """Reserve the cost of the whole run in the client's ledger, once."""
        if self.ledger is None or self._state.booked:
            return
        plan = self.plan
        note = f"federated run {plan.run!r}, client {self.name!r}, at most {plan.participations} replies"
        seeded = not self._rng.secure
        kept = reserve(self.ledger, self.dataset, self.promise.event, note, plan.relation, seeded=seeded)
        kept.commit()
        self._save(replace(self._state, booked=True))


def _local_problem(plan: FederatedPlan, X: Any, y: Any, sample_weight: Any) -> LocalProblem:
    """The client's rows in scaled columns, clipped as the plan says."""
    data, problem, public = array_rows(X, y, sample_weight), plan.problem, plan.public
    if data.sparse or data.columns != public.columns:
        raise ValueError(f"the plan has {public.columns} dense columns; the rows have {data.columns}.")
    problem.check_labels(data.y)
    rows = plan.scaling.matrix(data, "C", problem.fit_intercept).astype(np.float64)
    target = data.y if problem.loss.classification else plan.scaling.target(data.y)
    record = plan.unit == "record"
    # A client with fewer rows than planned is divided by the planned number: each of its rows then moves no more.
    divisor = max(data.rows, public.rows) if record else data.rows
    return LocalProblem(rows, target, data.weight, problem.loss, divisor, plan.gamma, plan.clip if record else None)


def _store(state: StateStore | str | Path | None) -> StateStore:
    if state is None:
        return StateInMemory()
    return StateFile(state) if isinstance(state, (str, Path)) else state


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _round_of(request: object) -> int:
    number = getattr(request, "round", 0)
    return number if _is_count(number) else 0
