"""What fairness certificates say, as values, as JSON and as a table of text; those of private evaluations below."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from discreet._common.codec import plain
from discreet._common.text import table
from discreet.privacy.guarantee import Guarantee

Column = tuple[str, Sequence[str]]  # a heading, and a cell for each line


@dataclass(frozen=True)
class FairnessStatement:
    """How far one quantity can be from its value at the other model.

    Attributes
    ----------
    notion : str
    label, group : object or None
        Which label and group it is about; None where it is about all of them.
    rows : float
        Number of rows with that label in that group.
    value : float
        The quantity for the reference model, on the rows given; NaN without such rows.
    low, high : float
        The other model's quantity minus the value is between the two, with the probability of the certificate.
    bounds : mapping of str to float
        Bounds on the absolute change in other forms, for comparison; they hold at the ball's radius, except "noise".
    printed : float or None
        The bound as printed in the literature, where it has one.
    refined : float or None
        The bound from the movement of each row's own score, where both models are known.
    exact : float or None
        The change itself, where both models are known.
    """

    notion: str
    label: Any
    group: Any
    rows: float
    value: float
    low: float
    high: float
    bounds: Mapping[str, float] = field(default_factory=dict)
    printed: float | None = None
    refined: float | None = None
    exact: float | None = None

    @property
    def bound(self) -> float:
        """Bound on the absolute change."""
        return max(abs(self.low), abs(self.high)) if not math.isnan(self.value) else math.nan

    @property
    def ends(self) -> tuple[float, float]:
        """Between which values the other model's quantity is."""
        return self.value + self.low, self.value + self.high

    @property
    def who(self) -> str:
        """The label and the group in words."""
        said = [f"label {self.label}"] if self.label is not None else []
        said += [f"group {self.group}"] if self.group is not None else []
        return ", ".join(said) or "all rows"

    def to_dict(self) -> dict[str, Any]:
        """Return the statement as JSON values; NaN becomes null."""
        numbers = ("rows", "value", "low", "high", "bound", "printed", "refined", "exact")
        return _fields(self, "notion", "label", "group", *numbers, "bounds")


@dataclass(frozen=True)
class AggregateStatement:
    """The mean over groups of a notion's absolute values, and how far it can be from the other model's.

    Attributes
    ----------
    notion : str
    groups : int
        Of how many quantities it is the mean; those without rows are left out.
    value, bound : float
        The mean for the reference model, and a bound on the absolute change.
    printed, refined, exact : float or None
        As in `FairnessStatement`.
    """

    notion: str
    groups: int
    value: float
    bound: float
    printed: float | None = None
    refined: float | None = None
    exact: float | None = None

    @property
    def ends(self) -> tuple[float, float]:
        """Between which values the other model's mean is."""
        return max(0.0, self.value - self.bound), self.value + self.bound

    @property
    def who(self) -> str:
        """What it is about, in words."""
        return "mean of |.|"

    def to_dict(self) -> dict[str, Any]:
        """Return the statement as JSON values; NaN becomes null."""
        return _fields(self, "notion", "groups", "value", "bound", "printed", "refined", "exact")


@dataclass(frozen=True)
class FairnessCertificate:
    """Bounds on how far group fairness and accuracy of a private model are from those of its noise-free twin.

    It is about the rows given and about no others. It does not say that a model is fair.

    Attributes
    ----------
    statements : tuple of FairnessStatement
        One for each notion, label and group.
    aggregate : dict of str to AggregateStatement
        One for each notion.
    failure : float
        Probability, over the noise of the fit, with which a statement may be wrong; all together if `simultaneous`.
    simultaneous : bool
    reference : str
        "private": the values are those of the private model, the changes lead to its twin; "twin": the reverse.
    distance_to : str
        Which vector the distance is measured to, in plain words.
    radius : float
        The distance that the parameters exceed with probability at most `failure`.
    norm : str
        In which norm.
    rows : int
        Number of rows.
    private : bool
        Whether only public rows and released numbers were read; if not, showing the certificate is a release.
    messages : tuple of str
        What could not be said, and why.
    """

    statements: tuple[FairnessStatement, ...]
    aggregate: Mapping[str, AggregateStatement]
    failure: float
    simultaneous: bool
    reference: str
    distance_to: str
    radius: float
    norm: str
    rows: int
    private: bool
    messages: tuple[str, ...] = ()

    def of(self, notion: str) -> list[FairnessStatement]:
        """The statements of a notion."""
        return [statement for statement in self.statements if statement.notion == notion]

    def to_dict(self) -> dict[str, Any]:
        """Return the certificate as JSON values; NaN becomes null, infinity "inf"."""
        about = ("failure", "simultaneous", "reference", "distance_to", "norm", "rows", "private", "radius")
        return _fields(self, *about, "statements", "aggregate", "messages")

    @property
    def shown(self) -> list[FairnessStatement | AggregateStatement]:
        """The lines of the table: all statements, and below them the means over several groups."""
        return [*self.statements, *(mean for mean in self.aggregate.values() if mean.groups > 1)]

    def table(self, more: Iterable[Column] = (), ends: bool = True) -> str:
        """The statements as a table, with more columns at the right of the other model's ends."""
        names = ["private model", "noise-free twin"]
        here, other = names if self.reference == "private" else reversed(names)
        columns: list[Column] = [
            ("notion", [line.notion for line in self.shown]),
            ("about", [line.who for line in self.shown]),
            ("rows", [f"{line.rows:.0f}" if isinstance(line, FairnessStatement) else "" for line in self.shown]),
            (here, [number(line.value) for line in self.shown]),
        ]
        if ends:
            columns.append((f"{other}: from", [number(line.ends[0]) for line in self.shown]))
            columns.append(("to", [number(line.ends[1]) for line in self.shown]))
        columns += more
        if any(statement.exact is not None for statement in self.statements):
            columns.append(("exact", [number(line.value + (line.exact or 0.0)) for line in self.shown]))
        return table(zip(*([name, *cells] for name, cells in columns), strict=True), words=(0, 1))

    def __str__(self) -> str:
        return "\n".join([self.table(), "", *self.notes()])

    def notes(self) -> list[str]:
        """What the numbers mean, in sentences."""
        together = "All lines hold together" if self.simultaneous else "Each line holds"
        notes = [
            f"{together} with probability {1.0 - self.failure:g} over the noise of the fit, on these {self.rows} rows.",
            f"Noise-free twin: {self.distance_to}.",
            f"Distance of the parameters: at most {self.radius:.4g} ({self.norm}).",
        ]
        if not self.private:
            notes.append("NOT PRIVATE: this table was computed without noise; showing it is a release.")
        return [*notes, *self.messages]


def _fields(record: Any, *names: str) -> dict[str, Any]:
    """The named attributes as JSON values; NaN becomes null."""
    values = {name: getattr(record, name) for name in names}
    missing = [name for name, value in values.items() if isinstance(value, float) and math.isnan(value)]
    return {name: plain(value) for name, value in values.items()} | dict.fromkeys(missing)


def number(value: float | None) -> str:
    """A number as the tables show it."""
    return "-" if value is None or math.isnan(value) else f"{value:.4f}"


NOTHING_KNOWN = "the noise is too large for a statement"
NORM = "Euclidean norm with the weights of the distance law, in the solver's columns"


@dataclass(frozen=True)
class PrivateStatement(FairnessStatement):
    """What is known of one number of a notion, from noisy counts.

    Attributes
    ----------
    notion, label, group
        As in `FairnessStatement`.
    rows : float
        Number of rows of that label and group, with noise.
    value : float
        An estimate of the number for the private model; NaN if the noise is too large.
    low, high : float
        Limits of the change from the private model's true number to that of its noise-free twin.
    value_low, value_high : float
        Limits of the private model's true number.
    """

    value_low: float = -1.0
    value_high: float = 1.0

    @property
    def known(self) -> bool:
        """Whether anything can be stated in spite of the noise."""
        return not math.isnan(self.value)

    @property
    def twin_low(self) -> float:
        """The least that the number can be for the noise-free twin."""
        return max(self.value_low + self.low, 0.0 if self.group is None else -1.0)

    @property
    def twin_high(self) -> float:
        """The largest that the number can be for the noise-free twin."""
        return min(self.value_high + self.high, 1.0)

    def to_dict(self) -> dict[str, Any]:
        """Return the statement as JSON values; an unknown value is null."""
        limits = {name: getattr(self, name) for name in ("known", "value_low", "value_high", "twin_low", "twin_high")}
        return super().to_dict() | limits


@dataclass(frozen=True)
class PrivateAggregate(AggregateStatement):
    """The mean over groups of the absolute values of a notion's numbers, for groups about which something is known.

    Attributes
    ----------
    notion, groups, value, bound
        As in `AggregateStatement`; the value is an estimate.
    value_low, value_high : float
        Limits of the private model's true mean.
    """

    value_low: float = 0.0
    value_high: float = 1.0

    @classmethod
    def of(cls, notion: str, statements: Sequence[PrivateStatement]) -> PrivateAggregate:
        """The mean of those statements that are known."""
        kept = [statement for statement in statements if statement.known]
        if not kept:
            return cls(notion, 0, math.nan, math.nan)
        least = float(np.mean([max(0.0, s.value_low, -s.value_high) for s in kept]))
        most = float(np.mean([max(-s.value_low, s.value_high) for s in kept]))
        value, bound = (float(np.mean(part)) for part in ([abs(s.value) for s in kept], [s.bound for s in kept]))
        return cls(notion, len(kept), value, bound, value_low=least, value_high=most)

    def to_dict(self) -> dict[str, Any]:
        """Return the statement as JSON values; NaN becomes null."""
        return super().to_dict() | {"value_low": self.value_low, "value_high": self.value_high}


@dataclass(frozen=True)
class PrivateCertificate(FairnessCertificate):
    """A fairness certificate whose reading of the rows is private.

    Guarantee: everything here is private as `guarantee` states.

    Attributes
    ----------
    statements : tuple of PrivateStatement
        One for each number that the notions ask about.
    aggregate : dict of str to PrivateAggregate
        One for each notion.
    failure : float
        All statements hold together with probability 1 - failure, over the noise of the fit and of this release.
    distance_to : str
        Which model the twin is.
    radius : float
        Within which distance of the model its twin was looked for when the rows were counted.
    rows : int
        Number of rows; under add_remove the public estimate of it.
    guarantee : Guarantee
        What is promised about the rows of this evaluation.
    """

    statements: tuple[PrivateStatement, ...]
    aggregate: Mapping[str, PrivateAggregate]
    guarantee: Any = None

    @classmethod
    def of_statements(
        cls,
        statements: Sequence[PrivateStatement],
        failure: float,
        distance_to: str,
        radius: float,
        rows: int,
        guarantee: Guarantee,
    ) -> PrivateCertificate:
        """The certificate of all statements of one evaluation."""
        notions = dict.fromkeys(statement.notion for statement in statements)
        means = {name: PrivateAggregate.of(name, [s for s in statements if s.notion == name]) for name in notions}
        about = (failure, True, "private", distance_to, radius, NORM, rows)
        private = guarantee.is_private and not guarantee.leaks
        messages = tuple(f"{s.notion}, {s.who}: {NOTHING_KNOWN}." for s in statements if not s.known)
        return cls(tuple(statements), means, *about, private, messages, guarantee)

    def to_dict(self) -> dict[str, Any]:
        """Return the certificate as JSON values."""
        return super().to_dict() | {"guarantee": self.guarantee.to_dict()}

    def _certain_rows(self) -> str:
        if self.radius == math.inf:
            return "The last two columns say nothing: the distance of the twin is not known, so every row may change."
        return f"A row counts as certain if no model within {self.radius:.4g} predicts otherwise ({self.norm})."

    def __str__(self) -> str:
        lines = [["notion", "about", "private model: from", "to", "change of the twin: from", "to"]]
        for found in self.statements:
            limits = (found.value_low, found.value_high, found.low, found.high)
            lines.append([found.notion, found.who, *(f"{end:+.4f}" if found.known else "-" for end in limits)])
        promise, chance = self.guarantee, 1.0 - self.failure
        notes = [
            f"All lines hold together with probability {chance:g} over the noise of the fit and of the counts.",
            f"Noise-free twin: {self.distance_to}.",
            self._certain_rows(),
            f"This release: epsilon {promise.epsilon:g}, delta {promise.delta:g}, relation {promise.relation}.",
        ]
        if not self.private:
            notes.append("NOT PRIVATE: " + ", ".join(promise.leaks or ("no noise was added",)) + ".")
        return "\n".join([table(lines, words=(0, 1)), "", *notes, *self.messages])
