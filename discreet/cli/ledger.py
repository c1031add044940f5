"""`discreet ledger`: the privacy budgets of tables, for the person who keeps them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from typer import Option

from discreet._common.text import facts
from discreet.cli import options
from discreet.cli.console import answer, check_free, command, group, print_json
from discreet.privacy.relation import Relation, relation_for

if TYPE_CHECKING:
    from discreet.privacy.ledger import Ledger

Url = Annotated[str, Option("--ledger", metavar="URL", help="The ledger: a file, sqlite:///FILE or postgresql://...")]
NO_BUDGET = "no budget was opened in this ledger"
OneDataset = Annotated[str, Option("--dataset", help="The table's name in the ledger.")]
AnyDataset = Annotated[str | None, Option("--dataset", help="The table's name in the ledger.", show_default="all")]
SHOW = "discreet ledger show --ledger budget.db"
group("Keep the privacy budgets of tables: set them, see who spent what, check and copy the records.", SHOW)


@command("discreet ledger open --ledger budget.db --dataset patients --epsilon 1 --delta 1e-6")
def open_budget(
    ledger: Url,
    dataset: OneDataset,
    epsilon: Annotated[float, Option(help="What all releases together may cost; it never changes.")],
    delta: Annotated[float, Option(help="Failure probability of the promise; 0 for pure DP.")],
    relation: options.RelationName = None,
    unit: Annotated[
        Literal["row", "person"], Option(help="What is protected: single rows, or persons with all their rows.")
    ] = "row",
    json: options.Json = False,
) -> None:
    """Set the total budget of a table. The same numbers again have no effect; others are refused."""
    book = _ledger(ledger)
    book.open(dataset, epsilon, delta, relation or Relation.REPLACE, unit)
    budget = _budget(book, dataset)
    answer(json, budget, lambda: _as_lines(budget))


@command(SHOW)
def show(ledger: Url, dataset: AnyDataset = None, json: options.Json = False) -> None:
    """Show what is promised for each table, what was spent and what is left."""
    book = _ledger(ledger).existing()
    found = [_budget(book, name) for name in _chosen(book, dataset)]
    text = "\n\n".join(map(_as_lines, found)) or NO_BUDGET
    answer(json, lambda: {"datasets": found, "head": book.head()}, text)


@command("discreet ledger entries --ledger budget.db --dataset patients")
def entries(
    ledger: Url,
    dataset: AnyDataset = None,
    last: Annotated[int | None, Option(min=1, help="Only the latest N.", show_default="all")] = None,
    json: options.Json = False,
) -> None:
    """List who spent how much on a table, when and why, for which target and which model file."""
    from discreet.privacy.ledger.statement import entry_rows

    book = _ledger(ledger).existing()
    found = {name: entry_rows(book, name)[-(last or 0) :] for name in _chosen(book, dataset)}
    budgets = {name: _budget(book, name) for name in found}
    values = {"datasets": [budgets[name] | {"entries": rows} for name, rows in found.items()]}
    answer(json, values, "\n\n".join(_entry_lines(budgets[name], rows) for name, rows in found.items()) or NO_BUDGET)


@command("discreet ledger verify --ledger budget.db --head HASH")
def verify(
    ledger: Url,
    head: Annotated[str | None, Option(metavar="HASH", help="A hash that was shown earlier.")] = None,
    json: options.Json = False,
) -> None:
    """Check that no record or total was altered, cut off or lost; exit code 2 if something is wrong."""
    book = _ledger(ledger)
    problems = book.verify(head)
    if json:
        print_json({"problems": problems, "head": None if problems else book.head()})
        raise typer.Exit(2 if problems else 0)
    if problems:
        raise ValueError("; ".join(problems))
    print(f"all records and totals are intact\nhead  {book.head()}\nkeep this hash elsewhere, and check it with --head")


@command("discreet ledger export --ledger budget.db --out budget.csv")
def export(
    ledger: Url,
    dataset: AnyDataset = None,
    out: Annotated[Path | None, Option(help="Where to write.", show_default="the screen")] = None,
    form: Annotated[
        Literal["json", "csv"] | None, Option("--format", show_default="by the file's ending, else json")
    ] = None,
    force: options.Force = False,
) -> None:
    """Write budgets and entries as JSON, or entries as CSV, for reports and other programs."""
    from discreet.privacy.ledger.statement import as_csv, as_json, ledger_statement

    check_free(out, force)
    book = _ledger(ledger).existing()
    content = ledger_statement(book, _chosen(book, dataset))
    if form is None:
        form = "csv" if out is not None and out.suffix.lower() == ".csv" else "json"
    text = as_csv(content) if form == "csv" else as_json(content)
    if out is None:
        print(text, end="")
    else:
        out.write_text(text, encoding="utf-8")


@command("discreet ledger backup --ledger budget.db --out copy.db")
def backup(ledger: Url, out: Annotated[Path, Option(help="A new file.")], json: options.Json = False) -> None:
    """Copy a ledger while others go on using it. Never copy its file by other means."""
    head = _ledger(ledger).existing().backup(out)
    answer(json, {"out": str(out), "head": head}, f"copied to {out}\nhead  {head}")


def _ledger(url: str) -> Ledger:
    from discreet.privacy.ledger import Ledger

    return Ledger(url)


def _chosen(book: Ledger, dataset: str | None) -> list[str]:
    return book.datasets() if dataset is None else [dataset]


def _budget(book: Ledger, dataset: str) -> dict[str, Any]:
    from discreet.privacy.ledger.statement import budget_of

    return budget_of(book, dataset)


def _as_lines(budget: dict[str, Any]) -> str:
    kept = relation_for(budget["relation"], budget["unit"])
    lines = [
        ("  promised", f"epsilon {budget['epsilon']:.6g} at delta {budget['delta']:.3g}, relation {kept}"),
        ("  spent", f"epsilon {budget['spent']:.6g}, by {budget['entries_made']} entries"),
        ("  remaining", f"epsilon {budget['remaining']:.6g}"),
    ]
    if budget["room"] is not None:
        lines.append(("  would fit", f"one more release of epsilon {budget['room']:.3g} at this delta"))
    return f"{budget['dataset']}\n{facts(lines, label=13)}"


def _entry_lines(budget: dict[str, Any], rows: list[dict[str, Any]]) -> str:
    blocks = [_as_lines(budget)]
    for row in rows:
        blocks.append(f"  entry {row['entry']}  {row['when']}  {row['status']}  epsilon {row['epsilon']:.6g} if alone")
        told = (("who", row["who"]), ("why", row["why"]), ("target", row["target"]), ("model", row["model_sha256"]))
        blocks.append(facts([(f"    {name}", text) for name, text in told if text], label=12))
    return "\n".join(blocks)
