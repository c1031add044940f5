"""The promise in words, its trade-off curve as a picture and in numbers, what results cost, what is not covered.

And where the cost was booked: what the files say, and, if the ledger is asked, what it says now.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from discreet._common.blocks import Block, Facts, Heading, Table, Text, paragraphs
from discreet.privacy.accounting import has_best_of_trials
from discreet.privacy.ledger.statement import budget_of, entry_rows, receipt_problems
from discreet.privacy.relation import Relation, Unit, relation_for
from discreet.privacy.statement import budget_told, percent_at_most, rounded_up, sections_of
from discreet.privacy.tradeoffs import trade_off
from discreet.report.blocks import Figure, Notice, Section
from discreet.report.pictures import beliefs, errors

if TYPE_CHECKING:
    from discreet.privacy.guarantee import Guarantee, LedgerReceipt
    from discreet.privacy.ledger import Ledger
    from discreet.report.write import Material


FALSE_ALARMS = (0.001, 0.01, 0.05, 0.1, 0.25, 0.5)


def promise(material: Material) -> Section:
    """What is promised about everything on the page."""
    told, stated = sections_of(material.promise), material.promise
    blocks: list[Block] = [
        *map(Text, material.signed),
        *_costs(material),
        *paragraphs(told["What this means for one person"]),
    ]
    if stated.is_private:
        blocks += _pictures(stated)
    for name in ("Covered", "Not covered", "In symbols"):
        blocks += [Heading(name), *paragraphs(told[name])] if told[name] else []
    return Section("promise", "The promise", tuple(blocks))


def notices(material: Material) -> tuple[Notice, ...]:
    """What stands above everything else: no privacy, or gaps in it."""
    found = []
    if not material.is_private:
        without = [
            name for name, each in zip(("model", "evaluation"), material.promises, strict=False) if not each.is_private
        ]
        told = f"The {' and the '.join(without)} on this page {'was' if len(without) == 1 else 'were'} computed without"
        advice = "privacy protection. Whoever sees this page may learn anything about the people in the table."
        found.append(Notice("danger", "NOT PRIVATE", (f"{told} {advice}", "Guard it as the table is guarded.")))
    if material.leaks:
        points = tuple(f"{leak[:1].upper()}{leak[1:].rstrip('.')}." for leak in material.leaks)
        found.append(Notice("caution", "The promise has gaps. It does not cover:", points))
    total, why_none = material.total_or_reason
    if total is None:
        found.append(Notice("caution", "No total can be stated", (f"{why_none.capitalize()}.",)))
    return tuple(found)


def _costs(material: Material) -> list[Block]:
    """What each result costs, and all together; nothing if there is only the model."""
    if material.evaluation is None:
        return []
    rows = [_cost("the model", material.guarantee), _cost("its evaluation", material.evaluation.guarantee)]
    total, why_none = material.total_or_reason
    if total is None:
        last = f"What follows is about the model alone; no total can be stated, because {why_none}."
    else:
        rows.append(_cost("both together", total))
        last = (
            "What follows is about both together: it holds for a person who has a row in the table of the model, in "
            "that of the evaluation, or in both."
        )
    header = ("released", "relation", "epsilon", "delta")
    return [Table("What the results on this page cost", header, tuple(rows), (2, 3)), Text(last)]


def _cost(name: str, stated: Guarantee) -> tuple[str, ...]:
    relation = relation_for(stated.relation, stated.unit)
    if not stated.is_private:
        return name, relation, "infinite", "-"
    return name, relation, rounded_up(stated.epsilon, 6), rounded_up(stated.delta, 4)


def _pictures(stated: Guarantee) -> list[Block]:
    curve = trade_off(stated)
    advantage = curve.advantage
    share = percent_at_most(advantage) if advantage > 0.0 else "0 %"
    found = [1.0 - float(missed) for missed in curve.false_negative(FALSE_ALARMS)]
    rows = tuple((f"{100 * a:g} %", percent_at_most(f)) for a, f in zip(FALSE_ALARMS, found, strict=True))
    failure = stated.meaning.failure
    seldom = "" if failure == 0.0 else f" More is possible with probability at most {rounded_up(failure, 2)}."
    return [
        Heading("What an attacker can find out"),
        Text(
            f"An attacker who knows {_OTHERS[stated.unit]} calls people members of the table or outsiders. The more "
            "outsiders may be called members by mistake, the more members are found; no attack finds more than this:"
        ),
        Figure(
            errors(curve, advantage, "errors"),
            "How often an attacker errs: no attack gets below the solid curve; blind guessing is the dashed line; "
            "dotted are promises of other epsilons.",
        ),
        Figure(
            beliefs(min(stated.epsilon, 700.0), "beliefs", _THESE[stated.unit]),
            f"How far the result can move a belief that {_USED[stated.unit]} used: between the solid curves.{seldom}",
        ),
        Table(
            "The trade-off curve in numbers",
            ("outsiders called members", "members found, at most"),
            rows,
            (0, 1),
        ),
        Text(
            "The share of members that are found exceeds the share of outsiders called members by at most "
            f"{share} (the advantage: 0 % is blind guessing, 100 % no protection)."
        ),
    ]


def key_numbers(material: Material) -> tuple[tuple[str, str], ...]:
    """The few numbers that everybody asks for first."""
    stated = material.promise
    together = "" if material.evaluation is None else " in total" if material.total_or_reason[0] else " of the model"
    private = stated.is_private
    return (
        (f"epsilon{together}", rounded_up(stated.epsilon, 6) if private else "infinite"),
        ("delta", rounded_up(stated.delta, 4) if private else "-"),
        (f"protects one {stated.unit}", _PROTECTS[stated.unit][stated.relation]) if private else ("protects", "nobody"),
        ("a guess is right", f"at most {percent_at_most(stated.meaning.guess)}" if private else "always"),
        (f"{material.guarantee.unit}s", _rows(material)),
        ("columns", f"{material.summary.form.columns:,}"),
    )


def _rows(material: Material) -> str:
    release = material.guarantee.release
    if release is None or release.rows is None:
        return "not known"
    return f"{ROWS_ARE[release.rows_are]}{release.rows:,}"


ROWS_ARE = {"exact": "", "estimate": "about ", "maximum": "at most "}
_PROTECTS: dict[Unit, dict[Relation, str]] = {
    "row": {
        Relation.REPLACE: "that is replaced",
        Relation.ZERO_OUT: "that is emptied",
        Relation.ADD_REMOVE: "that is added or removed",
    },
    "person": {
        Relation.REPLACE: "whose rows are all replaced",
        Relation.ZERO_OUT: "whose rows are all emptied",
        Relation.ADD_REMOVE: "who is added or removed with all rows",
    },
}
_OTHERS: dict[Unit, str] = {"row": "all other rows", "person": "all rows of all other persons"}
_USED: dict[Unit, str] = {"row": "a certain row was", "person": "the rows of a certain person were"}
_THESE: dict[Unit, str] = {"row": "this row was", "person": "this person was"}


HEADER = ("entry", "when", "who", "why", "status", "epsilon if alone", "for this model file")
NOT_ASKED = (
    "This is what the files say. The ledger itself was not asked: --ledger shows its entries and checks its records."
)


def booked(material: Material) -> Section:
    """The receipts of the model and of its evaluation, and the entries of the ledger that belong to them."""
    blocks: list[Block] = []
    names = ("The model. ", "The evaluation. ") if material.evaluation is not None else ("",)
    for name, stated in zip(names, material.promises, strict=True):
        told = budget_told(stated.release) or ["Nothing is known about how this was booked."]
        blocks += [Text(name + text) for text in told]
    if material.ledger is not None:
        blocks += _now(material, material.ledger)
    elif _receipts(material):
        blocks.append(Text(NOT_ASKED))
    return Section("ledger", "Ledger", tuple(blocks))


def _receipts(material: Material) -> list[tuple[Guarantee, LedgerReceipt]]:
    """The promises of results that say where they were booked, each with what it says."""
    records = [(stated, stated.release) for stated in material.promises if stated.release is not None]
    return [(stated, release.ledger) for stated, release in records if release.ledger is not None]


def _now(material: Material, ledger: Ledger) -> list[Block]:
    receipts = _receipts(material)
    named = dict.fromkeys(receipt.dataset for _, receipt in receipts)
    datasets = [material.dataset] if material.dataset else list(named)
    if not datasets:
        raise ValueError("the model does not name a data set of the ledger; give its name (dataset, --dataset).")
    blocks = [_state(ledger, receipts)]
    for dataset in datasets:
        numbers = {number for _, receipt in receipts if receipt.dataset == dataset for number in receipt.entries}
        blocks += _account(material, ledger, dataset, numbers)
    return blocks


def _account(material: Material, ledger: Ledger, dataset: str, numbers: set[int]) -> list[Block]:
    """The budget of a data set, and the entries that belong to the model."""
    entries, budget = entry_rows(ledger, dataset), Facts(_budget(budget_of(ledger, dataset)))
    own = [row for row in entries if row["entry"] in numbers or _is_of(row, material.sha256)]
    if not own:
        told = f"No entry of data set {dataset!r} belongs to this model: its cost is not counted there."
        return [budget, Notice("caution", "Not booked", (told,))]
    # The times of a search's entries would tell how many models it tried, which its promise does not cover.
    hidden = any(has_best_of_trials(stated.event) for stated in material.promises)
    caption = f"Entries of this model among the {len(entries):,} of data set {dataset!r}"
    rows = tuple(_row(row, material.sha256, hidden) for row in own)
    return [budget, Table(caption, HEADER, rows, (0, 5))]


def _state(ledger: Ledger, receipts: list[tuple[Guarantee, LedgerReceipt]]) -> Block:
    """Whether the ledger is intact, and has what the files say, at the cost that they say."""
    problems = receipt_problems(ledger, receipts)
    if problems:
        return Notice("caution", "The ledger is damaged, or is not the one that was used", tuple(problems))
    own = ", and those of this model are among them" if receipts else ""
    return Text(f"The records of the ledger are intact{own}.")


def _is_of(row: dict[str, Any], sha256: str) -> bool:
    return bool(sha256) and row["model_sha256"] == sha256


def _budget(budget: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    kept = relation_for(budget["relation"], budget["unit"])
    return (
        ("data set", budget["dataset"]),
        ("promised", f"epsilon {budget['epsilon']:.6g} at delta {budget['delta']:.3g}, relation {kept}"),
        ("spent by now", f"epsilon {budget['spent']:.6g}, by {budget['entries_made']:,} entries"),
        ("left", f"epsilon {budget['remaining']:.6g}"),
    )


def _row(row: dict[str, Any], sha256: str, hidden: bool) -> tuple[str, ...]:
    recorded = row["model_sha256"]
    file = "yes" if _is_of(row, sha256) else "no: another file" if recorded and sha256 else "not recorded"
    when = "not shown" if hidden else f"{row['when'].replace('T', ' ').removesuffix('+00:00')} UTC"
    return (str(row["entry"]), when, row["who"], row["why"], row["status"], f"{row['epsilon']:.6g}", file)
