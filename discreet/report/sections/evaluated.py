"""How good the model is: a private evaluation, with its limits, its curves and its own cost."""

from __future__ import annotations

from typing import TYPE_CHECKING

from discreet._common.text import one_line
from discreet.metrics.record import NAMES
from discreet.privacy.statement import release_facts, rounded_up
from discreet.report.blocks import Block, Facts, Figure, Notice, Section, Table, Text
from discreet.report.pictures import calibration, roc

if TYPE_CHECKING:
    from discreet.metrics import Evaluation, Limits
    from discreet.report.material import Material

LABEL = 40  # characters of a label, at most
ROWS_ALONE = (
    "The model protects whole persons, and its evaluation does not: a person with several rows in the table of the "
    "evaluation is protected less than its cost says."
)
SHOWN_CLASSES = 12  # of a confusion matrix
MISSING = (
    "No private evaluation is part of this report, so it does not say how good the model is. discreet evaluate "
    "measures it on private rows, at a cost of its own, and --evaluation shows it here."
)


def evaluated(material: Material) -> Section:
    """The evaluation, or that there is none."""
    found = material.evaluation
    blocks: tuple[Block, ...] = (Text(MISSING),) if found is None else tuple(_blocks(found))
    if found is not None and material.guarantee.unit != found.guarantee.unit:
        blocks = (*blocks, Notice("caution", "The evaluation protects single rows", (ROWS_ALONE,)))
    return Section("evaluation", "How good it is", blocks)


def _blocks(found: Evaluation) -> list[Block]:
    header = ("figure", "value", "from", "to", "noise (std)")
    rows = tuple((NAMES[name].replace("  ", "– "), *limits.texts()) for name, limits in found.figures.items())
    notes = [Text(note[:1].upper() + note[1:]) for note in found.notes()]
    blocks: list[Block] = [
        notes[0],
        Table("Figures of the model on private rows", header, rows, (1, 2, 3, 4)),
        *notes[1:],
    ]
    blocks += _confusion(found)
    if found.roc:
        told = "ROC curve: bars are confidence limits, which hold together; on the dashed line a score tells nothing."
        blocks.append(Figure(roc(found.roc, "roc"), told))
    if found.calibration:
        told = (
            "Calibration: bars are confidence limits, which hold together; on the dashed line predictions are right. "
            "Bins of which next to nothing is known are left out."
        )
        blocks.append(Figure(calibration(found.calibration, "calibration"), told))
    return [*blocks, Facts(tuple(_facts(found).items()))]


def _confusion(found: Evaluation) -> list[Block]:
    if not found.confusion:
        return []
    labels = [one_line(str(label), LABEL) for label in found.classes[:SHOWN_CLASSES]]
    rows = tuple(
        (f"label {label}", *map(_cell, line[:SHOWN_CLASSES]))
        for label, line in zip(labels, found.confusion[:SHOWN_CLASSES], strict=True)
    )
    hidden = len(found.classes) - len(labels)
    more = f"; {hidden:,} more classes are in the file of the evaluation" if hidden else ""
    header, numbers = ("", *(f"predicted {label}" for label in labels)), tuple(range(1, len(labels) + 1))
    return [Table(f"Shares of all rows by label and prediction; all hold together{more}", header, rows, numbers)]


def _cell(limits: Limits) -> str:
    value, low, high, _ = limits.texts()
    return f"{value} ({low} to {high})"


def _facts(found: Evaluation) -> dict[str, str]:
    """On which rows, when, and at which cost."""
    stated, rows = found.guarantee, f"{found.rows:,}"
    told = {name: value for name, value in release_facts(stated).items() if name in ("table", "rows", "date", "noise")}
    if not stated.is_private:
        return {"rows": rows, **told, "cost": "infinite: no noise was added"}
    cost = f"epsilon {rounded_up(stated.epsilon, 6)}, delta {rounded_up(stated.delta, 4)}, relation {stated.relation}"
    return {"rows": rows, **told, "cost": cost}
