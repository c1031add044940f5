"""A plan in plain words: what is spent on what, how noisy each release is, and what to expect of the coefficients."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import TYPE_CHECKING

from discreet._common.text import facts, table
from discreet.privacy.planned_release import PlannedRelease
from discreet.privacy.relation import Relation

if TYPE_CHECKING:
    from discreet.solvers.plan import Plan
    from discreet.solvers.theory.plan_theory import PlanTheory

SCALING_WORDS = {
    "declared": "declared bounds; nothing is learned about them",
    "moments": "declared bounds; centres and widths are learned privately",
    "narrowed": "declared bounds; ends of the bulk, centres and widths inside them are learned privately",
    "factor": "declared bounds, too little data for more: one factor by which they are too wide is learned privately",
    "columns": "radius, centre and width of every column are learned privately",
    "completed": "declared bounds where there are any; the radius of each other column is learned privately",
    "common": "too little data for scales per column: one common radius is learned privately",
    "public": "ranges, centres and widths of the columns are those of a public table",
    "none": "columns as they are",
    "target": "columns as they are; range and mean of the target are learned privately",
}
UNIT_WORDS = {
    Relation.REPLACE: "a person, with all rows, replaced by any other one (relation replace)",
    Relation.ZERO_OUT: "a person, all of whose rows become empty (relation zero_out)",
    Relation.ADD_REMOVE: "a person added or removed with all rows (relation add_remove)",
}
RELATION_WORDS = {
    Relation.REPLACE: "a row replaced by any other one (relation replace)",
    Relation.ZERO_OUT: "a row replaced by an empty one (relation zero_out)",
    Relation.ADD_REMOVE: "a row added or removed (relation add_remove)",
}
REASON = "chosen because"
HEADER = ("what is spent on what", "times", "share", "noise / sensitivity", "standard deviation of the noise")


def describe_plan(plan: Plan) -> str:
    """The whole plan, for people."""
    blocks = [facts(facts_of(plan).items())]
    if plan.is_noisy:
        blocks += [table([HEADER, *spending_of(plan)], words=(0, 4)), facts([("share", describe_shares(plan))])]
    blocks.append(facts([("standard error", describe_error(plan))]))
    return "\n\n".join([*blocks, *(facts([("warning", text)]) for text in plan.weaknesses() + plan.warnings())])


def describe_theory(theory: PlanTheory) -> str:
    """Lower and upper bound of a plan, for people."""
    known = "assumed" if theory.radius_is_assumed else "by the penalty"
    lines = [("norm of optimum", f"at most {theory.radius:.4g} in scaled columns ({known})")]
    for name, bound in (("lower bound", theory.lower), ("upper bound", theory.upper)):
        if bound is not None:
            lines.append((name, f"{bound}{', proved' if bound.proved else ''}"))
            lines += [("  assumes", told) for told in bound.assumptions]
    if theory.ratio is not None:
        told = f"the upper bound is {theory.ratio:.3g} times the order of the lower one, whose constant is not known"
        lines.append(("between them", told))
    return facts([*lines, *(("not known", reason) for reason in theory.reasons)])


def describe_scaling(method: str, private: bool) -> str:
    """How the scales of the columns are found; with an infinite epsilon nothing is learned privately."""
    return SCALING_WORDS[method] if private else SCALING_WORDS[method].replace("privately", "without noise")


def facts_of(plan: Plan) -> dict[str, str]:
    """What was decided, by name: solver, table, relation, budget, scales and settings."""
    public = plan.public
    told = {
        "solver": plan.solver.name,
        **({REASON: plan.chosen_because} if plan.chosen_because else {}),
        "table": f"{public.rows:,} {public.unit}s, {public.columns:,} columns",
        "protected": (UNIT_WORDS if public.persons else RELATION_WORDS)[public.relation],
        "rows in memory": _describe_memory(plan),
        "budget": str(plan.budget).strip("()"),
        "scales": describe_scaling(plan.scaling_plan.method, plan.is_noisy),
    }
    if public.stored:
        told["passes over rows"] = _describe_passes(plan)
    if public.persons:
        told["rows of a person"] = _rows_used(plan)
    if public.partly_bounded:
        others = "not used by this solver" if plan.solver.name == "screened" else "open sides of the others are learned"
        told["declared bounds"] = f"of {int(public.declared.sum()):,} columns; {others}"
    if plan.has_public_start:
        told["start"] = "public coefficients" if public.start is not None else "fitted on the public table"
    if public.inputs:
        told["taken as public"] = "; ".join(public.inputs)
    return told | {name.replace("_", " "): _value(value) for name, value in plan.settings.to_dict().items()}


def _describe_memory(plan: Plan) -> str:
    takes = plan.solver.capabilities
    held = not takes.stored or (takes.copied and not plan.public.stored)
    return "all at once" if held else "block by block"


def _describe_passes(plan: Plan) -> str:
    passes = plan.settings.passes_over_rows
    return f"{passes:,} by the steps, and some for checks and scales" if passes else "one a release, and one for checks"


def _rows_used(plan: Plan) -> str:
    if plan.rows_per_person > 1:
        return f"up to {plan.rows_per_person:,}, drawn at random; their gradients are averaged, then clipped"
    return "one, drawn at random" + ("" if plan.solver.capabilities.persons else " (newton and gd use more)")


def _value(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def spending_of(plan: Plan) -> list[tuple[str, str, str, str, str]]:
    """The lines below `HEADER`, one for each kind of release; none if nothing is noisy."""
    return [_row(what, list(group)) for what, group in groupby(plan.releases, key=lambda release: release.what)]


def describe_shares(plan: Plan) -> str:
    """What the shares are parts of."""
    if plan.budget.kind == "pure":
        return "part of epsilon"
    gaussian = "part of mu^2, mu being the parameter of the Gaussian differential privacy that the budget allows"
    if all(release.kind == "Gaussian" for release in plan.releases):
        return gaussian
    return f"{gaussian}; releases whose noise is not Gaussian take what the others leave"


def _row(what: str, releases: list[PlannedRelease]) -> tuple[str, str, str, str, str]:
    """Releases of one kind on one line; their noise may differ from step to step."""
    times, share = sum(release.times for release in releases), sum(release.share for release in releases)
    ratio = _range(release.noise_over_sensitivity for release in releases)
    return (what, f"{times:,}", f"{share:.1%}", ratio, _noise(releases))


def _noise(releases: list[PlannedRelease]) -> str:
    first = releases[0]
    words = []
    if first.deviation is not None:
        words.append(f"{_range(r.deviation for r in releases if r.deviation is not None)} {first.unit}")
    elif first.epsilon is not None:
        words.append(f"each costs epsilon = {first.epsilon:.3g}")
    if first.sample_rate is not None:
        words.append(f"{first.sample_rate:.2g} of the rows at a time")
    return "; ".join(words)


def _range(numbers: Iterable[float]) -> str:
    """One number, or the first and the last where they differ."""
    found = [f"{number:,.0f}" if number >= 1_000 else f"{number:.3g}" for number in numbers]
    return found[0] if found[0] == found[-1] else f"{found[0]} to {found[-1]}"


def describe_error(plan: Plan) -> str:
    """The noise that is expected in a coefficient."""
    if not plan.is_noisy:
        return "0 from noise: epsilon is infinite"
    if plan.standard_error is None:
        return "not predicted for this solver"
    loss = plan.problem.loss
    unit = "" if loss.classification else " standard deviations of the target"
    unit += ", over its mean," if loss.log_link else ""
    return f"about {plan.standard_error:.2g}{unit} in the coefficient of a scaled column, from the noise alone"
