"""The account of a data set: what is promised, what was spent, and whether one more event keeps the promise."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_FLOOR, Context
from functools import lru_cache
from typing import Any

from discreet._common.checks import real_number
from discreet._common.codec import described, parse_json
from discreet._common.exceptions import BudgetExceededError
from discreet.privacy.ledger.chain import View, digest_of
from discreet.privacy.ledger.records import ChainError, Record, problems
from discreet.privacy.ledger.total import Total, event_text, fields_text
from discreet.privacy.relation import Relation, Unit, unit_from

# A plan calibrated to exactly the whole budget may miss it by rounding. The slack is granted once, to the
# composition of everything, so it does not add up over reservations.
_SLACK = 1.0 + 1e-9
_THREE_DIGITS = Context(prec=3, rounding=ROUND_FLOOR)
LEAST_SHOWN = 1e-3  # of the promised epsilon: nothing useful is released for less


@dataclass(frozen=True)
class Allowance:
    """What was promised for a data set, over all its events.

    Attributes
    ----------
    dataset : str
        Name of the data set.
    epsilon, delta : float
        What the composition of all events must keep.
    relation : Relation
        Which tables count as neighbours.
    unit : {"row", "person"}
        What neighbours differ in: one row, or one person with all of their rows.
    """

    dataset: str
    epsilon: float
    delta: float
    relation: Relation
    unit: Unit = "row"

    def __post_init__(self) -> None:
        if not isinstance(self.dataset, str) or not self.dataset:
            raise ValueError(f"dataset must be a name that is not empty, got {self.dataset!r}")
        for name in ("epsilon", "delta"):
            real_number(name, getattr(self, name))
        if not (self.epsilon > 0 and math.isfinite(self.epsilon)):
            raise ValueError(f"epsilon must be positive and finite, got {self.epsilon}")
        if not 0 <= self.delta < 1:
            raise ValueError(f"delta must be at least 0 and below 1, got {self.delta}")

    def covers(self, total: Total) -> bool:
        """Whether all events, composed, are proved to keep the promise, in epsilon or in delta.

        Guarantee: if True, the composition is (epsilon, delta)-DP, up to one part in 10^9 for rounding.
        """
        if self.cost(total) <= self.epsilon * _SLACK:
            return True
        # The two bounds are computed on different grids, and either is a proof. Not for a pure promise: a
        # Gaussian's delta can be so small that it rounds to 0.
        if self.delta == 0:
            return False
        return _delta_of(total, self.epsilon * _SLACK, self.relation) <= self.delta * _SLACK

    def cost(self, total: Total) -> float:
        """Epsilon of all events, composed, at the delta of the promise."""
        return _epsilon_of(total, self.delta, self.relation)

    def cost_of(self, event: str) -> float:
        """Epsilon of one event alone, at the delta of the promise."""
        return self.cost(Total().plus(event))

    def pure_cost_of(self, event: str) -> float:
        """Epsilon of one event alone at delta 0; infinite for Gaussian noise."""
        from discreet.privacy.accounting import event_from_dict, pure_epsilon_of

        return pure_epsilon_of(event_from_dict(json.loads(event)), self.relation)

    def check(self, event: str) -> None:
        """Refuse an event that the accounting does not know, or not under this relation."""
        from discreet.privacy.accounting import event_from_dict
        from discreet.privacy.accounting.events import read_composition

        read_composition(event_from_dict(json.loads(event)), self.relation)


@lru_cache(maxsize=64)
def _delta_of(total: Total, epsilon: float, relation: Relation) -> float:
    from discreet.privacy.accounting import delta_of

    return float(delta_of(total.event(), epsilon, relation, total.in_order)) if total.runs else 0.0


@lru_cache(maxsize=64)
def _epsilon_of(total: Total, delta: float, relation: Relation) -> float:
    from discreet.privacy.accounting import epsilon_of

    return float(epsilon_of(total.event(), delta, relation, total.in_order)) if total.runs else 0.0


FORMAT = 1
# What to do where a release and a data set differ in the unit.
_OTHER_UNIT = {
    "person": "is kept for persons, and this release protects single rows: pass fit(X, y, groups=ids), or "
    "--person-column NAME; whatever knows rows alone needs a data set of its own",
    "row": "is kept for rows, and this release protects persons: open a data set for persons, with "
    'ledger.open(..., unit="person") or discreet ledger open --unit person, and name it',
}


@dataclass(frozen=True)
class Account:
    """What is promised for a data set and what was spent; never changed, a later one takes its place."""

    allowance: Allowance
    total: Total

    @property
    def spent(self) -> float:
        """Epsilon of everything so far, at the delta of the promise."""
        return self.allowance.cost(self.total)

    @property
    def remaining(self) -> float:
        """Promised epsilon minus what was spent, at least 0."""
        return max(0.0, self.allowance.epsilon - self.spent)

    def plus(self, event: str) -> Account:
        """Return the account with one more event, whether it is covered or not."""
        pure = self.allowance.pure_cost_of(event) if self.allowance.delta == 0.0 else math.inf
        # Nothing but the sum of pure epsilons counts for a pure promise.
        total = self.total.plus_pure(pure) if math.isfinite(pure) else self.total.plus(event)
        return replace(self, total=total)

    def covers(self, event: str) -> bool:
        """Whether one more event would keep the promise."""
        return self.allowance.covers(self.plus(event).total)

    def require(self, event: str) -> None:
        """Raise an error that says what would fit unless one more event would keep the promise."""
        if self.covers(event):
            return
        room = self.room()
        most = float(_THREE_DIGITS.create_decimal(self.remaining if room is None else room))
        at = f" at delta {self.allowance.delta:.3g}" if self.allowance.delta else ""
        fitting = f"{'about ' if room is None else ''}epsilon {most:.3g}{at} would fit"
        if most < LEAST_SHOWN * self.allowance.epsilon:
            fitting = "its budget is spent"
        raise BudgetExceededError(f"data set {self.allowance.dataset!r} does not cover this; {fitting}")

    def room(self) -> float | None:
        """Return the largest epsilon, at the delta of the promise, of a release that would still be covered.

        The release has Gaussian noise, or Laplace noise if the promise is pure. It is more than what remains, since
        costs compose better than they add. None where the answer takes long: beside other kinds of noise.
        """
        from discreet.privacy.accounting import gaussian_event, gaussian_mu

        if self.allowance.delta == 0.0:
            return self.remaining
        if not self.total.only_gaussian:
            return None
        low, high = 0.0, self.allowance.epsilon
        for _ in range(30):
            middle = 0.5 * (low + high)
            event = gaussian_event(1.0 / gaussian_mu(middle, self.allowance.delta))
            low, high = (middle, high) if self.covers(event_text(event)) else (low, middle)
        return low

    def checked(self, event: str, relation: Relation | str | None, unit: Unit = "row") -> Account:
        """Return the account itself; refuse an event that is unknown, or accounted under another relation or unit."""
        if unit != self.allowance.unit:
            raise ValueError(f"data set {self.allowance.dataset!r} {_OTHER_UNIT[self.allowance.unit]}")
        kept = self.allowance.relation
        if relation is None or Relation(relation) is not kept:
            advice = f"say relation={kept.value!r} if the event was accounted under it"
            if relation is not None:
                advice = f"an event under {Relation(relation).value!r} cannot be added to it"
            raise ValueError(f"data set {self.allowance.dataset!r} is kept under relation={kept.value!r}; {advice}")
        self.allowance.check(event)
        return self

    def to_text(self) -> str:
        """Return the account in the form in which the ledger stores it."""
        return json.dumps({"format": FORMAT, **terms_of(self.allowance), **self.total.to_dict()}, sort_keys=True)

    @classmethod
    def from_text(cls, dataset: str, text: str) -> Account | None:
        """Return what `to_text` wrote; None if it was written by other rules, a ChainError if it makes no sense."""

        def build() -> Account | None:
            fields = parse_json(text.encode())
            if fields.get("format") != FORMAT:
                return None
            return cls(allowance_from(dataset, fields), Total.from_dict(fields))

        try:
            return described(build, f"the running total of data set {dataset!r} makes no sense")
        except ValueError as error:
            raise ChainError(str(error)) from None


def terms_of(allowance: Allowance) -> dict[str, Any]:
    """Return the promise as JSON values; the unit is told if it is not the row, as earlier versions knew no other."""
    terms = {"epsilon": allowance.epsilon, "delta": allowance.delta, "relation": allowance.relation.value}
    return terms if allowance.unit == "row" else terms | {"unit": allowance.unit}


def allowance_from(dataset: str, terms: dict[str, Any]) -> Allowance:
    """Return the promise that `terms_of` wrote."""
    unit = unit_from(terms.get("unit", "row"))
    return Allowance(dataset, terms["epsilon"], terms["delta"], Relation(terms["relation"]), unit)


def account_in(view: View, dataset: str) -> Account | None:
    """Return the account of a data set, from its running total or, failing that, from all its records."""
    text = view.total(dataset)
    account = None if text is None else Account.from_text(dataset, text)
    if account is not None or view.latest(dataset, "open") is None:
        return account
    # Written by an earlier version: what follows takes long, but only until the next reservation.
    records = view.records()
    wrong = problems(records, view.tip()) or total_problems(records, view.totals())
    if wrong:
        raise ChainError(f"the ledger was damaged, it grants nothing more: {wrong[0]}")
    return accounts_of(records)[dataset]


def accounts_of(records: Sequence[Record]) -> dict[str, Account]:
    """Return the accounts of all data sets, from all records."""
    accounts: dict[str, Account] = {}
    for record in records:
        _apply(record, accounts)
    return accounts


def total_problems(records: Sequence[Record], totals: Mapping[str, tuple[int, str]]) -> list[str]:
    """Add everything up again and say which stored totals, by data set, do not agree."""
    found: list[str] = []
    accounts: dict[str, Account] = {}
    latest: dict[str, Record] = {}
    for record in records:
        try:
            _apply(record, accounts)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            found.append(f"record {record.number} ({record.kind} {record.dataset!r}) makes no sense: {error}")
            continue
        if record.kind in ("open", "reserve"):
            latest[record.dataset] = record
    for dataset in {*totals, *accounts}:
        last, stored = latest.get(dataset), totals.get(dataset)
        if last is None or (stored is None and "total" in last.content):
            found.append(f"the running total of data set {dataset!r} was altered")
        elif stored is not None and "total" in last.content:
            if stored[0] != last.number or last.content["total"] != digest_of(stored[1]):
                found.append(f"the running total of data set {dataset!r} was altered")
            elif stored[1] != accounts[dataset].to_text() and _is_of_this_version(dataset, stored[1]):
                found.append(f"the running total of data set {dataset!r} is not the sum of its records")
    return sorted(found)


def _is_of_this_version(dataset: str, text: str) -> bool:
    try:
        return Account.from_text(dataset, text) is not None
    except ChainError:
        return True


def _apply(record: Record, accounts: dict[str, Account]) -> None:
    """Let a record change the account of its data set."""
    account = accounts.get(record.dataset)
    if record.kind == "open":
        if account is not None:
            raise ValueError("the data set was open already")
        accounts[record.dataset] = Account(allowance_from(record.dataset, record.content), Total())
    elif record.kind == "reserve":
        if account is None:
            raise ValueError("the data set was not open")
        accounts[record.dataset] = account.plus(fields_text(record.content["event"]))
