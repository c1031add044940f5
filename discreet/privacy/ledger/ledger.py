"""A durable privacy budget for each data set: reserve before the rows are read, commit after.

What is stored is events, never epsilons. What was spent is computed from all events of a data set, composed
together, so better accounting later makes old spending cheaper, and epsilons are never added up.
"""

from __future__ import annotations

import json
import os
from typing import Self

from discreet._common.text import LONGEST, one_line
from discreet.privacy.ledger.account import Account, Allowance, account_in, terms_of, total_problems
from discreet.privacy.ledger.chain import Chain, View
from discreet.privacy.ledger.locks import FORKS
from discreet.privacy.ledger.records import GENESIS, KINDS, ChainError, Record
from discreet.privacy.ledger.reservation import Entry, Reservation, current_user, entries_of
from discreet.privacy.ledger.store import MEMORY, file_of, without_password
from discreet.privacy.ledger.total import Event, Total, event_text
from discreet.privacy.relation import Relation, Unit, unit_from


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
    >>> with ledger.reserve("patients", gaussian_event(20.0), note="mean age", relation="replace"):
    ...     pass  # read the rows, add the noise, publish
    >>> round(ledger.spent("patients"), 3)
    0.189
    >>> ledger.fits("patients", gaussian_event(1.0))
    False
    """

    @FORKS.using()
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

    @FORKS.using()
    def open(
        self,
        dataset: str,
        epsilon: float,
        delta: float,
        relation: Relation | str = Relation.REPLACE,
        unit: Unit = "row",
    ) -> None:
        """Set the total budget of a data set; it never changes. The same numbers again have no effect.

        Parameters
        ----------
        dataset : str
            Name of the data set.
        epsilon, delta : float
            What all releases together must keep.
        relation : {"replace", "zero_out", "add_remove"}, default="replace"
            Which tables count as neighbours.
        unit : {"row", "person"}, default="row"
            What neighbours differ in: one row, or one person with all of their rows. Releases for the other unit are
            refused.
        """
        wanted = Allowance(dataset, float(epsilon), float(delta), Relation(relation), unit_from(unit))
        with self._chain.writing(create=True) as writer:
            known = account_in(writer, dataset)
            if known is None:
                terms = terms_of(wanted) | {"who": current_user()}
                writer.append("open", dataset, terms, Account(wanted, Total()).to_text())
            elif (has := known.allowance) != wanted:
                raise ValueError(
                    f"data set {dataset!r} is open with epsilon={has.epsilon}, delta={has.delta},"
                    f" relation={has.relation.value!r}, unit={has.unit!r}; a budget never changes"
                )

    @FORKS.using()
    def reserve(
        self,
        dataset: str,
        event: Event,
        note: str = "",
        relation: Relation | str | None = None,
        target: str = "",
        *,
        seeded: bool = False,
        unit: Unit = "row",
        key: str = "",
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
            Why; kept beside the entry, in plain text.
        relation : {"replace", "zero_out", "add_remove"}
            The relation under which the event was accounted; it must be that of the budget, and must be said: an event
            accounted for the removal of a row covers less than half of what its replacement costs.
        target : str, default=""
            The column that is predicted, kept beside the entry.
        seeded : bool, default=False
            Whether the noise comes from a seed: refused unless the ledger was made with `allow_seeded=True`. The note
            then says so.
        unit : {"row", "person"}, default="row"
            What the release protects; it must be that of the budget.
        key : str, default=""
            What the ledger keeps for `Reservation.key`, and shows nowhere else.

        Returns
        -------
        Reservation
            A context manager, which commits when its block ends without an exception.

        Raises
        ------
        BudgetExceededError
            The budget does not cover the event; nothing was written.
        ValueError
            The data set was never opened, or is kept under another relation or unit, or the noise is seeded.
        """
        if seeded:
            self.check_seeded()
            note = f"{note} (seeded)".strip()
        asked = event_text(event)
        # Spending never falls, so a refusal before the lock is final; an acceptance is remembered, so that
        # the same sum is not computed again while others wait for the lock.
        self.account(dataset, relation, unit).checked(asked, relation, unit).require(asked)
        content = {"event": json.loads(asked), "note": note, "who": current_user(), "target": target}
        if unit != "row":  # earlier versions knew no other
            content["unit"] = unit
        if key:
            content["key"] = key
        with self._chain.writing() as writer:
            account = account_in(writer, dataset)
            if account is None:
                raise _unknown(dataset, relation, unit)
            account.checked(asked, relation, unit).require(asked)
            id = writer.append("reserve", dataset, content, account.plus(asked).to_text())
            head = writer.head
        return Reservation(self, id, dataset, head)

    def check_seeded(self) -> None:
        """Refuse noise from a seed, unless this ledger was made to allow it."""
        if not self.allow_seeded:
            raise ValueError(
                "the noise would come from a seed or a NumPy generator, and whoever knows it can remove the noise, so "
                "the ledger refuses; leave random_state=None (no --seed), or pass "
                "ledger=Ledger(url, allow_seeded=True) to book it all the same"
            )

    @FORKS.using()
    def fits(
        self, dataset: str, event: Event, relation: Relation | str | None = None, unit: Unit | None = None
    ) -> bool:
        """Whether `reserve` would accept the event now, under the budget's relation and unit if none are named."""
        account, asked = self.account(dataset), event_text(event)
        kept = account.allowance
        return account.checked(asked, relation or kept.relation, unit or kept.unit).covers(asked)

    @FORKS.using()
    def spent(self, dataset: str) -> float:
        """Epsilon, at the data set's delta, of all its events composed together."""
        return self.account(dataset).spent

    @FORKS.using()
    def remaining(self, dataset: str) -> float:
        """Promised epsilon minus `spent`, at least 0; an event that costs more alone may still fit."""
        return self.account(dataset).remaining

    @FORKS.using()
    def room(self, dataset: str) -> float | None:
        """Largest epsilon, at the data set's delta, of one more release with Gaussian noise (Laplace if delta is 0).

        More than `remaining`, since costs compose better than they add; None beside other noise, where it takes long.
        """
        return self.account(dataset).room()

    @FORKS.using()
    def account(self, dataset: str, relation: Relation | str | None = None, unit: Unit = "row") -> Account:
        """Return what was promised for the data set and spent; `relation` and `unit` complete the advice for others."""
        with self._chain.viewing() as view:
            account = account_in(view, dataset)
        if account is None:
            raise _unknown(dataset, relation, unit)
        return account

    @FORKS.using()
    def allowance(self, dataset: str) -> Allowance:
        """Return what was promised for the data set."""
        return self.account(dataset).allowance

    @FORKS.using()
    def exists(self) -> bool:
        """Whether there is a ledger at the address; `open` makes one."""
        return self._chain.store.exists()

    def existing(self) -> Self:
        """Return the ledger itself; one that is not there is refused, since it would look like one without entries."""
        if not self.exists():
            raise ValueError(f"there is no ledger at {without_password(self.url)}; discreet ledger open makes one.")
        return self

    @FORKS.using()
    def datasets(self) -> list[str]:
        """Names of the data sets, in the order in which they were opened."""
        with self._chain.viewing() as view:
            return view.opened()

    @FORKS.using()
    def entries(self, dataset: str) -> list[Entry]:
        """All reservations of the data set, oldest first; also of a damaged ledger."""
        records = [record for record in self._chain.read()[0] if record.dataset == dataset]
        if not records:
            raise _unknown(dataset)
        return entries_of(records)

    @FORKS.using()
    def head(self, dataset: str | None = None) -> str:
        """Hash of the latest record, of all or of one data set: write it down, give it to `verify`."""
        with self._chain.viewing() as view:
            if dataset is None:
                tip = view.tip()
                return GENESIS if tip is None else tip.hash
            latest = view.latest(dataset, *KINDS)
        if latest is None:
            raise _unknown(dataset)
        return latest.hash

    @FORKS.using()
    def verify(self, head: str | None = None) -> list[str]:
        """Read all records, add them up again, and list what is wrong with the ledger.

        With a `head` written down earlier, a shortened or wholly rewritten history is noticed too.

        Parameters
        ----------
        head : str, optional
            What `head()` returned at some time.

        Returns
        -------
        list of str
            One sentence for each thing that is wrong: records or totals that were altered or are missing, records
            that this version does not understand, a file that is missing, empty, corrupt, read-only or has two names.
        """
        found = self._chain.store.faults()
        try:
            records, totals, wrong = self._chain.everything()
        except (ChainError, OSError) as error:
            return found or [str(error)]
        found += wrong or total_problems(records, totals)
        if head is not None and head not in {GENESIS, *(record.hash for record in records)}:
            found.append(f"hash {head} is not in the ledger: records were cut off or rewritten")
        return [one_line(problem, LONGEST) for problem in found]

    @FORKS.using()
    def backup(self, path: str | os.PathLike[str]) -> str:
        """Copy the ledger to a new file while others go on using it, and return the hash of its latest record.

        A copy that is put back has forgotten what was spent since; `verify(head=...)` with a later hash says so.

        Parameters
        ----------
        path : str or path
            A file that does not exist yet.
        """
        copy = Ledger(path)
        if copy.url == MEMORY:
            raise ValueError("a backup needs the path of a new file")
        self._chain.store.backup(file_of(copy.url))
        wrong = copy.verify()
        if wrong:
            raise ChainError(f"the ledger was copied to {path}, but it is damaged: {wrong[0]}")
        return copy.head()

    @FORKS.using()
    def _commit(self, asked: Reservation) -> None:
        if not self._chain.store.exists():
            raise _never_granted(asked)
        with self._chain.writing() as writer:
            if writer.commits(_granted(writer, asked)):
                raise RuntimeError(f"reservation {asked.id} of data set {asked.dataset!r} is already committed")
            writer.append("commit", asked.dataset, {"entry": asked.id})

    @FORKS.using()
    def _key(self, asked: Reservation) -> str:
        with self._chain.viewing() as view:
            return str(_granted(view, asked).content.get("key", ""))

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def __reduce__(self) -> tuple[type[Ledger], tuple[str, ...], dict[str, bool]]:
        if self.url == MEMORY:
            raise TypeError("an in-memory ledger cannot be pickled: processes share a ledger through a file")
        return type(self), (self.url,), {"allow_seeded": self.allow_seeded}

    def _repr_html_(self) -> str:
        from discreet._common.blocks import as_html
        from discreet.privacy.ledger.statement import blocks_of

        return as_html(blocks_of(self))

    def __repr__(self) -> str:
        return f"Ledger({without_password(self.url)!r})"


def _never_granted(asked: Reservation) -> ValueError:
    return ValueError(f"this ledger never granted reservation {asked.id} of data set {asked.dataset!r}")


def _granted(view: View, asked: Reservation) -> Record:
    """The record of a reservation, if it is one of this ledger's."""
    found = view.records(asked.id, asked.id)
    wanted = ("reserve", asked.dataset, asked.hash)
    if not found or (found[0].kind, found[0].dataset, found[0].hash) != wanted:
        raise _never_granted(asked)
    return found[0]


def _unknown(dataset: str, relation: Relation | str | None = None, unit: Unit = "row") -> ValueError:
    kept = Relation(relation or Relation.REPLACE).value
    told = "" if unit == "row" else f", unit={unit!r}"
    return ValueError(
        f"unknown data set {dataset!r} in this ledger; first set its budget, once: discreet ledger open, or for example"
        f" ledger.open({dataset!r}, epsilon=1.0, delta=1e-6, relation={kept!r}{told})"
    )
