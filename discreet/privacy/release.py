"""The one road of every release: say what it costs, have the ledger grant it, draw, commit, keep a record."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from discreet._common.exceptions import NotPrivateWarning, UtilityWarning
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.relation import Relation, Unit
from discreet.privacy.release_record import ReleaseRecord, record_of

if TYPE_CHECKING:
    from discreet.data.public import Public
    from discreet.privacy.budget import Budget
    from discreet.privacy.ledger import Ledger
    from discreet.privacy.ledger.reservation import Reservation


class Planned(Protocol):
    """What `booked` asks of a plan; all of it follows from public facts."""

    @property
    def public(self) -> Public: ...
    @property
    def budget(self) -> Budget: ...
    @property
    def guarantee(self) -> Guarantee: ...
    def weaknesses(self, rows_are_known: bool = True) -> list[str]: ...
    def warnings(self) -> list[str]: ...


class Noise(Protocol):
    """Where noise comes from; the ledger refuses it if it is not secure."""

    @property
    def secure(self) -> bool: ...


@dataclass
class Booking:
    """A release that the ledger has granted.

    Attributes
    ----------
    guarantee : Guarantee
        What is promised, a seed named as a leak; after the block with the record of the release.
    record : ReleaseRecord or None
        When it was released and where it was booked; None inside the block.
    """

    guarantee: Guarantee
    record: ReleaseRecord | None = None


@contextmanager
def booked(
    plan: Planned,
    noise: Noise,
    ledger: Ledger | str | None = None,
    dataset: str | None = None,
    note: str = "",
    capped: bool | None = None,
) -> Iterator[Booking]:
    """Warn, state the guarantee, reserve its cost, let the block read the rows, commit, record.

    A block that dies stays counted, since it may have read the rows.

    Guarantee: the block starts only after the ledger, if there is one, has granted the event of the plan.

    Parameters
    ----------
    plan : Planned
        What will be released.
    noise : RandomGenerator
        Draws the noise of the release.
    ledger : Ledger or str, optional
        Where the cost is booked; needs `dataset`.
    dataset : str, optional
        The name under which the data set's budget was opened in the ledger.
    note : str
        What is released: kept in the ledger and in the record.
    capped : bool, optional
        Of a stream: whether the rows of the plan are the most that may come; None for a table.
    """
    warn_about(plan, rows_are_known=capped is not False)
    promise = plan.guarantee if noise.secure else plan.guarantee.with_seed()
    booking, public = Booking(promise), plan.public
    reservation = None
    if ledger is not None:
        event, relation, unit, seeded = promise.event, public.relation, public.unit, not noise.secure
        reservation = reserve(ledger, dataset, event, note, relation, unit=unit, seeded=seeded)
    yield booking
    if reservation is not None:
        reservation.commit()
    booking.record = table_record(public, note, dataset, reservation, capped)
    booking.guarantee = promise.about(booking.record)


def table_record(
    public: Public, note: str, dataset: str | None, reservation: Reservation | None, capped: bool | None = None
) -> ReleaseRecord:
    """The record of a release that has just been made from a table, or from a stream."""
    counted = "estimate" if public.relation is Relation.ADD_REMOVE else "exact"
    rows, rows_are = None if capped is False else public.rows, counted if capped is None else "maximum"
    return record_of(note, rows, public.columns, rows_are, dataset, reservation)


def reserve(
    ledger: Ledger | str,
    dataset: str | None,
    event: Any,
    note: str,
    relation: Relation,
    *,
    unit: Unit = "row",
    seeded: bool = False,
) -> Reservation:
    """Have the ledger count an event, or refuse it; called alone where more than a block lies before the commit.

    For a question that is asked before a plan is run, a run that is booked once for many replies, and the token of a
    paused stream, which another process commits.
    """
    from discreet.privacy.ledger import Ledger

    if dataset is None:
        raise ValueError("ledger needs dataset= as well: the name under which the table's budget was opened.")
    return Ledger.of(ledger).reserve(dataset, event, note, relation, seeded=seeded, unit=unit)


def warn_about(plan: Planned, rows_are_known: bool = True) -> None:
    """Say what a person should know before the rows are read."""
    if plan.budget.is_infinite:
        warnings.warn("epsilon is infinite: the result is not private.", NotPrivateWarning, stacklevel=5)
    for message in plan.weaknesses(rows_are_known):
        warnings.warn(message, NotPrivateWarning, stacklevel=5)
    for message in plan.warnings():
        warnings.warn(message, UtilityWarning, stacklevel=5)
