"""What a private evaluation says: the record of a fairness certificate, with limits that include the counts' noise."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet._common.text import table
from discreet.fairness.certificates.record import AggregateStatement, FairnessCertificate, FairnessStatement

if TYPE_CHECKING:
    from discreet.privacy.guarantee import Guarantee

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
