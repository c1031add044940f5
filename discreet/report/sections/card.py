"""The model card: what the model is for, what it was made from, where it must not be trusted; and the signature."""

from __future__ import annotations

from typing import TYPE_CHECKING

from discreet._common.text import one_line
from discreet.privacy.relation import Unit
from discreet.privacy.statement import percent_at_most, release_facts
from discreet.report.blocks import Blanks, Block, Facts, Heading, Items, Section, Table, Text

if TYPE_CHECKING:
    from discreet.report.material import Material

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
    plan, _ = material.plan_or_reason
    if plan is not None and plan.settings.is_constant:
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
