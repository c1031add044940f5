"""What `discreet fairness` prints: a line for each notion and group, with all bounds beside each other."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from discreet.fairness.certificates.record import AggregateStatement, number

if TYPE_CHECKING:
    from discreet.fairness.certificates.record import FairnessCertificate, FairnessStatement
    from discreet.fairness.figures import ModelValues


def as_json(found: dict[str, Any]) -> dict[str, Any]:
    """The certificate, the band and the figures as JSON values."""
    band: ModelValues | None = found["band"]
    return {
        "certificate": found["certificate"].to_dict(),
        "band": None if band is None else {notion: list(band.band(notion)) for notion in band.notions},
        "band_from": _band_from(found),
        "models": None if band is None else band.models,
        "gradient_distance": found["gradient"],
        "figures": found.get("figures", []),
    }


def as_text(found: dict[str, Any]) -> str:
    """A table for people, and what it means."""
    told: FairnessCertificate = found["certificate"]
    band: ModelValues | None = found["band"]
    bounded, columns = found["unbounded"] is None, []
    if bounded:
        columns.append(("bound", [number(line.bound) for line in told.shown]))
        columns.append(("by", [form_of(line) for line in told.shown]))
        columns.append(("thesis", [number(line.printed) for line in told.shown]))
    if band is not None:
        each = [(column.min(), column.max()) for column in band.values.T]
        ends = [*each, *(band.band(line.notion) for line in told.shown[len(each) :])]
        columns.append(("models: from", [number(low) for low, _ in ends]))
        columns.append(("to", [number(high) for _, high in ends]))
    return "\n".join([told.table(columns, bounded), "", *_notes(found)])


def form_of(line: FairnessStatement | AggregateStatement) -> str:
    """Which argument gave the interval: the distance between the models alone, or the noise of each row's score."""
    if isinstance(line, AggregateStatement):
        return ""
    if math.isnan(line.value):
        return "-"
    return "noise" if line.bound < line.bounds.get("signed", math.inf) * (1.0 - 1e-9) else "distance"


def _band_from(found: dict[str, Any]) -> str | None:
    if found["band"] is None:
        return None
    if found["evaluation"].train is None:
        return "models drawn from the law of the distance, around the model given"
    return "private models fitted again to the training rows"


def _notes(found: dict[str, Any]) -> list[str]:
    told: FairnessCertificate = found["certificate"]
    band: ModelValues | None = found["band"]
    if found["unbounded"] is not None:
        return _notes_on_values(found)
    notes = [
        *told.notes(),
        "bound: on the absolute change. by: distance of the models, or noise of each row's score.",
        "thesis: the bound as printed in P. Mangold's thesis (2023), chapter 6, to compare; - where it prints none.",
    ]
    if band is not None:
        notes.append(f"models: smallest and largest value of {band.models} {_band_from(found)}.")
    if found["gradient"] is not None:
        notes.append(f"Distance that the gradient on the training rows proves: {found['gradient']:.4g} (owner only).")
    if found["refused"]:
        notes.append(f"The gradient proves nothing: {found['refused']}")
    return notes + [f"written: {path}" for path in found.get("figures", [])]


def _notes_on_values(found: dict[str, Any]) -> list[str]:
    """What a table of values alone means, and how to get bounds."""
    reasons = [reason.rstrip(".") for reason in (found["unbounded"], found["refused"]) if reason]
    notes = [
        f"Values on these {found['certificate'].rows} rows.",
        f"No bounds on what the noise changed: {'; '.join(reasons)}.",
        "For bounds fit with --solver output-perturbation, or give --twin FILE or, as owner of the rows, --train FILE.",
    ]
    if found["band"] is not None:
        notes.append(f"models: smallest and largest value of {found['band'].models} {_band_from(found)}.")
    return notes + [f"written: {path}" for path in found.get("figures", [])]
