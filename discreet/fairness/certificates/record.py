"""What a fairness certificate says, as values, as JSON and as a table of text."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from discreet._common.text import table


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
    def who(self) -> str:
        """The label and the group in words."""
        said = [f"label {self.label}"] if self.label is not None else []
        said += [f"group {self.group}"] if self.group is not None else []
        return ", ".join(said) or "all rows"

    def to_dict(self) -> dict[str, Any]:
        """Return the statement as JSON values; NaN becomes null."""
        numbers = {name: getattr(self, name) for name in ("rows", "value", "low", "high", "bound", *_OPTIONAL)}
        return {
            "notion": self.notion,
            "label": self.label,
            "group": self.group,
            **{name: plain(value) for name, value in numbers.items()},
            "bounds": {form: plain(value) for form, value in self.bounds.items()},
        }


_OPTIONAL = ("printed", "refined", "exact")


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

    def to_dict(self) -> dict[str, Any]:
        """Return the statement as JSON values; NaN becomes null."""
        numbers = {name: plain(getattr(self, name)) for name in ("value", "bound", *_OPTIONAL)}
        return {"notion": self.notion, "groups": self.groups, **numbers}


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
        plain_fields = ("failure", "simultaneous", "reference", "distance_to", "norm", "rows", "private")
        return {
            **{name: getattr(self, name) for name in plain_fields},
            "radius": plain(self.radius),
            "statements": [statement.to_dict() for statement in self.statements],
            "aggregate": {notion: found.to_dict() for notion, found in self.aggregate.items()},
            "messages": list(self.messages),
        }

    def __str__(self) -> str:
        other = "noise-free twin" if self.reference == "private" else "private model"
        here = "private model" if self.reference == "private" else "noise-free twin"
        exact = any(statement.exact is not None for statement in self.statements)
        head = ["notion", "about", "rows", here, f"{other}: from", "to"] + (["exact"] if exact else [])
        lines = [head]
        for found in self.statements:
            low, high = found.value + found.low, found.value + found.high
            line = [found.notion, found.who, f"{found.rows:.0f}", _number(found.value), _number(low), _number(high)]
            lines.append(line + ([_number(found.value + (found.exact or 0.0))] if exact else []))
        for notion, total in self.aggregate.items():
            if total.groups > 1:
                low, high = max(0.0, total.value - total.bound), total.value + total.bound
                line = [notion, "mean of |.|", "", _number(total.value), _number(low), _number(high)]
                lines.append(line + ([_number(total.value + (total.exact or 0.0))] if exact else []))
        return "\n".join([table(lines, words=(0, 1)), "", *self.notes()])

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


def plain(value: float | None) -> float | str | None:
    """A number as JSON can hold it."""
    if value is None or math.isnan(value):
        return None
    return float(value) if math.isfinite(value) else ("inf" if value > 0.0 else "-inf")


def _number(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.4f}"
