"""A federated plan in plain words: who learns what, how noisily, and what is promised before the first round."""

from __future__ import annotations

from typing import TYPE_CHECKING

from discreet._common.text import facts
from discreet.privacy.relation import Relation

if TYPE_CHECKING:
    from discreet.federated.plan import FederatedPlan

PROTECTED = {
    ("client", Relation.REPLACE): "all rows of a client, replaced by any others",
    ("client", Relation.ZERO_OUT): "all rows of a client, which may stop counting",
    ("record", Relation.REPLACE): "each row of a client, replaced by any other",
    ("record", Relation.ZERO_OUT): "each row of a client, which may stop counting",
}
FROM = {
    "local": "everybody, the server included: the clients add noise that is enough for each of them alone",
    "central": "those who see the models: the server is trusted with the messages, whose noise adds up",
}
SEEN_BY = {"local": "local: what the server sees", "central": "central: what the models tell"}
ABOUT = {"client": "about a whole client", "record": "about one row of a client"}


def describe(plan: FederatedPlan) -> str:
    """The whole plan, for people."""
    blocks = [facts(_facts(plan).items()), "\n".join(_promises(plan))]
    return "\n\n".join([*blocks, *(facts([("note", note)]) for note in _notes(plan))])


def _facts(plan: FederatedPlan) -> dict[str, str]:
    problem, public = plan.problem, plan.public
    told = {
        "method": f"consensus ADMM, {problem.loss.name} loss, {problem.penalty.name} penalty",
        "clients": _asked(plan),
        "answers": f"at most {plan.participations:,} by each client; a client counts them itself",
        "columns": f"{public.columns:,}, scaled by declared bounds; nothing is learned about them",
        "protected": PROTECTED[plan.unit, plan.relation],
        "protected from": FROM[plan.model],
        "budget": f"{str(plan.budget).strip('()')}, for all rounds together",
        "clipping": f"gradient of a {'client' if plan.unit == 'client' else 'row'} to norm {plan.clip:.4g}",
        "noise": f"standard deviation {plan.grid.scale:.4g} in each of the {plan.dimension:,} numbers of a message",
        "proximal steps": f"gamma {plan.gamma:.4g}, relaxation {plan.relaxation:g}, tolerance {plan.tolerance:.2g}",
    }
    if plan.unit == "record":
        told["rows"] = f"at least {public.rows:,} for each client, a public number"
    if plan.watches_dropouts:
        of = " of a cohort" if plan.cohorts > 1 else ""
        told["dropouts"] = (
            f"at most {plan.dropouts:,} clients{of} in a round; a round that more have missed is not used"
        )
    return told


def _asked(plan: FederatedPlan) -> str:
    if plan.cohorts == 1:
        asked = plan.per_round if plan.sampling == "uniform" else plan.clients
        return f"{plan.clients:,}, of which {asked:,} are asked in each of {plan.rounds:,} rounds"
    return (
        f"{plan.clients:,} in {plan.cohorts:,} cohorts of {plan.smallest_cohort:,} or more, drawn once at random; one "
        f"cohort is asked in each of {plan.rounds:,} rounds, in turn"
    )


def _promises(plan: FederatedPlan) -> list[str]:
    lines = ["what is promised, before the first round and for all of them:"]
    for (model, unit), promise in plan.guarantees.items():
        cost = f"epsilon = {promise.epsilon:.4g}, delta = {promise.delta:.3g}" if promise.is_private else "nothing"
        mark = "   <- the budget" if (model, unit) == (plan.model, plan.unit) else ""
        lines.append(f"  {SEEN_BY[model]:<34}{ABOUT[unit]:<26}{cost}{mark}")
    return lines


def _notes(plan: FederatedPlan) -> list[str]:
    if not plan.is_noisy:
        return ["epsilon is infinite: there is no noise and no privacy."]
    notes = []
    if plan.model == "central" and plan.counts_others == 1:
        notes.append(
            "what the models tell is bounded by what the server sees: a smaller bound is proved only where the same "
            "clients are always asked together, less those that may drop out, and whole clients are protected."
        )
    if plan.model == "local" and plan.counts_others > 1:
        notes.append(
            f"what the models tell is so little as long as at most {plan.dropouts:,} clients"
            f"{' of a cohort' if plan.cohorts > 1 else ''} miss a round; with model 'central' the server would not use "
            "a round that more have missed."
        )
    if plan.unit == "client":
        notes.append(
            f"lecture slides on this method claim a cost of rho = {plan.claimed_rho:.3g} for what the models tell; "
            "that is not certified, and wrong in general (docs/guarantees/federated.md)."
        )
    return notes
