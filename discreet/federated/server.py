"""The server: it keeps one dual variable for every client, made of that client's noisy messages alone.

What it must not forget between rounds: who is asked with whom, its table of dual variables, its counts. What it needs
of the problem: the proximal map of the penalty, and the way back to the users' columns.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from discreet._common.codec import Count, Format, Size, UsualArray, built, read_json_file, write_durably, written
from discreet._common.digest import digest_of
from discreet._common.types import BoolArray, FloatArray, IntArray
from discreet.federated.plan import FederatedPlan, Model, Unit
from discreet.federated.rounds import Refusal, Reply, Request, fault_of
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.random.generator import RandomGenerator, generator_from
from discreet.problem.scaled_problem import BlockwiseProblem, ScaledBlock, scaled_penalty_terms


def drawn_cohorts(plan: FederatedPlan, rng: RandomGenerator) -> IntArray:
    """The cohort of each client: a random partition into cohorts whose sizes differ by at most one."""
    cohort = np.zeros(plan.clients, dtype=np.int64)
    if plan.cohorts > 1:
        cohort[rng.permutation(plan.clients)] = np.arange(plan.clients) % plan.cohorts
    return cohort


def check_cohorts(cohort: IntArray, plan: FederatedPlan) -> None:
    """Refuse cohorts that are too few, too many or too small for the plan's guarantees."""
    if cohort.min() < 0 or cohort.max() >= plan.cohorts:
        raise ValueError(f"the plan has {plan.cohorts} cohorts.")
    if np.bincount(cohort, minlength=plan.cohorts).min() < plan.smallest_cohort:
        raise ValueError(f"a cohort has fewer than {plan.smallest_cohort} clients.")


def least_often(rng: RandomGenerator, asked: IntArray, may: BoolArray, count: int) -> IntArray:
    """So many of those that may be asked: those asked least often so far, at random among equals.

    Where all may be asked equally often, each is asked once before any is asked again, in a new random order each time.
    """
    order = rng.permutation(asked.size)
    left = order[may[order]]
    return left[np.argsort(asked[left], kind="stable")][:count]


FORMAT = Format("discreet federated server", 2)
TABLES = ("duals", "sums", "total", "cohort", "accepted", "asked", "missed")


@dataclass(eq=False)
class ServerState:
    """The server's memory of a run; a function of the plan and of the messages.

    `sums` are the sums over each cohort of the table `duals`. They are kept up to date from the sums of the messages
    of a round, and not computed from the table: so the models depend, to the last bit, on the messages of the round
    through these sums alone.
    """

    run: str
    names: list[str]
    round: Size
    ended: str
    averaged: Count
    short: bool  # whether a round was used that fewer answered than the figures of the central model need
    asked_now: list[Count] | None
    duals: UsualArray
    sums: UsualArray
    total: UsualArray  # of the models of the second half of the rounds
    cohort: IntArray  # of each client
    accepted: IntArray
    asked: IntArray
    missed: BoolArray

    @classmethod
    def new(cls, plan: FederatedPlan, names: Sequence[str], cohort: IntArray) -> ServerState:
        """The state before the first round, with the cohort of each client."""
        shapes = {"duals": (plan.clients, plan.dimension), "sums": (plan.cohorts, plan.dimension)}
        tables: dict[str, Any] = {name: np.zeros(shape) for name, shape in shapes.items()}
        tables |= {name: np.zeros(plan.clients, dtype=np.int64) for name in ("accepted", "asked")}
        tables |= {"total": np.zeros(plan.dimension), "missed": np.zeros(plan.clients, dtype=bool), "cohort": cohort}
        start: dict[str, Any] = {"round": 1, "ended": "", "averaged": 0, "short": False, "asked_now": None}
        return cls(run=plan.digest.hex(), names=list(names), **start, **tables)

    @property
    def mean(self) -> FloatArray:
        """The mean of the table, from the sums of the cohorts, always added up in the same order."""
        return self.sums.sum(axis=0) / len(self.names)

    @property
    def turns(self) -> IntArray:
        """In how many rounds each cohort has been asked."""
        turns = np.zeros(len(self.sums), dtype=np.int64)
        np.maximum.at(turns, self.cohort, self.asked)
        return turns

    def move(self, places: list[int], messages: FloatArray, weights: FloatArray, plan: FederatedPlan) -> None:
        """Move the dual variables of a cohort, of which the clients at these places have answered, and their sum.

        The messages lie on the plan's grid, so that their sum is exact. Where enough have answered, the others are
        taken to have sent the mean of the messages; else, and where the plan counts no noise of others, theirs stay.
        """
        cohort, answers, gamma = int(self.cohort[places[0]]), len(places), plan.gamma
        others = self.cohort == cohort
        others[places] = False
        told, members = messages.sum(axis=0), answers + int(others.sum())

        def relaxed(before: FloatArray, after: FloatArray) -> FloatArray:
            return (1.0 - 2.0 * plan.relaxation) * before + 2.0 * plan.relaxation * after

        if 1 < plan.counts_others <= answers:
            moved = members * weights - gamma * (members / answers) * told
            self.duals[others] = relaxed(self.duals[others], weights - gamma * told / answers)
        else:
            moved = self.duals[others].sum(axis=0) + answers * weights - gamma * told
            self.short = self.short or plan.counts_others > 1
        self.sums[cohort] = relaxed(self.sums[cohort], moved)
        self.duals[places] = relaxed(self.duals[places], weights - gamma * messages)

    def write(self, path: Path | None) -> None:
        """Write the state to a file, if there is one."""
        if path is None:
            return
        write_durably(path, json.dumps(FORMAT.head | written(self), allow_nan=False))

    @classmethod
    def read(cls, path: Path | None, plan: FederatedPlan, names: Sequence[str]) -> ServerState | None:
        """Return the state in a file, None if there is none; that of another run is a ValueError."""
        if path is None or not path.exists():
            return None
        return read_json_file(path, lambda content: cls._built(content, plan, names), f"{path} is not a server's state")

    @classmethod
    def _built(cls, content: Any, plan: FederatedPlan, names: Sequence[str]) -> ServerState:
        found, fresh = built(cls, FORMAT.body(content)), cls.new(plan, names, np.zeros(plan.clients, dtype=np.int64))
        if found.run != fresh.run or found.names != fresh.names:
            raise ValueError("it belongs to another run, or to other clients.")
        for name in TABLES:
            if getattr(found, name).shape != getattr(fresh, name).shape:
                raise ValueError(f"its {name} has another shape than the plan's.")
        check_cohorts(found.cohort, plan)
        if found.round > plan.rounds + 1 or found.averaged > plan.rounds:
            raise ValueError(f"the plan has {plan.rounds} rounds.")
        asked = found.asked_now
        if asked is not None and (len(set(asked)) != len(asked) or np.unique(found.cohort[asked]).size != 1):
            raise ValueError("its asked_now does not name different clients of one cohort.")
        return found


class _WithoutRows(BlockwiseProblem):
    """Penalty, constraint and scaling, with no rows at all."""

    def blocks(self) -> Iterable[ScaledBlock]:
        return []


class ModelMap:
    """From the mean of the dual variables to the model, and from scaled columns to the users'.

    Parameters
    ----------
    plan : FederatedPlan
        The plan of the run.
    """

    def __init__(self, plan: FederatedPlan) -> None:
        known: dict[str, Any] = {"problem": plan.problem, "scaling": plan.scaling}
        self._problem = _WithoutRows(**known, rows=plan.public.rows, penalty_terms=scaled_penalty_terms(**known))
        self._gamma = plan.gamma

    def prox(self, mean: FloatArray) -> FloatArray:
        """The model: the proximal map of the penalty and the constraint."""
        return self._problem.prox(mean, self._gamma)

    def to_user(self, weights: FloatArray) -> tuple[FloatArray, float]:
        """Coefficients and intercept in the users' columns."""
        coef, intercept = self._problem.to_user(weights)
        return coef, float(intercept)


@dataclass(frozen=True)
class RoundReport:
    """What happened in a round.

    Attributes
    ----------
    round : int
        The number of the round.
    used : tuple of str
        Clients whose replies were used.
    missing : tuple of str
        Clients that were asked and whose reply did not come, or was of no use.
    ignored : tuple of (str, str)
        What was not used, by whom as far as known, and why.
    shortened : tuple of str
        Clients whose message was longer than the plan's bound and was cut off there.
    ended : str
        Why the run is over; empty if it goes on.
    """

    round: int
    used: tuple[str, ...]
    missing: tuple[str, ...]
    ignored: tuple[tuple[str, str], ...]
    shortened: tuple[str, ...]
    ended: str = ""


class Server:
    """The coordinator of a federated run.

    Its model is always the proximal map of the penalty, applied to the mean of its table of dual variables, whoever
    answered. What it computes is a function of the plan and of the messages.

    Guarantee: in the central model it uses no round that more than the plan's `dropouts` clients of the cohort have
    missed; it asks no cohort more often than `cohort_rounds`, and no client more often than `participations`.

    Parameters
    ----------
    plan : FederatedPlan
    clients : sequence of str
        The names of the clients, as many as the plan says.
    random_state : int or RandomGenerator, optional
        For the cohorts, and the choice of clients where not all are asked; no privacy rests on it.
    state : path, optional
        A file in which the server's state is kept: a server made with it goes on where an earlier one stopped.

    Attributes
    ----------
    round : int
        The number of the current round.
    duals : ndarray of shape (clients, p)
        The table of dual variables, in the order of the names.
    """

    def __init__(
        self,
        plan: FederatedPlan,
        clients: Sequence[str],
        random_state: int | RandomGenerator | None = None,
        state: str | Path | None = None,
    ) -> None:
        self.plan, self.clients = plan, tuple(clients)
        if len(set(self.clients)) != plan.clients or len(self.clients) != plan.clients:
            raise ValueError(f"the plan has {plan.clients} clients with names of their own.")
        self._place = {name: place for place, name in enumerate(self.clients)}
        self._map = ModelMap(plan)
        self._rng = generator_from(random_state)
        self._rng.rekey(digest_of("choice of clients", plan.digest))
        self._path = None if state is None else Path(state)
        known = ServerState.read(self._path, plan, self.clients)
        self._state = known or ServerState.new(plan, self.clients, drawn_cohorts(plan, self._rng))

    @property
    def round(self) -> int:
        """The number of the current round; one more than the plan's after the last."""
        return self._state.round

    @property
    def duals(self) -> FloatArray:
        """The table of dual variables."""
        return self._state.duals.copy()

    @property
    def accepted(self) -> dict[str, int]:
        """The number of the last reply used, by client."""
        return dict(zip(self.clients, self._state.accepted.tolist(), strict=True))

    @property
    def missed(self) -> tuple[str, ...]:
        """Clients that have missed a round in which they were asked."""
        return tuple(name for name, missed in zip(self.clients, self._state.missed, strict=True) if missed)

    @property
    def cohorts(self) -> tuple[tuple[str, ...], ...]:
        """The clients of each cohort, which are always asked together; one cohort where there are none."""
        names, members = np.array(self.clients, dtype=object), self._state.cohort
        return tuple(tuple(names[members == cohort].tolist()) for cohort in range(self.plan.cohorts))

    @property
    def weights(self) -> FloatArray:
        """The model, in scaled columns, the intercept last: the proximal map of the mean of the table."""
        return self._map.prox(self._state.mean)

    @property
    def averaged_weights(self) -> FloatArray:
        """The mean of the models of the second half of the rounds, which has less noise; before it, the model."""
        state = self._state
        return self.weights if state.averaged == 0 else state.total / state.averaged

    def to_user(self, weights: FloatArray) -> tuple[FloatArray, float]:
        """Coefficients and intercept in the users' columns."""
        return self._map.to_user(weights)

    @property
    def guarantees(self) -> dict[tuple[Model, Unit], Guarantee]:
        """The plan's guarantees, as far as they hold after what has happened.

        In a run in the local model more clients may miss a round than the figures for the central model allow; these
        are then no better than the local ones.
        """
        promised = self.plan.guarantees
        if not self._state.short:
            return promised
        return {(model, unit): promised["local", unit] for model, unit in promised}

    @property
    def ended(self) -> str:
        """Why the run is over; empty if it goes on."""
        return self._state.ended

    @property
    def finished(self) -> bool:
        """Whether there is nothing left to ask."""
        return bool(self.ended)

    def next_requests(self) -> dict[str, Request]:
        """What to send in this round, by client; the same again until `receive` is called."""
        state = self._state
        if self.finished:
            return {}
        if state.asked_now is None:
            state.asked_now = self._choose()
            state.asked[state.asked_now] += 1
            state.write(self._path)
        weights = self.weights
        weights.setflags(write=False)
        return {self.clients[i]: Request(state.round, weights, int(state.accepted[i])) for i in state.asked_now}

    def receive(self, replies: Iterable[Any]) -> RoundReport:
        """Take what has arrived and go on to the next round, whoever is missing.

        Parameters
        ----------
        replies : iterable of Reply, Refusal or anything
            Everything that arrived, in any order.

        Returns
        -------
        RoundReport
        """
        state = self._state
        if state.asked_now is None:
            raise RuntimeError("nothing was asked in this round: call next_requests first.")
        ignored: list[tuple[str, str]] = []
        found: dict[int, Reply] = {}
        for reply in replies:
            reason = self._no_reply(reply) or self._no_use(reply, found)
            if reason:
                ignored.append((_name_of(reply), reason))
            else:
                found[self._place[reply.client]] = reply
        return self._apply(found, ignored)

    def _apply(self, found: dict[int, Reply], ignored: list[tuple[str, str]]) -> RoundReport:
        """Move the table by the replies of a round, unless too few have answered for the central model."""
        plan, state = self.plan, self._state
        assert state.asked_now is not None
        places = sorted(found)
        missing = [place for place in state.asked_now if place not in found]
        state.missed[missing] = True
        names = [self.clients[place] for place in missing]
        if not places or (plan.watches_dropouts and len(places) < plan.counts_others):
            ignored += [(self.clients[place], "too few of its cohort have answered") for place in places]
            return self._closed((), names, ignored, ())
        messages = [plan.within_bound(found[place].gradient) for place in places]
        shortened = [self.clients[p] for p, told in zip(places, messages, strict=True) if told is not found[p].gradient]
        state.move(places, plan.grid.nearest(np.array(messages)), self.weights, plan)
        state.accepted[places] = [found[place].number for place in places]
        used = tuple(self.clients[place] for place in places)
        return self._closed(used, names, ignored, tuple(shortened))

    def _closed(
        self, used: tuple[str, ...], missing: list[str], ignored: list[tuple[str, str]], shortened: tuple[str, ...]
    ) -> RoundReport:
        """The end of a round: the mean model, the count of rounds, and the report."""
        plan, state = self.plan, self._state
        number = state.round
        if 2 * number > plan.rounds:
            state.total += self.weights
            state.averaged += 1
        state.round, state.asked_now = number + 1, None
        state.ended = self._reason_to_end()
        state.write(self._path)
        return RoundReport(number, used, tuple(missing), tuple(ignored), shortened, state.ended)

    def _reason_to_end(self) -> str:
        """Why there is no further round; empty if there is one."""
        plan, state = self.plan, self._state
        if state.round > plan.rounds:
            return "all rounds are done"
        may = state.asked < plan.participations if plan.cohorts == 1 else self._open()
        return "" if may.any() else "all clients have answered as often as the plan allows"

    def _open(self) -> BoolArray:
        """Cohorts that may still be asked."""
        return self._state.turns < self.plan.cohort_rounds

    def _no_reply(self, reply: Any) -> str:
        """Why an answer is not a reply of one of the clients; empty if it is."""
        if isinstance(reply, Refusal):
            return f"refused: {reply.reason}"
        if not isinstance(reply, Reply):
            return f"not a reply but {type(reply).__name__}"
        if not isinstance(reply.client, str) or reply.client not in self._place:
            return "unknown client"
        counts = all(isinstance(count, int) and abs(count) < 2**63 for count in (reply.round, reply.number))
        return "" if counts else "its round or its number is not a whole number, or too large"

    def _no_use(self, reply: Reply, found: dict[int, Reply]) -> str:
        """Why a client's reply cannot be used in this round; empty if it can."""
        state, place, number = self._state, self._place[reply.client], reply.number
        assert state.asked_now is not None
        if reply.round != state.round:
            return f"for round {reply.round!r}, not {state.round}"
        if place not in state.asked_now:
            return "was not asked in this round"
        if place in found:
            return "a second reply in this round"
        if not isinstance(number, int) or not state.accepted[place] < number <= state.asked[place]:
            return f"numbered {number!r}, not {state.accepted[place] + 1} to {state.asked[place]}"
        return fault_of(reply.gradient, self.plan.dimension)

    def _choose(self) -> list[int]:
        """The cohort, or the clients, to ask; nothing of the rows is known here."""
        plan, state = self.plan, self._state
        if plan.sampling == "uniform":
            chosen = least_often(self._rng, state.asked, state.asked < plan.participations, plan.per_round)
        else:
            cohort = least_often(self._rng, state.turns, self._open(), 1)
            chosen = np.flatnonzero(state.cohort == cohort)
        return sorted(chosen.tolist())


def _name_of(reply: Any) -> str:
    name = getattr(reply, "client", None)
    return name if isinstance(name, str) else "?"
