"""A durable privacy budget for each data set: reserve before the rows are read, commit after.

What was spent is never stored. It is computed from all events of a data set, composed together, so
better accounting later makes old spending cheaper, and epsilons are never added up.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from datetime import datetime
from typing import Self

from discreet._common.exceptions import BudgetExceededError
from discreet.privacy.ledger.allowance import Allowance, Event, event_text
from discreet.privacy.ledger.chain import GENESIS, MEMORY, Chain, ChainError, Record
from discreet.privacy.ledger.reservation import Entry, Reservation
from discreet.privacy.relation import Relation


class Ledger:
    """The privacy budgets of data sets, in a file or a database that outlives the process.

    Guarantee: for each data set, the composition of all events ever reserved, by any process or thread,
    is (epsilon, delta) differentially private with the numbers given to `open`, under its relation,
    provided that each event describes what was released and that nobody rewrites the file.

    Parameters
    ----------
    url : str or path, default="sqlite:///discreet.db"
        A file (`"budget.db"` or `"sqlite:///budget.db"`), `"sqlite://"` for memory, or
        `"postgresql://..."`. A relative path is resolved now: a worker started in another folder must
        not find an empty ledger there. Nothing is created before first use.
    allow_seeded : bool, default=False
        Whether fits whose noise comes from a seed or a NumPy generator may be booked here. They are refused by
        default: whoever knows the seed can remove the noise, so that the promise does not hold.

    Notes
    -----
    Copies are the same object (`copy`, `deepcopy`, `sklearn.clone`); pickles carry only the address and
    `allow_seeded`.

    Examples
    --------
    >>> from discreet import Ledger
    >>> from discreet.privacy.accounting import gaussian_event
    >>> ledger = Ledger("sqlite://")  # in memory, to try things out
    >>> ledger.open("patients", epsilon=1.0, delta=1e-6)
    >>> with ledger.reserve("patients", gaussian_event(20.0), note="mean age"):
    ...     pass  # read the rows, add the noise, publish
    >>> round(ledger.spent("patients"), 3)
    0.189
    >>> ledger.fits("patients", gaussian_event(1.0))
    False
    """

    def __init__(self, url: str | os.PathLike[str] = "sqlite:///discreet.db", *, allow_seeded: bool = False) -> None:
        self._chain = Chain(url)
        self.allow_seeded = allow_seeded

    @classmethod
    def of(cls, value: Ledger | str | os.PathLike[str]) -> Ledger:
        """Return `value` itself if it is a ledger, else the ledger at that URL or path."""
        return value if isinstance(value, Ledger) else cls(value)

    @property
    def url(self) -> str:
        """The address, absolute; it may hold a password."""
        return self._chain.url

    def open(self, dataset: str, epsilon: float, delta: float, relation: Relation | str = Relation.REPLACE) -> None:
        """Set the total budget of a data set; it never changes. The same numbers again have no effect.

        Parameters
        ----------
        dataset : str
            Name of the data set.
        epsilon, delta : float
            What all releases together must keep.
        relation : {"replace", "zero_out", "add_remove"}, default="replace"
            Which tables count as neighbours.
        """
        wanted = Allowance(dataset, float(epsilon), float(delta), Relation(relation))
        with self._chain.writing() as pen:
            known = _allowances(pen.records).get(dataset)
            if known is None:
                terms = {"epsilon": wanted.epsilon, "delta": wanted.delta, "relation": wanted.relation.value}
                pen.append("open", dataset, terms)
            elif known != wanted:
                raise ValueError(
                    f"data set {dataset!r} is open with epsilon={known.epsilon}, delta={known.delta},"
                    f" relation={known.relation.value!r}; a budget never changes"
                )

    def reserve(
        self,
        dataset: str,
        event: Event,
        note: str = "",
        relation: Relation | str | None = None,
        *,
        seeded: bool = False,
    ) -> Reservation:
        """Count `event` against the budget of `dataset`, before the rows are read.

        Guarantee: returns only if this event and all earlier ones compose to at most the promised
        budget; of two callers who compete for the last of it, one is refused.

        Parameters
        ----------
        dataset : str
            Name of an opened data set.
        event : DpEvent
            What will be done to the rows, such as `gaussian_event(20.0)` or the `event` of a plan.
        note : str, default=""
            Kept beside the entry, in plain text.
        relation : Relation or str, optional
            The relation under which the event was accounted; it must be that of the budget.
        seeded : bool, default=False
            Whether the noise comes from a seed: refused unless the ledger was made with `allow_seeded=True`. The note
            then says so.

        Returns
        -------
        Reservation
            A context manager, which commits when its block ends without an exception.

        Raises
        ------
        BudgetExceededError
            The budget does not cover the event; nothing was written.
        ValueError
            The data set was never opened, or is kept under another relation, or the noise is seeded.
        """
        if seeded:
            self.check_seeded()
            note = f"{note} (seeded)".strip()
        asked = event_text(event)
        # Spending never falls, so a refusal before the lock is final; an acceptance is remembered, so that
        # the same sum is not computed again while others wait for the lock.
        _require_room(_account(self._intact(), dataset, relation), asked)
        with self._chain.writing() as pen:
            _require_room(_account(pen.records, dataset, relation), asked)
            id = pen.append("reserve", dataset, {"event": json.loads(asked), "note": note})
            return Reservation(self, id, dataset, pen.head)

    def check_seeded(self) -> None:
        """Refuse noise from a seed, unless this ledger was made to allow it."""
        if not self.allow_seeded:
            raise ValueError(
                "the noise would come from a seed or a NumPy generator, and whoever knows it can remove the noise, so "
                "the ledger refuses; leave random_state=None (no --seed), or pass "
                "ledger=Ledger(url, allow_seeded=True) to book it all the same"
            )

    def fits(self, dataset: str, event: Event) -> bool:
        """Whether `reserve` would accept the event now."""
        allowance, events = _account(self._intact(), dataset)
        return allowance.covers((*events, event_text(event)))

    def spent(self, dataset: str) -> float:
        """Epsilon, at the data set's delta, of all its events composed together."""
        allowance, events = _account(self._intact(), dataset)
        return allowance.cost(events)

    def remaining(self, dataset: str) -> float:
        """Promised epsilon minus `spent`, at least 0; an event that costs more alone may still fit."""
        allowance, events = _account(self._intact(), dataset)
        return max(0.0, allowance.epsilon - allowance.cost(events))

    def allowance(self, dataset: str) -> Allowance:
        """Return what was promised for the data set."""
        return _account(self._intact(), dataset)[0]

    def datasets(self) -> list[str]:
        """Names of the data sets, in the order in which they were opened."""
        return list(_allowances(self._intact()))

    def entries(self, dataset: str) -> list[Entry]:
        """All reservations of the data set, oldest first; also of a damaged ledger."""
        records = _of_dataset(self._chain.read()[0], dataset)
        commits = {r.content["entry"]: r.created for r in records if r.kind == "commit"}
        return [_entry(r, commits.get(r.number)) for r in records if r.kind == "reserve"]

    def head(self, dataset: str | None = None) -> str:
        """Hash of the latest record, of all or of one data set: write it down, give it to `verify`."""
        records = self._chain.read()[0]
        chosen = records if dataset is None else _of_dataset(records, dataset)
        return chosen[-1].hash if chosen else GENESIS

    def verify(self, head: str | None = None) -> list[str]:
        """List what is wrong with the records; empty if none was edited, inserted or deleted.

        With a `head` written down earlier, a shortened or wholly rewritten history is noticed too.
        """
        records, problems = self._chain.read()
        if head is not None and head not in {GENESIS, *(record.hash for record in records)}:
            problems.append(f"hash {head} is not in the ledger: records were cut off or rewritten")
        return problems

    def _commit(self, asked: Reservation) -> None:
        wanted = ("reserve", asked.id, asked.dataset, asked.hash)
        with self._chain.writing() as pen:
            if wanted not in {(r.kind, r.number, r.dataset, r.hash) for r in pen.records}:
                raise ValueError(f"this ledger never granted reservation {asked.id} of data set {asked.dataset!r}")
            if asked.id in {r.content["entry"] for r in pen.records if r.kind == "commit"}:
                raise RuntimeError(f"reservation {asked.id} of data set {asked.dataset!r} is already committed")
            pen.append("commit", asked.dataset, {"entry": asked.id})

    def _intact(self) -> list[Record]:
        records, problems = self._chain.read()
        if problems:
            raise ChainError(f"the ledger was damaged, its sums mean nothing: {problems[0]}")
        return records

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def __reduce__(self) -> tuple[type[Ledger], tuple[str], dict[str, bool]]:
        if self.url == MEMORY:
            raise TypeError("an in-memory ledger cannot be pickled: processes share a ledger through a file")
        return type(self), (self.url,), {"allow_seeded": self.allow_seeded}

    def __repr__(self) -> str:
        from sqlalchemy import make_url

        return f"Ledger({make_url(self.url).set(query={}).render_as_string()!r})"


def _allowances(records: Sequence[Record]) -> dict[str, Allowance]:
    opened = (r for r in records if r.kind == "open")
    return {
        r.dataset: Allowance(r.dataset, t["epsilon"], t["delta"], Relation(t["relation"]))
        for r in opened
        for t in [r.content]
    }


def _of_dataset(records: Sequence[Record], dataset: str) -> list[Record]:
    chosen = [record for record in records if record.dataset == dataset]
    if not chosen:
        raise _unknown(dataset)
    return chosen


def _account(
    records: Sequence[Record], dataset: str, relation: Relation | str | None = None
) -> tuple[Allowance, tuple[str, ...]]:
    """Return the promise for the data set and every event counted against it, oldest first."""
    allowance = _allowances(records).get(dataset)
    if allowance is None:
        raise _unknown(dataset, relation)
    if relation is not None and Relation(relation) is not allowance.relation:
        raise ValueError(
            f"data set {dataset!r} is kept under relation={allowance.relation.value!r};"
            f" an event under {Relation(relation).value!r} cannot be added to it"
        )
    reserved = (r for r in records if r.kind == "reserve" and r.dataset == dataset)
    return allowance, tuple(json.dumps(r.content["event"], sort_keys=True) for r in reserved)


def _require_room(account: tuple[Allowance, tuple[str, ...]], asked: str) -> None:
    allowance, events = account
    if allowance.covers((*events, asked)):
        return
    spent = allowance.cost(events)
    raise BudgetExceededError(
        f"data set {allowance.dataset!r} does not cover this: asked epsilon {allowance.cost((asked,)):.6g},"
        f" spent {spent:.6g}, remaining {max(0.0, allowance.epsilon - spent):.6g} of {allowance.epsilon:.6g}"
        f" (delta {allowance.delta:.6g}, relation {allowance.relation}); together they would cost"
        f" {allowance.cost((*events, asked)):.6g}"
    )


def _unknown(dataset: str, relation: Relation | str | None = None) -> ValueError:
    kept = Relation(relation or Relation.REPLACE).value
    return ValueError(
        f"unknown data set {dataset!r}; first set its budget, for example"
        f" ledger.open({dataset!r}, epsilon=1.0, delta=1e-6, relation={kept!r})"
    )


def _entry(record: Record, committed: str | None) -> Entry:
    from discreet.privacy.accounting import event_from_dict

    return Entry(
        id=record.number,
        dataset=record.dataset,
        event=event_from_dict(record.content["event"]),
        note=record.content["note"],
        status="reserved" if committed is None else "committed",
        created=datetime.fromisoformat(record.created),
        committed=None if committed is None else datetime.fromisoformat(committed),
    )
