"""What the server must not forget between rounds: its table of dual variables and its counts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from discreet._common.json_file import read_json_file
from discreet._common.types import BoolArray, FloatArray, IntArray
from discreet.federated.client_state import LARGEST_NUMBER, is_count, write_durably
from discreet.federated.cohorts import check_cohorts
from discreet.federated.plan import FederatedPlan

FORMAT, VERSION = "discreet federated server", 2
TABLES = ("duals", "sums", "total", "cohort", "accepted", "asked", "missed")
PLAIN = ("round", "ended", "averaged", "short", "asked_now")


@dataclass(eq=False)
class ServerState:
    """The server's memory of a run; a function of the plan and of the messages.

    `sums` are the sums over each cohort of the table `duals`. They are kept up to date from the sums of the messages
    of a round, and not computed from the table: so the models depend, to the last bit, on the messages of the round
    through these sums alone.
    """

    run: str
    names: list[str]
    round: int
    ended: str
    duals: FloatArray
    sums: FloatArray
    total: FloatArray  # of the models of the second half of the rounds
    averaged: int
    cohort: IntArray  # of each client
    accepted: IntArray
    asked: IntArray
    missed: BoolArray
    short: bool = False  # whether a round was used that fewer answered than the figures of the central model need
    asked_now: list[int] | None = None

    @classmethod
    def new(cls, plan: FederatedPlan, names: Sequence[str], cohort: IntArray) -> ServerState:
        """The state before the first round, with the cohort of each client."""
        count, dimension = plan.clients, plan.dimension
        return cls(
            run=plan.digest.hex(),
            names=list(names),
            round=1,
            ended="",
            duals=np.zeros((count, dimension)),
            sums=np.zeros((plan.cohorts, dimension)),
            total=np.zeros(dimension),
            averaged=0,
            cohort=cohort,
            accepted=np.zeros(count, dtype=np.int64),
            asked=np.zeros(count, dtype=np.int64),
            missed=np.zeros(count, dtype=bool),
        )

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
        tables = {name: getattr(self, name).tolist() for name in TABLES}
        others = {name: getattr(self, name) for name in ("run", "names", *PLAIN)}
        write_durably(path, json.dumps({"format": FORMAT, "version": VERSION} | others | tables, allow_nan=False))

    @classmethod
    def read(cls, path: Path | None, plan: FederatedPlan, names: Sequence[str]) -> ServerState | None:
        """Return the state in a file, None if there is none; that of another run is a ValueError."""
        if path is None or not path.exists():
            return None
        return read_json_file(path, lambda content: cls._built(content, plan, names), f"{path} is not a server's state")

    @classmethod
    def _built(cls, content: Any, plan: FederatedPlan, names: Sequence[str]) -> ServerState:
        if content["format"] != FORMAT or content["version"] != VERSION:
            raise ValueError(f"it is not a {FORMAT} of version {VERSION}.")
        if content["run"] != plan.digest.hex() or content["names"] != list(names):
            raise ValueError("it belongs to another run, or to other clients.")
        fresh = cls.new(plan, names, np.zeros(plan.clients, dtype=np.int64))
        tables: dict[str, Any] = {name: np.array(content[name], dtype=getattr(fresh, name).dtype) for name in TABLES}
        for name, table in tables.items():
            if table.shape != getattr(fresh, name).shape or not (np.abs(table) <= LARGEST_NUMBER).all():
                raise ValueError(f"its {name} is damaged.")
        check_cohorts(tables["cohort"], plan)
        others = {name: content[name] for name in PLAIN}
        _check_plain(others, plan)
        asked = others["asked_now"]
        if asked is not None and np.unique(tables["cohort"][asked]).size != 1:
            raise ValueError("its asked_now is of several cohorts.")
        return cls(run=fresh.run, names=fresh.names, **others, **tables)


def _check_plain(found: dict[str, Any], plan: FederatedPlan) -> None:
    """Refuse counts, flags and places that no run of the plan has."""
    asked = found["asked_now"]
    sound = {
        "round": is_count(found["round"]) and 1 <= found["round"] <= plan.rounds + 1,
        "ended": isinstance(found["ended"], str),
        "averaged": is_count(found["averaged"]) and found["averaged"] <= plan.rounds,
        "short": isinstance(found["short"], bool),
        "asked_now": asked is None
        or (
            (isinstance(asked, list) and asked and all(is_count(place) and place < plan.clients for place in asked))
            and len(set(asked)) == len(asked)
        ),
    }
    for name, good in sound.items():
        if not good:
            raise ValueError(f"its {name} is damaged.")
