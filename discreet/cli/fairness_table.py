"""What `discreet fairness` prints: a line for each notion and group, with all bounds beside each other."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from discreet.fairness.certificates.record import FairnessCertificate, FairnessStatement
    from discreet.fairness.figures.simulate import ModelValues


BOUNDS = ["other model: from", "to", "bound", "by", "thesis"]  # columns that need a distance
FIRST_BOUND = 4  # the place of the first of them


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
    from discreet._common.text import table

    told: FairnessCertificate = found["certificate"]
    band: ModelValues | None = found["band"]
    head = ["notion", "about", "rows", "value", *BOUNDS]
    head += ([] if band is None else ["models: from", "to"]) + (["exact"] if _exact(told) else [])
    lines = [head, *(_line(told, place, statement, band) for place, statement in enumerate(told.statements))]
    for notion, total in told.aggregate.items():
        if total.groups > 1:
            low, high = max(0.0, total.value - total.bound), total.value + total.bound
            line = [notion, "mean of |.|", "", *map(number, (total.value, low, high, total.bound)), ""]
            line += [number(total.printed)] + ([] if band is None else [number(end) for end in band.band(notion)])
            lines.append(line + ([number(total.value + (total.exact or 0.0))] if _exact(told) else []))
    if found["unbounded"] is not None:  # the values alone
        lines = [line[:FIRST_BOUND] + line[FIRST_BOUND + len(BOUNDS) :] for line in lines]
    return "\n".join([table(lines, words=(0, 1)), "", *_notes(found)])


def _line(told: FairnessCertificate, place: int, statement: FairnessStatement, band: ModelValues | None) -> list[str]:
    value = statement.value
    ends = (value, value + statement.low, value + statement.high, statement.bound)
    line = [statement.notion, statement.who, f"{statement.rows:.0f}", *map(number, ends)]
    line += [form_of(statement), number(statement.printed)]
    if band is not None:
        column = band.values[:, place]
        line += [number(float(column.min())), number(float(column.max()))]
    return line + ([number(value + (statement.exact or 0.0))] if _exact(told) else [])


def form_of(statement: FairnessStatement) -> str:
    """Which argument gave the interval: the distance between the models alone, or the noise of each row's score."""
    if math.isnan(statement.value):
        return "-"
    return "noise" if statement.bound < statement.bounds.get("signed", math.inf) * (1.0 - 1e-9) else "distance"


def number(value: float | None) -> str:
    return "-" if value is None or math.isnan(value) else f"{value:.4f}"


def _exact(told: FairnessCertificate) -> bool:
    return any(statement.exact is not None for statement in told.statements)


def _band_from(found: dict[str, Any]) -> str | None:
    if found["band"] is None:
        return None
    if found["evaluation"].train is None:
        return "models drawn from the law of the distance, around the model given"
    return "private models fitted again to the training rows"


def _notes(found: dict[str, Any]) -> list[str]:
    told: FairnessCertificate = found["certificate"]
    other = "noise-free twin" if told.reference == "private" else "private model"
    band: ModelValues | None = found["band"]
    if found["unbounded"] is not None:
        return _notes_on_values(found)
    notes = [
        *told.notes(),
        f"value: of the {'private model' if told.reference == 'private' else 'noise-free twin'}; other model: the "
        f"{other}. bound: on the absolute change. by: distance of the models, or noise of each row's score.",
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
        f"value: of the model, on these {found['certificate'].rows} rows.",
        f"No bounds on what the noise changed: {'; '.join(reasons)}.",
        "For bounds fit with --solver output-perturbation, or give --twin FILE or, as owner of the rows, --train FILE.",
    ]
    if found["band"] is not None:
        notes.append(f"models: smallest and largest value of {found['band'].models} {_band_from(found)}.")
    return notes + [f"written: {path}" for path in found.get("figures", [])]
