"""What was trained and on what, and what was decided before any row was read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from discreet._common.text import one_line
from discreet.privacy.statement import release_facts
from discreet.report.blocks import Block, Facts, Items, Section, Table, Text
from discreet.solvers.plan import HEADER, describe_error, describe_shares, facts_of, spending_of

if TYPE_CHECKING:
    from discreet.privacy.guarantee import Guarantee
    from discreet.report.material import Material
    from discreet.solvers.plan import Plan

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
    facts, part = facts_of(plan), _part_of_more(material.guarantee, plan)
    if part:
        facts = {("budget of this fit alone" if name == "budget" else name): text for name, text in facts.items()}
    blocks: list[Block] = [
        Text(f"All of this was decided before any row was read, from public facts alone.{part}"),
        Facts((*facts.items(), ("standard error", describe_error(plan)))),
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
