"""What the server must not forget between rounds: who is asked with whom, its table of dual variables, its counts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from discreet._common.codec import Count, Format, Size, UsualArray, built, read_json_file, written
from discreet._common.types import BoolArray, FloatArray, IntArray
from discreet.federated.client_state import write_durably
from discreet.federated.plan import FederatedPlan
from discreet.privacy.random.generator import RandomGenerator


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
        count, dimension = plan.clients, plan.dimension
        return cls(
            run=plan.digest.hex(),
            names=list(names),
            round=1,
            ended="",
            averaged=0,
            short=False,
            asked_now=None,
            duals=np.zeros((count, dimension)),
            sums=np.zeros((plan.cohorts, dimension)),
            total=np.zeros(dimension),
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
