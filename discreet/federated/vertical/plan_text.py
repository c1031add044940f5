"""A vertical plan in words, for the people at the holders who decide about it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from discreet._common.text import paragraph

if TYPE_CHECKING:
    from discreet.federated.vertical.plan import VerticalSchedule
    from discreet.privacy.release import ReleasePlan

WHAT = {
    "moments": "the mean products of its columns with each other",
    "weights": "the gradient of its coefficients",
    "slopes": "one number per person: how the prediction from its own columns, and what is known of the others', "
    "differs from the target",
    "margins": "one number per person: what its columns add to the prediction",
}


def describe_plan(plan: VerticalSchedule) -> str:
    """What each holder will tell the others, with how much noise, and what is promised."""
    lines = [
        f"{len(plan.holders)} holders have different columns of the same {plan.rows:,} people, in the same order; "
        f"{plan.holders[-1].name} has the target. Slopes and margins are exchanged {plan.sweeps} times."
        if plan.is_noisy
        else f"{len(plan.holders)} holders exchange exact numbers about {plan.rows:,} people, without any privacy."
    ]
    for holder in plan.holders:
        lines += ["", *_of_holder(plan, holder)]
    total = plan.total
    lines += ["", "All that the holders know of one person, against whoever sees all messages:"]
    lines.append(
        f"  epsilon = {total.epsilon:.4g} at delta = {total.delta:.3g} ({plan.relation.explanation})."
        if total.is_private
        else "  nothing is promised."
    )
    lines.append("Not covered: that a person is in these tables is known to all holders; rows must come matched.")
    return "\n".join(paragraph(line, rest="    ") for line in lines)


def _of_holder(plan: VerticalSchedule, holder: ReleasePlan) -> list[str]:
    title = f"{holder.name}: {holder.public.columns} columns{' and the target' if holder.has_labels else ''}"
    if not holder.is_noisy:
        return [title, "  sends exact numbers: nothing is promised about its rows."]
    kinds = [turn.kind for turn in plan.schedule if turn.holder == holder.name][1:]
    lines = [title, f"  scales of its columns: {holder.scaling_plan.method}"]
    for kind in dict.fromkeys(kinds):
        part = holder.mechanism.part(kinds.index(kind))
        times = f"{kinds.count(kind)} times" if kinds.count(kind) > 1 else "once"
        lines.append(f"  {times}: {WHAT[kind]}; noise of {part.multiplier:.4g} times what one person can change")
    promise = holder.guarantee
    lines.append(
        f"  promised about one person's row at {holder.name}, against all others together: epsilon = "
        f"{promise.epsilon:.4g}, delta = {promise.delta:.3g}"
    )
    return lines
