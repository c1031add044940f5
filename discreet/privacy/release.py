"""The one road of every release: say what it costs, have the ledger grant it, draw, commit, keep a record.

What a plan will release, and how noisily, is read from the same events that are priced, so that the two agree.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, Protocol

from discreet._common.blocks import Facts, Groups, Shown
from discreet._common.callers import warn
from discreet._common.digest import digest_of
from discreet._common.exceptions import DiscreetWarning, NotPrivateWarning, UtilityWarning
from discreet.privacy import accounting
from discreet.privacy.budget import Budget
from discreet.privacy.guarantee import Guarantee, InvalidRows, LedgerReceipt, ReleaseRecord, RowsAre, guarantee_for
from discreet.privacy.random.generator import RandomGenerator, generator_from
from discreet.privacy.relation import Relation, Sensitivity, Unit, clipped_sum
from discreet.privacy.statement import in_numbers

if TYPE_CHECKING:
    from discreet.data.public import Public
    from discreet.privacy.ledger import Ledger
    from discreet.privacy.ledger.reservation import Reservation

Kind = Literal["Gaussian", "Laplace", "sampled Gaussian", "selection", "pure", "objective"]
# Parts of a budget are rounded when they are turned into noise; their sum must not exceed the whole.
WHOLE = 1.0 - 1e-12

# Under which names plans enter digests. Seeded noise is keyed by them, so they never change; new kinds need no entry.
_DIGESTED_AS = {
    "means": "MeanPlan",
    "smoothness": "SmoothnessPlan",
    "ranges": "RangePlan",
    "scales": "ScalerPlan",
    "quantiles": "QuantilePlan",
    "means with gaps": "ObservedMeanPlan",
    "medians with gaps": "ObservedMedianPlan",
    "counts of categories": "CountPlan",
    "evaluation": "SumsPlan",
    "certificate": "EvaluationPlan",
    "gradient": "GradientPlan",
    "cells": "CellPlan",
    "scores": "ScoresPlan",
    "grid search": "SearchPlan",
    "random search": "TrialsPlan",
    "scales of the target": "TargetPlan",
}


@dataclass(frozen=True)
class PlannedRelease:
    """One kind of release: what is told about the rows, how often, and with how much noise.

    Attributes
    ----------
    what : str
        What is released, in plain words.
    kind : str
        The noise: "Gaussian", "Laplace", "sampled Gaussian" (of a random part of the rows), "selection" (exponential
        mechanism), "pure" (known by its epsilon alone) or "objective" (a random linear term in the objective).
    times : int
        How often it is released.
    noise_over_sensitivity : float
        The noise of one release over how far one row can move it: standard deviations for Gaussian noise, scales for
        Laplace noise and for selections.
    epsilon : float, optional
        What one release costs in pure epsilon-DP; None for Gaussian noise, which has no such cost.
    sample_rate : float, optional
        The part of the rows that takes part, where they are sampled.
    deviation : float, optional
        Standard deviation of the noise on one released number, in the `unit`.
    unit : str
        What the deviation is measured in.
    share : float
        Share of the budget, in all.
    event : object
        One of the releases, as the accountant reads it.
    """

    what: str
    kind: Kind
    times: int
    noise_over_sensitivity: float
    epsilon: float | None = None
    sample_rate: float | None = None
    deviation: float | None = None
    unit: str = ""
    share: float = 0.0
    event: Any = field(default=None, repr=False, compare=False)

    def to_dict(self) -> dict[str, Any]:
        """Return what is shown, as JSON values; what does not apply is left out."""
        names = ("what", "kind", "times", "share", "noise_over_sensitivity", "epsilon", "sample_rate", "deviation")
        facts = {name: getattr(self, name) for name in names} | {"unit": self.unit or None}
        return {name: value for name, value in facts.items() if value is not None}


def planned_releases(
    what: str | Mapping[Kind, str],
    event: Any,
    relation: Relation,
    sensitivity: Sensitivity | None = None,
    unit: str = "",
    dimension: int | None = None,
) -> list[PlannedRelease]:
    """List the releases of an event in order, equal ones together.

    Parameters
    ----------
    what : str or mapping
        What is released, in plain words; for events of several kinds, by kind.
    event : event
        What a mechanism says that its releases cost.
    relation : Relation
        Which tables are neighbours.
    sensitivity : Sensitivity, optional
        How far one row can move what is released, in the unit; without it the noise is not told in a unit.
    unit : str
        What the sensitivity is measured in.
    dimension : int, optional
        Length of a vector that is released with spherical Laplace noise, which grows with it.
    """
    totals: dict[str, tuple[Any, int]] = {}
    for leaf, count in accounting.flatten(event):
        known, before = totals.get(repr(leaf), (leaf, 0))
        totals[repr(leaf)] = (known, before + count)
    found = []
    for leaf, times in totals.values():
        reader = _READERS.get(type(leaf).__name__)
        if reader is None:
            raise ValueError(f"a plan cannot tell the noise of the event {leaf!r} in words.")
        facts = reader(leaf, relation)
        told = what if isinstance(what, str) else what[facts.kind]
        deviation = None if sensitivity is None else _deviation(facts, sensitivity, dimension)
        known = unit if deviation is not None else ""
        found.append(replace(facts, what=told, times=times, deviation=deviation, unit=known, event=leaf))
    return found


def _poisson(leaf: Any, relation: Relation) -> PlannedRelease:
    """The accountant's multiplier is over the clipping norm, not over how far the sum can move."""
    noise = leaf.event.noise_multiplier / clipped_sum(relation).l2
    return PlannedRelease("", "sampled Gaussian", 1, noise, sample_rate=leaf.sampling_probability)


def _fixed_size(leaf: Any, _: Relation) -> PlannedRelease:
    rate = leaf.sample_size / leaf.source_dataset_size
    return PlannedRelease("", "sampled Gaussian", 1, leaf.event.noise_multiplier, sample_rate=rate)


_READERS: dict[str, Callable[[Any, Relation], PlannedRelease]] = {
    "GaussianDpEvent": lambda leaf, _: PlannedRelease("", "Gaussian", 1, leaf.noise_multiplier),
    "LaplaceDpEvent": lambda leaf, _: PlannedRelease(
        "", "Laplace", 1, leaf.noise_multiplier, 1.0 / leaf.noise_multiplier
    ),
    "PoissonSampledDpEvent": _poisson,
    "SampledWithoutReplacementDpEvent": _fixed_size,
    "BoundedRangeDpEvent": lambda leaf, _: PlannedRelease("", "selection", 1, 2.0 / leaf.epsilon, leaf.epsilon),
    "PureDpEvent": lambda leaf, _: PlannedRelease("", "pure", 1, 1.0 / leaf.epsilon, leaf.epsilon),
    "ObjectiveDpEvent": lambda leaf, _: PlannedRelease("", "objective", 1, leaf.noise_multiplier),
}


def _deviation(facts: PlannedRelease, sensitivity: Sensitivity, dimension: int | None) -> float | None:
    """Standard deviation of one released number, in the unit of the sensitivity."""
    noise = facts.noise_over_sensitivity
    if facts.kind == "Laplace":
        return math.sqrt(2.0) * noise * sensitivity.l1
    if facts.kind == "pure" and dimension is not None:  # a uniform direction, times a radius of law Gamma(dimension)
        return math.sqrt(dimension + 1.0) * noise * sensitivity.l2
    return None if facts.kind in ("selection", "pure") else noise * sensitivity.l2


def with_shares(releases: list[PlannedRelease], budget: Budget) -> list[PlannedRelease]:
    """Say which share of the budget each takes.

    Shares are of epsilon for a pure budget. For the others they are of mu^2, the square of the Gaussian-DP parameter
    that the budget allows: exact for Gaussian noise; what is left goes to the releases of other kinds.
    """
    if budget.kind == "pure":
        return [replace(r, share=r.times * (r.epsilon or 0.0) / budget.amount) for r in releases]
    mu = budget.gaussian_mu()
    exact = [r.times / (r.noise_over_sensitivity * mu) ** 2 if r.kind == "Gaussian" else None for r in releases]
    left = max(0.0, 1.0 - math.fsum(share for share in exact if share is not None))
    weight = [0.0 if r.kind == "Gaussian" else r.times * (r.epsilon or 1.0) ** 2 for r in releases]
    whole = math.fsum(weight) or 1.0
    return [
        replace(r, share=left * w / whole if share is None else share)
        for r, share, w in zip(releases, exact, weight, strict=True)
    ]


@dataclass(frozen=True)
class ReleasePlan(Shown):
    """What will be released about a table beside models: fixed from public facts, before a row is read.

    Mechanisms and settings are attributes as well: `plan.mechanism` is `plan.mechanisms["mechanism"]`.

    Attributes
    ----------
    kind : str
        What is released, in a word or two.
    public : Public
        What is known about the table without reading its rows.
    budget : Budget
        What may be spent.
    mechanisms : mapping of str to mechanism or plan
        What draws the noise, by name, in the order of the releases; None for a part that is not released.
    settings : mapping of str to object
        What else is fixed, such as bins and limits.
    cost : event, optional
        What all costs together; None: the mechanisms, one after the other.
    inputs : tuple of str
        What is used beside the rows and taken as public.
    words : tuple of (str, str)
        The plan in words, by name; by default what it costs.
    """

    kind: str
    public: Public = field(compare=False, repr=False)
    budget: Budget
    mechanisms: Mapping[str, Any]
    settings: Mapping[str, Any] = field(default_factory=dict)
    cost: Any = None
    inputs: tuple[str, ...] = ()
    words: tuple[tuple[str, str], ...] = ()

    def __getattr__(self, name: str) -> Any:
        for group in ("mechanisms", "settings"):
            if name in (parts := self.__dict__.get(group, {})):
                return parts[name]
        raise AttributeError(f"a plan of {self.__dict__.get('kind')!r} has no {name!r}.")

    @property
    def is_noisy(self) -> bool:
        """Whether noise is added: whether the budget is finite."""
        return not self.budget.is_infinite

    @property
    def event(self) -> Any:
        """What all releases cost together, in the vocabulary of dp-accounting."""
        if self.cost is not None:
            return self.cost
        return accounting.compose([part.event for part in self.mechanisms.values() if part is not None])

    @cached_property
    def guarantee(self) -> Guarantee:
        """What is promised about everything that is released."""
        public = self.public
        return guarantee_for(
            self.event, self.budget, public.relation, public.rows, public.leaks, self.inputs, public.unit
        )

    def weaknesses(self, rows_are_known: bool = True) -> list[str]:
        """Say why the promise itself protects little; from public facts alone."""
        return self.guarantee.weaknesses(self.public.rows if rows_are_known else None)

    def warnings(self) -> list[str]:
        """Say what a person should know before the budget is spent."""
        return []

    def generator(self, random_state: Any, name: str, *beside: Any) -> RandomGenerator:
        """The generator of the noise; a seeded one is keyed by all that tells this release from others.

        `name` says what makes the release, `beside` is what it depends on and the plan does not hold.
        """
        rng = generator_from(random_state)
        public = replace(self.public, leaks=(), stored=False, neutral=None)
        rng.rekey(digest_of(name, (self, *beside) if beside else self, public, self.budget))
        return rng

    def booked(
        self, name: str, ledger: Ledger | str | None, dataset: str | None, random_state: Any, *beside: Any
    ) -> AbstractContextManager[Booking]:
        """A block that makes the release, as the function `booked` has it; arguments are those of `generator` too."""
        return booked(self, self.generator(random_state, name, *beside), ledger, dataset, name)

    def digested(self) -> tuple[str, dict[str, Any]]:
        """Under which name and by which parts the plan enters a digest; the public facts and the budget come beside."""
        whole = {} if self.cost is None else {"guarantee": self.guarantee}
        return _DIGESTED_AS.get(self.kind, self.kind), {**self.mechanisms, **self.settings, **whole}

    def _blocks(self) -> Groups:
        public, promise = self.public, self.guarantee
        told = {
            "plan of": self.kind,
            "table": f"{public.rows:,} {public.unit}s, {public.columns:,} columns",
            "releases": ", ".join(name for name, part in self.mechanisms.items() if part is not None) or "nothing",
            "budget": str(self.budget).strip("()"),
            "in all": in_numbers(promise),
        }
        warned = [Facts((("warning", text),)) for text in self.weaknesses() + self.warnings()]
        return [[Facts(self.words or tuple(told.items()))], *([warned] if warned else [])]


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
    rng : RandomGenerator
        Draws the noise of the release.
    guarantee : Guarantee
        What is promised, a seed named as a leak; after the block with the record of the release.
    record : ReleaseRecord or None
        When it was released and where it was booked; None inside the block.
    """

    rng: Any
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

    A block that dies stays counted, since it may have read the rows. A result that is paid for is not thrown away where
    the ledger cannot be written any more.

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
    booking, public = Booking(noise, promise), plan.public
    reservation = None
    if ledger is not None:
        event, relation, unit, seeded = promise.event, public.relation, public.unit, not noise.secure
        reservation = reserve(ledger, dataset, event, note, relation, unit=unit, seeded=seeded)
    yield booking
    if reservation is not None:
        _commit(reservation)
    receipt = None if reservation is None else LedgerReceipt.of(reservation)
    booking.record = _record(note, public, dataset, receipt, capped)
    booking.guarantee = promise.about(booking.record)


def _commit(reservation: Reservation) -> None:
    """Note that the result is out; the cost is counted all the same where that cannot be written, as on a full disk."""
    try:
        reservation.commit()
    except OSError as error:
        message = f"the ledger could not note that the result is out, whose cost stays counted as reserved: {error}"
        warn(message, DiscreetWarning)


def _record(
    result: str, public: Public, table: str | None, receipt: LedgerReceipt | None, capped: bool | None
) -> ReleaseRecord:
    """The record of a release that is made now, from a table or from a stream."""
    from discreet import __version__

    rows_are: RowsAre = "estimate" if public.relation is Relation.ADD_REMOVE else "exact"
    rows: int | None = public.rows
    if capped is not None:
        rows, rows_are = rows if capped else None, "maximum"
    date = datetime.now(UTC).isoformat(timespec="seconds")
    invalid: InvalidRows = "neutral" if public.neutral else "error"
    return ReleaseRecord(result, rows, rows_are, public.columns, date, __version__, table, receipt, invalid)


def reserve(
    ledger: Ledger | str,
    dataset: str | None,
    event: Any,
    note: str,
    relation: Relation,
    *,
    unit: Unit = "row",
    seeded: bool = False,
    key: str = "",
) -> Reservation:
    """Have the ledger count an event, or refuse it; called alone where more than a block lies before the commit.

    For a question that is asked before a plan is run, a run that is booked once for many replies, and the token of a
    paused stream, which another process commits.
    """
    from discreet.privacy.ledger import Ledger

    if dataset is None:
        raise ValueError("ledger needs dataset= as well: the name under which the table's budget was opened.")
    return Ledger.of(ledger).reserve(dataset, event, note, relation, seeded=seeded, unit=unit, key=key)


def warn_about(plan: Planned, rows_are_known: bool = True) -> None:
    """Say what a person should know before the rows are read."""
    if plan.budget.is_infinite:
        warn("epsilon is infinite: the result is not private.", NotPrivateWarning)
    for message in plan.weaknesses(rows_are_known):
        warn(message, NotPrivateWarning)
    for message in plan.warnings():
        warn(message, UtilityWarning)
