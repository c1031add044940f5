"""What was decided before any row was read: the plan, and what was spent on what."""

from __future__ import annotations

from typing import TYPE_CHECKING

from discreet.report.blocks import Block, Facts, Items, Section, Table, Text
from discreet.solvers.plan_text import HEADER, error_told, facts_of, share_told, spending_of

if TYPE_CHECKING:
    from discreet.report.material import Material


def planned(material: Material) -> Section:
    """The plan, or why it is not known."""
    plan = material.plan
    if plan is None:
        return Section("plan", "The plan", (Text(f"The plan is not known: {material.why_no_plan}"),))
    blocks: list[Block] = [
        Text("All of this was decided before any row was read, from public facts alone."),
        Facts((*facts_of(plan).items(), ("standard error", error_told(plan)))),
    ]
    if plan.is_noisy:
        blocks += [
            Table("What the budget was spent on", HEADER, tuple(spending_of(plan)), (1, 2, 3)),
            Text(f"Share: {share_told(plan)}."),
        ]
    warnings = plan.weaknesses() + plan.warnings()
    if warnings:
        blocks += [Text("What the plan warned of:"), Items(tuple(warnings))]
    return Section("plan", "The plan", tuple(blocks))
