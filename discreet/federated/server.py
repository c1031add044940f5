"""The server: it keeps one dual variable for every client, made of that client's noisy messages alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from discreet._common.digest import digest_of
from discreet._common.types import BoolArray, FloatArray
from discreet.federated.model_map import ModelMap
from discreet.federated.plan import FederatedPlan, Model, Unit
from discreet.federated.rounds import Refusal, Reply, Request, fault_of
from discreet.federated.server_state import ServerState, drawn_cohorts, least_often
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.random.generator import RandomGenerator, generator_from


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
