"""Where the cost was booked: what the files say, and, if the ledger is asked, what it says now."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from discreet.privacy.accounting import compose, epsilon_of, has_best_of_trials
from discreet.privacy.ledger.statement import budget_of, entry_rows
from discreet.privacy.relation import relation_for
from discreet.privacy.statement import budget_told
from discreet.report.blocks import Block, Facts, Notice, Section, Table, Text

if TYPE_CHECKING:
    from discreet.privacy.guarantee import Guarantee, LedgerReceipt
    from discreet.privacy.ledger import Ledger
    from discreet.report.material import Material

HEADER = ("entry", "when", "who", "why", "status", "epsilon if alone", "for this model file")
NOT_ASKED = (
    "This is what the files say. The ledger itself was not asked: --ledger shows its entries and checks its records."
)
ROUNDING = 1.0 + 1e-9


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
    problems = ledger.verify()
    for stated, receipt in receipts:
        problems += [problem for problem in ledger.verify(receipt.hash) if problem not in problems]
        if receipt.dataset in ledger.datasets() and ledger.allowance(receipt.dataset).unit != stated.unit:
            problems.append(f"{receipt.dataset!r} is not kept for {stated.unit}s, and the result that names it is")
        if not problems and _costs_less(ledger, stated, receipt):
            entries = ", ".join(map(str, receipt.entries))
            problems.append(f"entries {entries} of {receipt.dataset!r} cost less than the result that names them")
    if problems:
        return Notice("caution", "The ledger is damaged, or is not the one that was used", tuple(problems))
    own = ", and those of this model are among them" if receipts else ""
    return Text(f"The records of the ledger are intact{own}.")


def _costs_less(ledger: Ledger, stated: Guarantee, receipt: LedgerReceipt) -> bool:
    """Whether the entries that a result names cost less together than what was done, at the delta of its promise."""
    known = ledger.entries(receipt.dataset) if receipt.dataset in ledger.datasets() else []
    events = [entry.event for entry in known if entry.id in receipt.entries]
    if not events:
        return True
    paid, cost = (epsilon_of(event, stated.delta, stated.relation) for event in (compose(events), stated.event))
    return paid * ROUNDING < cost


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
