"""Where the cost was booked: what the ledger said then, and, if it is asked, what it says now."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from discreet.privacy.accounting import has_best_of_trials
from discreet.privacy.ledger.statement import budget_of, entry_rows
from discreet.privacy.statement import budget_told
from discreet.report.blocks import Block, Facts, Notice, Section, Table, Text

if TYPE_CHECKING:
    from discreet.privacy.ledger import Ledger
    from discreet.privacy.release_record import LedgerReceipt
    from discreet.report.material import Material

HEADER = ("entry", "when", "who", "why", "status", "epsilon if alone", "for this model file")


def booked(material: Material) -> Section:
    """The receipts of the model and of its evaluation, and the entries of the ledger that belong to them."""
    blocks: list[Block] = []
    names = ("The model. ", "The evaluation. ") if material.evaluation is not None else ("",)
    for name, stated in zip(names, material.promises, strict=True):
        told = budget_told(stated.release) or ["Nothing is known about how this was booked."]
        blocks += [Text(name + text) for text in told]
    if material.ledger is not None:
        blocks += _now(material, material.ledger)
    return Section("ledger", "Ledger", tuple(blocks))


def _now(material: Material, ledger: Ledger) -> list[Block]:
    receipts = [s.release.ledger for s in material.promises if s.release is not None and s.release.ledger is not None]
    dataset = material.dataset or (receipts[0].dataset if receipts else None)
    if dataset is None:
        raise ValueError("the model does not name a data set of the ledger; give its name (dataset, --dataset).")
    budget, entries = budget_of(ledger, dataset), entry_rows(ledger, dataset)
    numbers = {entry for receipt in receipts if receipt.dataset == dataset for entry in receipt.entries}
    own = [row for row in entries if row["entry"] in numbers or _is_of(row, material.sha256)]
    blocks = [*_state(ledger, receipts), Facts(_budget(budget))]
    if not own:
        told = f"No entry of data set {dataset!r} belongs to this model: its cost is not counted there."
        return [*blocks, Notice("caution", "Not booked", (told,))]
    # The times of a search's entries would tell how many models it tried, which its promise does not cover.
    hidden = any(has_best_of_trials(stated.event) for stated in material.promises)
    caption = f"Entries of this model among the {len(entries):,} of data set {dataset!r}"
    return [*blocks, Table(caption, HEADER, tuple(_row(row, material.sha256, hidden) for row in own), (0, 5))]


def _state(ledger: Ledger, receipts: list[LedgerReceipt]) -> list[Block]:
    """Whether the ledger is intact, and still has what the receipts say."""
    problems = ledger.verify()
    problems += [p for receipt in receipts for p in ledger.verify(receipt.hash) if p not in problems]
    if problems:
        return [Notice("caution", "The ledger is damaged, or is not the one that was used", tuple(problems))]
    return [Text("The records of the ledger are intact, and those of this model are among them." if receipts else
                 "The records of the ledger are intact.")]  # fmt: skip


def _is_of(row: dict[str, Any], sha256: str) -> bool:
    return bool(sha256) and row["model_sha256"] == sha256


def _budget(budget: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    return (
        ("data set", budget["dataset"]),
        ("promised", f"epsilon {budget['epsilon']:.6g} at delta {budget['delta']:.3g}, relation {budget['relation']}"),
        ("spent by now", f"epsilon {budget['spent']:.6g}, by {budget['entries_made']:,} entries"),
        ("left", f"epsilon {budget['remaining']:.6g}"),
    )


def _row(row: dict[str, Any], sha256: str, hidden: bool) -> tuple[str, ...]:
    recorded = row["model_sha256"]
    file = "yes" if _is_of(row, sha256) else "no: another file" if recorded and sha256 else "not recorded"
    when = "not shown" if hidden else f"{row['when'].replace('T', ' ').removesuffix('+00:00')} UTC"
    return (str(row["entry"]), when, row["who"], row["why"], row["status"], f"{row['epsilon']:.6g}", file)
