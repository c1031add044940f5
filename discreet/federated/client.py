"""A client: it keeps its rows and its dual variable, and answers requests with noisy gradients.

Before it answers, it holds the plan against its own limits and believes no figure in it. The count of replies is what
the privacy promise rests on, so that it is written, and flushed to the disk, before a reply leaves. A file that is
damaged or belongs to another run is refused, never replaced.
"""

from __future__ import annotations

import json
import math
import secrets
import sys
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from discreet._common.checks import at_least_zero, fraction, one_of
from discreet._common.codec import Count, Format, UsualArray, built, plain, read_json_file, write_durably, written
from discreet._common.digest import digest_of
from discreet._common.exceptions import BudgetExceededError
from discreet._common.types import FloatArray
from discreet.data.loading import load_array
from discreet.federated.local_problem import LocalProblem
from discreet.federated.plan import LARGEST_WEIGHT, UNITS, FederatedPlan, Unit
from discreet.federated.rounds import Refusal, Reply, Request
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.random.generator import RandomGenerator, generator_from
from discreet.privacy.release import reserve
from discreet.problem.losses.scalar import every_label

if TYPE_CHECKING:
    from discreet.privacy.ledger import Ledger

FORMAT = Format("discreet federated client", 1)


@dataclass(frozen=True, eq=False)
class ClientState:
    """A client's memory of a run.

    Attributes
    ----------
    run : str
        Digest of the plan, in hexadecimal digits.
    client : str
        The name of the client.
    number : int
        How many replies it has made: every one of them counts, whether or not it arrived.
    base_number : int
        The number of the last reply that the server said to have used; 0: none.
    base_dual : ndarray of shape (p,)
        The dual variable after that reply.
    dual : ndarray of shape (p,)
        The dual variable after the latest reply.
    reply : Reply, optional
        The latest reply: asked again for its round, the client sends it again, without new noise.
    booked : bool
        Whether the cost of the run is in the client's ledger.
    booking : str
        How the entry in the ledger is marked, from before the ledger is asked: whoever was killed in between finds it
        there, and does not pay a second time. Empty: the ledger was not asked yet.
    """

    run: str
    client: str
    number: Count
    base_number: Count
    base_dual: UsualArray
    dual: UsualArray
    reply: Reply | None
    booked: bool
    booking: str = ""

    @classmethod
    def new(cls, run: str, client: str, dimension: int) -> ClientState:
        """The state before the first reply."""
        return cls(run, client, 0, 0, np.zeros(dimension), np.zeros(dimension), None, booked=False)

    def after(self, reply: Reply, base_number: int, base_dual: FloatArray, dual: FloatArray) -> ClientState:
        """The state after one more reply, made from the dual variable `base_dual`."""
        return replace(self, number=reply.number, base_number=base_number, base_dual=base_dual, dual=dual, reply=reply)

    def to_dict(self) -> dict[str, Any]:
        """Return the state as JSON values. Not private: it is for the client alone."""
        reply = self.reply and {"round": self.reply.round, "gradient": plain(self.reply.gradient)}
        return FORMAT.head | written(self, "booking") | {"reply": reply}

    @classmethod
    def from_dict(cls, content: Any) -> ClientState:
        """Return what `to_dict` wrote; anything else is a ValueError, KeyError or TypeError."""
        fields = FORMAT.body(content)
        if fields["reply"] is not None:
            own = {"client": fields["client"], "number": fields["number"]}
            fields["reply"] = built(Reply, fields["reply"] | own, "the latest reply")
        state = built(cls, fields)
        if state.base_number > state.number or (state.reply is None) != (state.number == 0):
            raise ValueError("its latest reply and its numbers of replies do not fit together.")
        vectors = [state.base_dual, state.dual, *([state.reply.gradient] if state.reply else [])]
        if state.dual.ndim != 1 or {vector.shape for vector in vectors} != {state.dual.shape}:
            raise ValueError("its vectors have different lengths.")
        return state


class StateFile:
    """A client's state in a file, replaced as a whole: after a crash it holds the old or the new state.

    Only the owner may read the file, since the dual variables in it may be exact.

    Parameters
    ----------
    path : str or Path
        The file; its folder must exist.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    def load(self) -> ClientState | None:
        """Return the state, or None if there is no file; a damaged file is a ValueError."""
        if not self.path.exists():
            return None
        return read_json_file(self.path, ClientState.from_dict, f"{self.path} is not the state of a client")

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keep other processes from the state for a block, by a lock on a second file, which stays."""
        if sys.platform == "win32":
            yield
            return
        import fcntl

        with open(self.path.with_name(f"{self.path.name}.lock"), "a", encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_EX)  # given back when the file is closed
            yield

    def save(self, state: ClientState) -> None:
        """Write the state; when this returns, it is on the disk."""
        write_durably(self.path, json.dumps(state.to_dict(), allow_nan=False))


class StateInMemory:
    """A client's state for as long as the object lives: for simulations."""

    def __init__(self) -> None:
        self._state: ClientState | None = None

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Nobody else has it."""
        yield

    def load(self) -> ClientState | None:
        """Return the state, or None before the first."""
        return self._state

    def save(self, state: ClientState) -> None:
        """Keep the state."""
        self._state = state


MAX_DELTA = 0.01  # a larger one makes every epsilon meaningless
WHOSE = {"client": "for all of its rows together", "record": "for each of its rows"}


def agreed(
    plan: FederatedPlan, name: str, unit: Unit | None, trusts_server: bool, max_epsilon: float | None, max_delta: float
) -> Guarantee:
    """What the plan promises to a client, in the model and for the unit that its limits are about.

    Raises
    ------
    ValueError
        The plan may cost more than the limits, or has no noise and no limit says that this is known.
    """
    if unit is not None:
        one_of("unit", unit, UNITS)
    limit = None if max_epsilon is None else at_least_zero("max_epsilon", max_epsilon)
    most = fraction("max_delta", max_delta)
    protected = unit or plan.unit
    promise = plan.guarantees["central" if trusts_server else "local", protected]
    if limit is None:
        if not promise.is_private:
            raise ValueError(f"the plan has no noise; client {name!r} answers it only with max_epsilon=math.inf.")
        return promise
    # With max_epsilon=math.inf anything goes, whatever delta is.
    if promise.epsilon > limit or (math.isfinite(limit) and promise.delta > most):
        cost = f"epsilon = {promise.epsilon:.4g}, delta = {promise.delta:.3g} {WHOSE[protected]}"
        raise ValueError(f"the plan may cost client {name!r} {cost}, above its limit {limit:g} (delta {most:g}).")
    return promise


class StateStore(Protocol):
    """Where a client's state is kept: `StateFile`, `StateInMemory`, or a store of your own."""

    def load(self) -> ClientState | None:
        """Return the state, or None if there is none."""

    def save(self, state: ClientState) -> None:
        """Keep the state; it must be safe from a crash when this returns."""

    def alone(self) -> AbstractContextManager[None]:
        """Keep other processes from reading and writing it for a block."""


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
    invalid_rows : {"error", "neutral"}, default="error"
        Whether a row that cannot be read is refused, or counts as a null row.
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
        invalid_rows: str = "error",
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
        self.promise: Guarantee = agreed(plan, name, unit, trusts_server, max_epsilon, max_delta)
        if (ledger is None) != (dataset is None):
            raise ValueError("ledger and dataset belong together.")
        self.ledger, self.dataset = ledger, dataset
        self._rng = generator_from(random_state)  # warns of a seed
        self._key = None if self._rng.secure else self._rng.bytes(32)
        self._store, self._lock = _store(state), threading.Lock()
        self._state = self._loaded()
        self.problem = _local_problem(plan, X, y, sample_weight, invalid_rows)

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
        """Reserve the cost of the whole run in the client's ledger: once, whenever a run of this state was killed."""
        if self.ledger is None or self._state.booked:
            return
        asked_before = self._state.booking != ""
        if not asked_before:
            self._save(replace(self._state, booking=secrets.token_hex(8)))
        plan, run = self.plan, f"federated run {self.plan.run!r}, client {self.name!r}"
        note = f"{run}, at most {plan.participations} replies, booking {self._state.booking}"
        if not (asked_before and self._is_in_ledger(note)):
            seeded = not self._rng.secure
            reserve(self.ledger, self.dataset, self.promise.event, note, plan.relation, seeded=seeded).commit()
        self._save(replace(self._state, booked=True))

    def _is_in_ledger(self, note: str) -> bool:
        """Whether an earlier run of this state has booked; whatever became of it, the entry counts in full."""
        assert self.ledger is not None
        assert self.dataset is not None
        return any(entry.note.startswith(note) for entry in self.ledger.entries(self.dataset))


def _local_problem(
    plan: FederatedPlan, X: Any, y: Any, sample_weight: Any, invalid_rows: str = "error"
) -> LocalProblem:
    """The client's rows in scaled columns, clipped as the plan says."""
    problem, public = plan.problem, plan.public
    labels = every_label(problem.loss)[1] if problem.loss.classification else None
    given = {"sample_weight": sample_weight}
    data: Any = load_array(X, y, "numbers", given, classes=labels, invalid_rows=invalid_rows).rows
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
