"""Shards as Dask actors: one on each worker, rebuilt elsewhere when its worker dies.

A round sends one packed part to all shards and gets one array from each. Only shards that were lost are asked again,
for the same sum: noise is added by the driver afterwards, so a fault releases nothing and costs nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable
from typing import Any

from discreet._common.types import FloatArray, Progress
from discreet.data.distributed.engine import fits
from discreet.data.distributed.partitions import CHANGED
from discreet.data.distributed.parts import Answer, How, Part, combined, pack
from discreet.data.distributed.shard import Shard, check_cuts, recipes_for
from discreet.data.stored_table import Encoder, StoredTable

LOOK_EVERY = 0.5  # seconds between two looks whether workers that have not answered are alive
RESTART_WAIT = 5.0  # seconds in which a worker that died may come back, before another one gets its rows as well
NO_WORKER_WAIT = 60.0  # seconds without any worker after which the run ends
MOST_REBUILDS = 5  # for one sum: rows that kill every worker must not be tried for ever
NOBODY = (
    "no Dask worker is there, or its scheduler is gone; nothing of this sum was released. Start them, and train again."
)


class WorkersLostError(RuntimeError):
    """Workers died so often, or for so long, that a sum could not be computed; nothing of it was released."""


class DaskEngine:
    """One actor for each worker of a cluster, each with consecutive rows of the table."""

    def __init__(self, client: Any, table: StoredTable, encode: Encoder, progress: Progress | None = None) -> None:
        self._client, self._source, self._progress = client, table.source, progress
        self._recipes = recipes_for(table, encode, len(self._living(wanted=1, wait=NO_WORKER_WAIT)))
        self._packed = [recipe.packed() for recipe in self._recipes]
        self.n_rows = sum(recipe.rows for recipe in self._recipes)
        self._actors: list[Any] = [None] * len(self._recipes)  # None: lost, or not made yet
        self._places = [""] * len(self._recipes)  # the address of the worker of each shard
        self._checksums: dict[int, list[float]] = {}
        self._complete(lambda missing: dict.fromkeys(missing, Answer()))  # makes and loads them

    def reduce(self, part: Part, how: How) -> FloatArray:
        """The sum, or the maximum, over all shards.

        Raises
        ------
        WorkersLostError
            Workers die again and again.
        """
        packed = pack(part)
        answers = self._complete(lambda missing: self._ask(missing, "reduce", packed, how))
        return combined([answers[j].unwrap() for j in range(len(self._recipes))], how)

    def rebuild(self, lost: list[int]) -> None:
        """Make shards on living workers, first on those that have none, and let them load their rows."""
        for j in lost:
            self._actors[j], self._places[j] = None, ""
        self._living(wanted=len(self._recipes), wait=RESTART_WAIT)
        for j in lost:
            workers = self._living(wanted=1, wait=NO_WORKER_WAIT)
            place = min(workers, key=lambda address: (self._places.count(address), address))
            share = (workers[place]["memory_limit"] or 0) // (self._places.count(place) + 1)
            self._places[j] = place
            self._actors[j] = self._made(j, place, fits(self._recipes[j], share), workers[place]["nthreads"])
        made = [j for j in lost if self._actors[j] is not None]
        for j, answer in self._ask(made, "load").items():
            found = answer.unwrap().tolist()
            if self._checksums.setdefault(j, found) != found:
                raise ValueError(CHANGED.format(source=self._source))
        check_cuts(self._checksums, self._source)
        if self._progress is not None:
            self._progress(sum(self._recipes[j].rows for j in self._checksums), self.n_rows)

    def _complete(self, ask: Callable[[list[int]], dict[int, Answer]]) -> dict[int, Answer]:
        """The answer of every shard; those that are lost are rebuilt and asked again."""
        answers: dict[int, Answer] = {}
        for _ in range(MOST_REBUILDS + 1):
            lost = [j for j, actor in enumerate(self._actors) if actor is None]
            if lost:
                self.rebuild(lost)
            missing = [j for j, actor in enumerate(self._actors) if j not in answers and actor is not None]
            answers |= ask(missing)
            if len(answers) == len(self._recipes):
                return answers
        raise WorkersLostError(
            f"workers died in each of {MOST_REBUILDS + 1} tries of one sum, and nothing of it was released; look at "
            "their logs, and give them more memory."
        )

    def _made(self, j: int, place: str, held: bool, jobs: int) -> Any:
        """The actor of a shard on a worker; None if the worker dies meanwhile."""
        where = {"actor": True, "workers": [place], "allow_other_workers": False, "pure": False}
        future = self._client.submit(Shard, *self._packed[j], held, jobs, **where)
        while not future.done() and place in self._workers():
            with contextlib.suppress(Exception):
                future.result(timeout=LOOK_EVERY)
        return future.result() if future.status == "finished" else None

    def _ask(self, which: list[int], method: str, *arguments: Any) -> dict[int, Answer]:
        """What these shards answer; one that is lost does not, and is marked."""
        calls: dict[int, Any] = {}
        for j in which:
            with contextlib.suppress(RuntimeError):  # Dask knows that the worker is gone
                calls[j] = getattr(self._actors[j], method)(*arguments)
        answers: dict[int, Any] = {}
        while len(answers) < len(calls):
            waiting = {j: call for j, call in calls.items() if j not in answers}
            answers |= self._client.sync(_settled, waiting)
            living = self._workers() if len(answers) < len(calls) else {}
            answers |= {j: None for j in waiting if j not in answers and self._places[j] not in living}
        found = {j: answer for j, answer in answers.items() if isinstance(answer, Answer)}
        for j in which:
            if j not in found:
                self._actors[j] = None
        return found

    def _workers(self) -> dict[str, Any]:
        """All workers, of which there are none without a scheduler; some versions show five unless asked for more."""
        return dict(self._client.scheduler_info(n_workers=-1).get("workers", {}))

    def _living(self, wanted: int, wait: float) -> dict[str, Any]:
        """The workers; waits a while until there are as many as wanted, and for ever for none of them."""
        end = time.monotonic() + wait
        while len(workers := self._workers()) < wanted and time.monotonic() < end and not self._is_closed():
            time.sleep(0.1)
        if not workers and (wait >= NO_WORKER_WAIT or self._is_closed()):
            raise WorkersLostError(NOBODY)
        return workers

    def _is_closed(self) -> bool:
        """Whether Dask has given up: a scheduler that does not answer again within the timeout of the client."""
        return bool(self._client.status == "closed")


async def _settled(calls: dict[int, Any]) -> dict[int, Any]:
    """What calls of actors have returned within a while; None for those that the engine says have failed."""
    found: dict[int, Any] = {}

    async def settle(j: int, call: Any) -> None:
        try:
            found[j] = await call
        except Exception:
            found[j] = None

    tasks = [asyncio.ensure_future(settle(j, call)) for j, call in calls.items()]
    try:
        await asyncio.wait(tasks, timeout=LOOK_EVERY)
    finally:
        for task in tasks:  # also where the run is broken off: nothing is left that would complain later
            task.cancel()
    return found
