"""What was trained and on what, and what was decided before any row was read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from discreet._common.text import one_line
from discreet.privacy.statement import release_facts
from discreet.report.blocks import Block, Facts, Items, Section, Table, Text
from discreet.solvers.plan import HEADER, describe_error, describe_shares, facts_of, spending_of

if TYPE_CHECKING:
    from discreet.report.material import Material

SHOWN_CLASSES = 30
LABEL = 60  # characters of a label, at most


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
    hidden = len(labels) - SHOWN_CLASSES
    more = f" and {hidden:,} more" if hidden > 0 else ""
    return {"classes": ", ".join(one_line(repr(label), LABEL) for label in labels[:SHOWN_CLASSES]) + more}


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
    blocks: list[Block] = [
        Text("All of this was decided before any row was read, from public facts alone."),
        Facts((*facts_of(plan).items(), ("standard error", describe_error(plan)))),
    ]
    if plan.is_noisy:
        blocks += [
            Table("What the budget was spent on", HEADER, tuple(spending_of(plan)), (1, 2, 3)),
            Text(f"Share: {describe_shares(plan)}."),
        ]
    warnings = plan.weaknesses() + plan.warnings()
    if warnings:
        blocks += [Text("What the plan warned of:"), Items(tuple(warnings))]
    return Section("plan", "The plan", tuple(blocks))
