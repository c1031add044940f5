"""What is promised: the guarantee that comes with every private result, and the record of the release that made it.

The record says which result, from which table, when, by which software, at whose cost.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np

from discreet._common.blocks import Groups, Shown
from discreet._common.codec import Amount, Count, Format, Unbounded, built, described, plain, written
from discreet._common.types import FloatArray
from discreet.privacy import accounting
from discreet.privacy.budget import Budget
from discreet.privacy.relation import Relation, Unit
from discreet.privacy.statement import SEEDED, Meaning, belief_after, blocks_of, percent_at_most, statement_of

if TYPE_CHECKING:
    from discreet.privacy.ledger.reservation import Reservation

RowsAre = Literal["exact", "estimate", "maximum"]
InvalidRows = Literal["error", "neutral"]
FORMAT = Format("discreet guarantee", 1, derived=("meaning", "statement"))


@dataclass(frozen=True)
class LedgerReceipt:
    """What a ledger says about a release at the moment at which it was committed.

    Attributes
    ----------
    dataset : str
        The name under which the data set's budget was opened.
    entries : tuple of int
        Numbers of the ledger's records for this release.
    hash : str
        Hash of the last of them; `Ledger.verify(hash)` says whether it is still there.
    spent : float
        Epsilon of all releases of the data set so far, this one included, at the budget's delta.
    epsilon, delta : float
        The budget of the data set.
    """

    dataset: str
    entries: tuple[Count, ...]
    hash: str
    spent: Amount
    epsilon: Amount
    delta: Amount

    @classmethod
    def of(cls, reservation: Reservation) -> LedgerReceipt:
        """The receipt of a reservation that has been committed."""
        book, name = reservation.ledger, reservation.dataset
        granted = book.allowance(name)
        return cls(name, (reservation.id,), reservation.hash, book.spent(name), granted.epsilon, granted.delta)


@dataclass(frozen=True)
class ReleaseRecord:
    """The circumstances of a release, all of them public.

    Attributes
    ----------
    result : str
        What was released, such as "LogisticRegression".
    rows : int, optional
        Number of rows; None for a stream without a declared end.
    rows_are : {"exact", "estimate", "maximum"}
        Whether that is the number itself, a public estimate of it (relation "add_remove", which protects the number),
        or the most that a stream may have.
    columns : int
        Number of columns, the target not counted.
    date : str
        When, in UTC, as ISO 8601.
    version : str
        The version of discreet.
    table : str, optional
        The name of the table: that of its file, or the `dataset` of the ledger.
    ledger : LedgerReceipt, optional
        Where the cost was booked.
    invalid_rows : {"error", "neutral"}
        Whether a row that could not be read would have stopped the run, or counted as a null row.
    """

    result: str
    rows: Count | None
    rows_are: RowsAre
    columns: Count
    date: str
    version: str
    table: str | None = None
    ledger: LedgerReceipt | None = None
    invalid_rows: InvalidRows = "error"

    in_every_file: ClassVar[tuple[str, ...]] = ("table", "ledger")

    def of_table(self, name: str, entries: tuple[int, ...] = ()) -> ReleaseRecord:
        """Return the same record with the name of the table, and with earlier entries of the ledger for it."""
        receipt = self.ledger
        if receipt is not None:
            receipt = replace(receipt, entries=(*entries, *receipt.entries))
        return replace(self, table=name, ledger=receipt)

    def to_dict(self) -> dict[str, Any]:
        """Return the record as JSON values."""
        return written(self, "invalid_rows")


def record_of_parts(parts: Sequence[ReleaseRecord | None]) -> ReleaseRecord | None:
    """The record of several releases from the same rows, such as the steps of a pipeline, in their order.

    None if the circumstances of a part are not known, or if the parts do not agree on the table or on the ledger.
    """
    known = [part for part in parts if part is not None]
    tables = {(part.table, part.rows, part.rows_are, part.ledger and part.ledger.dataset) for part in known}
    if not known or len(known) < len(parts) or len(tables) > 1:
        return None
    last, receipts = known[-1], [part.ledger for part in known if part.ledger is not None]
    entries = tuple(entry for receipt in receipts for entry in receipt.entries)
    return replace(
        last,
        result=", ".join(part.result for part in known),
        columns=known[0].columns,
        invalid_rows=max(part.invalid_rows for part in known),  # "neutral" if it is so of any
        ledger=None if last.ledger is None else replace(last.ledger, entries=entries),
    )


def _read_event(what: str, content: Any) -> Any:
    return accounting.event_from_dict(content)


LARGE_EPSILON = 10.0  # above it a belief of 50 % may become one of more than 99.99 %


@dataclass(frozen=True, eq=False)
class Guarantee(Shown):
    """An (epsilon, delta) promise, the neighbouring relation it holds for, and the event that proves it.

    `print(guarantee)` shows the statement for people who decide about the data.

    Attributes
    ----------
    epsilon, delta : float
        What was promised; epsilon is infinite for a result without privacy.
    relation : Relation
        Which tables count as neighbours.
    event : DpEvent
        What was done to the rows, in the vocabulary of dp-accounting.
    leaks : tuple of str
        What was read from the rows outside the guarantee, such as the classes; and `SEEDED`, if the noise came from a
        seed or from a NumPy generator.
    public_inputs : tuple of str
        What the fit used beside the rows and took as public: coefficients to start from, or a public table.
    release : ReleaseRecord, optional
        Which result was released, from which table, when, and where it was booked; None for a plan.
    unit : {"row", "person"}
        What neighbouring tables differ in: one row, or one person with all of their rows.

    Examples
    --------
    >>> from discreet import LogisticRegression
    >>> promise = LogisticRegression(epsilon=1.0, bounds=(0.0, 1.0)).plan(n_samples=1000, n_features=3).guarantee
    >>> promise.epsilon, promise.delta
    (1.0, 1e-06)
    >>> bool(promise.epsilon_at(1e-3) < 1.0)  # a larger delta goes with a smaller epsilon
    True
    >>> round(promise.meaning.guess, 3)  # how often an attacker's guess about one row can be right
    0.547
    """

    epsilon: Unbounded
    delta: float
    relation: Relation
    event: Annotated[Any, _read_event]
    leaks: tuple[str, ...] = ()
    release: ReleaseRecord | None = None
    public_inputs: tuple[str, ...] = ()
    unit: Unit = "row"

    in_every_file: ClassVar[tuple[str, ...]] = ("leaks", "release")  # a file without leaks would promise too much

    @property
    def is_private(self) -> bool:
        """Whether epsilon is finite."""
        return math.isfinite(self.epsilon)

    @property
    def certified(self) -> Any:
        """The accountant's own finding at the promised delta: epsilon, delta and the route that proves it."""
        return accounting.certify(self.event, self.delta, self.relation)

    @cached_property
    def meaning(self) -> Meaning:
        """What an attacker can come to believe about one row, and how often a guess about it can be right."""
        return Meaning.of(self.epsilon, self.delta, self.event, self.relation)

    def weaknesses(self, rows: int | None) -> list[str]:
        """Say why the promise protects little, from public numbers; `rows` is None where their number is not known."""
        found = []
        if LARGE_EPSILON < self.epsilon < math.inf:
            found.append(
                f"epsilon = {self.epsilon:.6g} protects little: a belief of 50 % that somebody's row was used may "
                f"become {percent_at_most(belief_after(0.5, self.epsilon))}; up to 1 is usual, above 10 nobody should "
                "rely on it."
            )
        if rows is not None and self.delta * rows > 1.0 and self.epsilon < math.inf:
            found.append(
                f"delta = {self.delta:.3g} is more than one over the {rows:,} rows: publishing the row of a randomly "
                "chosen person would keep such a promise; use a delta far below it, such as 1 / rows squared "
                "(delta=None)."
            )
        return found

    def with_seed(self) -> Guarantee:
        """Return the same guarantee for a run whose noise came from a seed, which is named as a leak."""
        return self.with_leak(SEEDED)

    def with_leak(self, leak: str) -> Guarantee:
        """Return the same guarantee for a result that also tells something outside it."""
        return replace(self, leaks=tuple(dict.fromkeys([*self.leaks, leak])))

    def epsilon_at(self, delta: float) -> float:
        """Return the epsilon that holds together with another delta."""
        return accounting.epsilon_of(self.event, delta, self.relation) if self.is_private else math.inf

    def delta_at(self, epsilon: float) -> float:
        """Return the delta that holds together with another epsilon."""
        return accounting.delta_of(self.event, epsilon, self.relation) if self.is_private else 1.0

    def tradeoff(self, points: int = 200) -> tuple[FloatArray, FloatArray]:
        """Return the best that any attacker can do: type I errors and the smallest possible type II errors.

        Parameters
        ----------
        points : int, default=200
            How many points of the curve.

        Returns
        -------
        tuple of two ndarray
            Type I errors between 0 and 1, and for each the smallest type II error.
        """
        if not self.is_private:
            return np.array([0.0, 1.0]), np.array([0.0, 0.0])
        return accounting.tradeoff(self.event, self.relation, points)

    def statement(self) -> str:
        """Return the text for people who decide about the data: meaning first, symbols last."""
        return statement_of(self)

    def __str__(self) -> str:
        return self.statement()

    def _blocks(self) -> Groups:
        return blocks_of(self)

    def about(self, release: ReleaseRecord | None) -> Guarantee:
        """Return the same promise, for a result that was released under these circumstances."""
        return replace(self, release=release)

    def of_table(self, name: str, entries: tuple[int, ...] = ()) -> Guarantee:
        """Return the same promise with the name of the table, and with earlier entries of the ledger for it."""
        return self if self.release is None else self.about(self.release.of_table(name, entries))

    def to_dict(self) -> dict[str, Any]:
        """Return the guarantee as a JSON-safe dictionary, in the format that docs/statements.md describes."""
        return {
            **FORMAT.head,
            "epsilon": self.epsilon if self.is_private else "inf",
            "delta": self.delta,
            "relation": str(self.relation),
            "unit": self.unit,
            "event": accounting.event_to_dict(self.event),
            "leaks": list(self.leaks),
            "public_inputs": list(self.public_inputs),
            "meaning": self.meaning.to_dict(),
            "release": plain(self.release),
            "statement": self.statement(),
        }

    @classmethod
    def from_dict(cls, content: Any) -> Guarantee:
        """Return the guarantee that `to_dict` wrote; its meaning and its statement are made again, not believed.

        Raises
        ------
        ValueError
            Something is missing or damaged, or the event does not prove the epsilon and delta.
        """
        return described(lambda: cls._read(content), "its guarantee is damaged")

    @classmethod
    def _read(cls, content: Any) -> Guarantee:
        found = built(cls, FORMAT.body(content), "the guarantee")
        if not (found.epsilon > 0.0 and 0.0 <= found.delta < 1.0):
            raise ValueError(f"it has epsilon {found.epsilon} and delta {found.delta}.")
        accounting.check_distinct(found.event)
        if not accounting.fits(found.event, Budget(found.epsilon, found.delta), found.relation):
            raise ValueError(f"its event does not prove epsilon {found.epsilon:g} at delta {found.delta:g}.")
        return found


def guarantee_for(
    event: Any,
    budget: Budget,
    relation: Relation,
    rows: int,
    leaks: tuple[str, ...] = (),
    public_inputs: tuple[str, ...] = (),
    unit: Unit = "row",
) -> Guarantee:
    """The promise a budget makes; zCDP and GDP budgets are stated at delta = 1/rows^2."""
    if budget.is_infinite:
        epsilon, delta = math.inf, 0.0
    elif budget.kind in ("zcdp", "gdp"):
        delta = 1.0 / max(rows, 2) ** 2
        epsilon = accounting.epsilon_of(event, delta, relation)
    else:
        assert budget.epsilon is not None
        assert budget.delta is not None
        epsilon, delta = budget.epsilon, budget.delta
    return Guarantee(epsilon, delta, relation, event, leaks, public_inputs=public_inputs, unit=unit)
