"""The model itself, in the order of the page.

What was trained and on what, and what was decided before any row was read. What the model says: the columns that can
move it most, as a picture with bars of noise and as a table. How good it is: a private evaluation, with its limits, its
curves and its own cost. The model card: what the model is for, what it was made from, where it must not be trusted; and
the signature.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from discreet._common.blocks import Block, Facts, Heading, Items, Table, Text
from discreet._common.text import one_line
from discreet.estimators.reading.summary_text import (
    DOUBTFUL,
    HEADER,
    heading,
    lines_of,
    most_moving,
    noise_told,
    ranges_told,
)
from discreet.metrics.record import NAMES
from discreet.privacy.relation import Unit
from discreet.privacy.statement import percent_at_most, release_facts, rounded_up
from discreet.report.blocks import Blanks, Figure, Notice, Section
from discreet.report.pictures import Bar, calibration, coefficients, roc
from discreet.report.sections.intervals import interval_blocks
from discreet.solvers.plan import HEADER as SPENDING
from discreet.solvers.plan import describe_error, describe_shares, facts_of, spending_of

if TYPE_CHECKING:
    from discreet.estimators.reading.summary import ModelSummary
    from discreet.metrics import Evaluation, Limits
    from discreet.privacy.guarantee import Guarantee
    from discreet.report.write import Material
    from discreet.solvers.plan import Plan


LISTED_CLASSES = 30
NAME = 60  # characters of a name or of a listed label, at most


def trained(material: Material) -> Section:
    """The model, the table, the day, the software, and where the numbers of the page come from."""
    facts = {"model": material.summary.estimator, "predicts": material.target or "(the target is not named)"}
    facts |= _classes(material)
    facts |= {name: value for name, value in release_facts(material.guarantee).items() if name != "result"}
    facts.setdefault("columns", f"{material.summary.form.columns:,}")
    facts["solver"] = material.summary.solver
    if material.sha256:
        facts["model file"] = f"SHA-256 {material.sha256}"
    return Section("trained", "What was trained, and on what", (Facts(tuple(facts.items())), Text(_origin(material))))


def _classes(material: Material) -> dict[str, str]:
    labels = material.summary.form.labels
    if not labels:
        return {}
    hidden = len(labels) - LISTED_CLASSES
    more = f" and {hidden:,} more" if hidden > 0 else ""
    return {"classes": ", ".join(one_line(repr(label), NAME) for label in labels[:LISTED_CLASSES]) + more}


def _origin(material: Material) -> str:
    """From what the page was made, and what follows for who may see it."""
    parts = ["the model"]
    parts += ["its evaluation"] if material.evaluation is not None else []
    parts += ["the ledger"] if material.ledger is not None else []
    listed = parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
    told = f"Everything on this page was computed from {listed}. No row of the table was read for it"
    if not material.is_private:
        return f"{told}, but it shows results without privacy protection: guard it as the table is guarded."
    return f"{told}: it is post-processing, costs no privacy, and may be shown to whoever may see {listed}."


def planned(material: Material) -> Section:
    """The plan, or why it is not known."""
    plan, why_none = material.plan_or_reason
    if plan is None:
        return Section("plan", "The plan", (Text(f"The plan is not known: {why_none}"),))
    facts, part = facts_of(plan), _part_of_more(material.guarantee, plan)
    if part:
        facts = {("budget of this fit alone" if name == "budget" else name): text for name, text in facts.items()}
    blocks: list[Block] = [
        Text(f"All of this was decided before any row was read, from public facts alone.{part}"),
        Facts((*facts.items(), ("standard error", describe_error(plan)))),
    ]
    if plan.is_noisy:
        blocks += [
            Table("What the budget was spent on", SPENDING, tuple(spending_of(plan)), (1, 2, 3)),
            Text(f"Share: {describe_shares(plan)}."),
        ]
    warnings = plan.weaknesses() + plan.warnings()
    if warnings:
        blocks += [Text("What the plan warned of:"), Items(tuple(warnings))]
    return Section("plan", "The plan", tuple(blocks))


def _part_of_more(promised: Guarantee, plan: Plan) -> str:
    """What the plan's budget is, where the model came out of a search, which has another."""
    own = plan.guarantee
    if (promised.epsilon, promised.delta) == (own.epsilon, own.delta):
        return ""
    release = "what released it" if promised.release is None else promised.release.result
    return (
        f" It is the plan of one fit within {release}. For the model holds what is promised above, epsilon "
        f"{promised.epsilon:.6g} and delta {promised.delta:.4g}, which pays for the choice of this fit as well. The "
        "budget, the shares and the rows below are those of this fit alone; they are no promise about the model."
    )


NAMELESS = "(no name)"
SHOWN_CLASSES = 12  # of coefficients, and of a confusion matrix


def says(material: Material) -> Section:
    """One picture and one table for each output of the model."""
    summary = material.summary
    outputs = summary.form.intercept.size
    shown = range(min(outputs, SHOWN_CLASSES))
    blocks: list[Block] = [Text(text) for text in _explanation(summary)]
    if material.schema is not None and material.schema.contrasts:
        blocks.append(Text(material.schema.contrasts_told()))
    if outputs > len(shown):
        blocks.append(Text(f"The coefficients of {outputs - len(shown):,} more classes are in the model file."))
    for output in shown:
        blocks += _output(summary, output, most_moving(summary, material.columns, output))
    blocks += interval_blocks(summary.inference, sorted(most_moving(summary, material.columns)))
    return Section("coefficients", "What the model says", tuple(blocks))


def _explanation(summary: ModelSummary) -> list[str]:
    return [
        "Per unit: how far one more unit of the column moves the value. Per range: how far the way from its low to its "
        "high end moves it, which compares columns of different units.",
        f"Low, high: entries outside are moved to the nearest end. How they were found: {ranges_told(summary)}.",
        f"Noise: {noise_told(summary)}",
    ]


def _output(summary: ModelSummary, output: int, shown: list[int]) -> list[Block]:
    hidden = summary.form.columns - len(shown)
    more = f"; {hidden:,} columns that can move it less are not shown" if hidden else ""
    told: list[Block] = [Heading(heading(summary, output))]
    if shown:
        told.append(_picture(summary, output, shown))
    rows = [(name or NAMELESS, *cells) for name, *cells in lines_of(summary, output, shown, NAME)]
    caption = f"Coefficients of {len(shown):,} columns, those that can move it most first{more}"
    return [*told, Table(caption, HEADER, tuple(rows), (1, 2, 3, 4, 5))]


def _picture(summary: ModelSummary, output: int, shown: list[int]) -> Figure:
    """Effects per range; per unit if a column has no range."""
    form, noise, effects = summary.form, summary.noise, summary.per_range[output]
    ranged = bool(np.isfinite(effects[shown]).all())
    widths = form.high - form.low if ranged else np.ones(form.columns)
    effects = effects if ranged else form.coef[output]
    bars = [
        Bar(
            form.shown_names[j] or NAMELESS,
            effects[j],
            None if noise.per_unit is None else DOUBTFUL * noise.per_unit[j] * widths[j],
        )
        for j in shown
    ]
    unit = "per range" if ranged else "per unit"
    if noise.per_unit is None:
        told = f"Effects {unit}; how large the noise in them is, is not known."
    elif noise.kind == "none":
        told = f"Effects {unit}; there is no noise in them."
    else:
        told = (
            f"Effects {unit} with bars of {DOUBTFUL:g} standard deviations of the predicted noise to each side; hollow "
            "dots: the sign may be noise."
        )
    return Figure(coefficients(bars, f"effect {unit}", heading(summary, output), f"effects-{output}"), told)


LABEL = 40  # characters of a label in a table, at most
ROWS_ALONE = (
    "The model protects whole persons, and its evaluation does not: a person with several rows in the table of the "
    "evaluation is protected less than its cost says."
)
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


# Told elsewhere on the page, or not to be told: a seed removes the noise, an address may hold a password.
NOT_SHOWN = {"random_state", "ledger", "verbose", "dataset", "classes", "bounds", "start", "public_table", "epsilon"}
VALUE = 200  # characters of a parameter's value, at most


def card(material: Material) -> Section:
    """Details, purpose, data, limits."""
    blocks: list[Block] = [Facts(tuple(_details(material).items()))]
    if not material.purpose:
        blocks.append(Blanks(("Intended use", "Not to be used for", "Responsible")))
    blocks += [Heading("Limits"), Items(tuple(_limits(material)))]
    parameters = material.estimator.get_params(deep=False)
    rows = tuple((name, one_line(repr(value), VALUE)) for name, value in parameters.items() if name not in NOT_SHOWN)
    blocks.append(Table("Parameters of the estimator", ("parameter", "value"), rows))
    return Section("card", "Model card", tuple(blocks))


def _details(material: Material) -> dict[str, str]:
    release, form = material.guarantee.release, material.summary.form
    details = {"type": f"{material.summary.estimator}, a linear model with {form.columns:,} columns"}
    if material.purpose:
        details["intended use"] = material.purpose
    if release is not None:
        details["training data"] = release.table or "(not named)"
        details["software"] = f"discreet {release.version}"
    found = material.evaluation
    if found is None:
        details["evaluation data"] = "none: not evaluated here"
    else:
        told = release_facts(found.guarantee)
        details["evaluation data"] = f"{told.get('table', '(not named)')}; rows: {told.get('rows', f'{found.rows:,}')}"
    declared = len(form.names) if form.names is not None else 0
    details["columns"] = "named in the model file" if declared else "without names"
    if material.guarantee.public_inputs:
        details["taken as public"] = "; ".join(material.guarantee.public_inputs)
    return details


def _limits(material: Material) -> list[str]:
    """Where the model must not be trusted, as far as its own file tells."""
    noise, stated = material.summary.noise, material.promise
    found = [
        "Rows outside the ranges of the columns are treated as if they lay at the nearest end.",
        "Coefficients describe this model, not causes. "
        + ("They hold noise that was added for privacy." if stated.is_private else "No noise was added to them."),
        "Whether it treats groups of people alike was not measured here; discreet fairness does that.",
    ]
    if noise.kind == "not known":
        found.append("How large the noise in the coefficients is, is not known.")
    if not np.any(material.estimator.coef_):
        found.append("The rows were too few for more than a constant: it predicts the same for every row.")
    if material.evaluation is None:
        found.append("How good its predictions are was not measured here.")
    elif material.evaluation.beats_constant is not True:
        found.append("Its evaluation does not show that it predicts better than a constant.")
    if stated.is_private:
        told = f"protected less than by the {percent_at_most(stated.meaning.guess)} told above."
        found.append(
            f"The promise is about single rows: a person with several rows is {told}"
            if stated.unit == "row"
            else f"The promise is about all rows with the same id: a person with several ids is {told}"
        )
    return found


CONFIRMED = (
    "What was declared as public (bounds, classes, names, number of rows or persons where it is public) was not found "
    "by looking at the rows.",
    "Every other result from the same table that was or will be published is counted in a budget.",
)
SEVERAL: dict[Unit, str] = {
    "row": "No person has more than one row in the table, or the weaker protection of such persons is accepted.",
    "person": "No person has more than one id in the table, or the weaker protection of such persons is accepted.",
}


def signature(material: Material) -> Section:
    """What the person who signs confirms, and lines for it."""
    without = "" if material.is_private else "I know that this page shows results WITHOUT privacy protection."
    gaps = "I have read what the promise does not cover, and accept it." if material.leaks else ""
    units = dict.fromkeys(stated.unit for stated in material.promises)
    several = [SEVERAL[unit] for unit in units]
    points = tuple(text for text in (without, gaps, *CONFIRMED, *several) if text)
    return Section(
        "signature",
        "Signature",
        (Text("By signing I confirm:"), Items(points), Blanks(("Name and function", "Place and date", "Signature"))),
    )
