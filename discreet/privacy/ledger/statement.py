"""Budgets and entries as plain values, for people and other programs to read."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from discreet._common.blocks import Groups, Table, Text, numbers_of
from discreet._common.text import csv_cell, one_line
from discreet.privacy.accounting import compose, epsilon_of
from discreet.privacy.ledger.total import event_text
from discreet.privacy.relation import relation_for

if TYPE_CHECKING:
    from discreet.privacy.guarantee import Guarantee, LedgerReceipt
    from discreet.privacy.ledger.ledger import Ledger

NAME = 60  # characters of a data set's name that are shown
FORMAT, VERSION = "discreet ledger", 1
COLUMNS = (
    "dataset", "entry", "when", "who", "why", "target", "model_sha256", "status", "committed", "epsilon", "delta",
    "relation", "unit",
)  # fmt: skip
ROUNDING = 1.0 + 1e-9  # two sums of the same costs may differ by so much


def budget_of(ledger: Ledger, dataset: str) -> dict[str, Any]:
    """Return what is promised for a data set, what was spent, what remains, and what would still fit."""
    account = ledger.account(dataset)
    allowance = account.allowance
    return {
        "dataset": dataset,
        "epsilon": allowance.epsilon,
        "delta": allowance.delta,
        "relation": allowance.relation.value,
        "unit": allowance.unit,
        "spent": account.spent,
        "remaining": account.remaining,
        "room": account.room(),
        "entries_made": account.total.entries,
    }


def entry_rows(ledger: Ledger, dataset: str) -> list[dict[str, Any]]:
    """Return the entries of a data set: who, when, why, for what, and the cost of each if it were alone."""
    allowance = ledger.allowance(dataset)
    return [
        {
            "entry": entry.id,
            "when": entry.created.isoformat(timespec="seconds"),
            "who": entry.who,
            "why": entry.note,
            "target": entry.target,
            "model_sha256": entry.model,
            "status": entry.status,
            "committed": None if entry.committed is None else entry.committed.isoformat(timespec="seconds"),
            "epsilon": allowance.cost_of(event_text(entry.event)),
            "event": json.loads(event_text(entry.event)),
        }
        for entry in ledger.entries(dataset)
    ]


def ledger_statement(ledger: Ledger, datasets: Sequence[str]) -> dict[str, Any]:
    """Return everything about some data sets, as JSON values; docs/ledger.md describes the fields."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "made": datetime.now(UTC).isoformat(timespec="seconds"),
        "head": ledger.head(),
        "datasets": [budget_of(ledger, name) | {"entries": entry_rows(ledger, name)} for name in datasets],
    }


def blocks_of(ledger: Ledger) -> Groups:
    """The budgets of all data sets, for notebooks."""
    header = ("data set", "epsilon", "spent", "remaining", "delta", "entries", "relation")
    budgets = [ledger.account(name) for name in ledger.datasets()]
    rows = tuple(
        (
            one_line(granted.dataset, NAME),
            *(f"{number:.6g}" for number in (granted.epsilon, account.spent, account.remaining)),
            f"{granted.delta:.3g}",
            f"{account.total.entries:,}",
            relation_for(granted.relation, granted.unit),
        )
        for account in budgets
        for granted in [account.allowance]
    )
    return [
        [Table("Budgets", header, rows, numbers_of(header, words=(0, 6)))] if rows else [Text("No budget is open.")]
    ]


def as_json(statement: dict[str, Any]) -> str:
    """Write a statement as JSON."""
    return json.dumps(statement, indent=2, allow_nan=False) + "\n"


def as_csv(statement: dict[str, Any]) -> str:
    """Write the entries of a statement as CSV, one line each."""
    out = io.StringIO()
    writer = csv.DictWriter(out, COLUMNS, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    for budget in statement["datasets"]:
        common = {name: budget[name] for name in ("dataset", "delta", "relation", "unit")}
        for row in budget["entries"]:
            writer.writerow({name: csv_cell(value) for name, value in (common | row).items()})
    return out.getvalue()


def receipt_problems(ledger: Ledger, receipts: Sequence[tuple[Guarantee, LedgerReceipt]]) -> list[str]:
    """What is wrong with a ledger, or with what results say that it granted: one sentence each, none if all fits."""
    problems = ledger.verify()
    for stated, receipt in receipts:
        problems += [problem for problem in ledger.verify(receipt.hash) if problem not in problems]
        if receipt.dataset in ledger.datasets() and ledger.allowance(receipt.dataset).unit != stated.unit:
            problems.append(f"{receipt.dataset!r} is not kept for {stated.unit}s, and the result that names it is")
        if not problems and _costs_less(ledger, stated, receipt):
            entries = ", ".join(map(str, receipt.entries))
            problems.append(f"entries {entries} of {receipt.dataset!r} cost less than the result that names them")
    return problems


def _costs_less(ledger: Ledger, stated: Guarantee, receipt: LedgerReceipt) -> bool:
    """Whether the entries that a result names cost less together than what was done, at the delta of its promise."""
    known = ledger.entries(receipt.dataset) if receipt.dataset in ledger.datasets() else []
    events = [entry.event for entry in known if entry.id in receipt.entries]
    if not events:
        return True
    paid, cost = (epsilon_of(event, stated.delta, stated.relation) for event in (compose(events), stated.event))
    return paid * ROUNDING < cost
