"""`discreet fit`: train a model on a table file, privately."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from typer import Option

from discreet._common.text import facts
from discreet.cli import options
from discreet.cli.console import (
    check_free,
    check_ledger,
    command,
    complain,
    opened,
    parse_labels,
    parse_pair,
    print_json,
    save_paid,
    wants_progress,
)
from discreet.privacy.relation import Relation, relation_for

if TYPE_CHECKING:
    from discreet.data.files import TableFile
    from discreet.data.schema import Schema
    from discreet.estimators.table_fit import TableFit
    from discreet.privacy.ledger import ModelLedger


@command("discreet fit patients.csv --target readmitted --epsilon 1")
def fit(
    table: options.TableFile,
    target: options.TargetName = None,
    no_header: options.NoHeader = False,
    epsilon: options.Epsilon = 1.0,
    delta: options.Delta = None,
    task: Annotated[
        Literal["auto", "classification", "regression"],
        Option(help="auto spends 2 % of the budget on finding out, unless the target is declared."),
    ] = "auto",
    estimator: options.Estimator = None,
    solver: options.SolverName = "auto",
    alpha: options.Alpha = None,
    inference: options.Inference = False,
    robust: options.Robust = False,
    schema: options.SchemaFile = None,
    bounds: options.Bounds = None,
    y_bounds: options.YBounds = None,
    classes: options.Classes = None,
    relation: options.RelationName = None,
    public_rows: options.PublicRows = None,
    person_column: Annotated[
        str | None,
        Option(
            "--person-column",
            metavar="NAME",
            help="The column with the id of each row's person: the promise is then for whole persons.",
            show_default="every row is a person",
        ),
    ] = None,
    rows_per_person: Annotated[
        int | None,
        Option(
            min=1, help="With --person-column: maximum number of rows used per person.", show_default="all, if possible"
        ),
    ] = None,
    start: Annotated[
        Path | None,
        Option(
            "--start",
            metavar="MODEL",
            help="A public model file at which the fit begins; checking it takes 5 % of the budget.",
        ),
    ] = None,
    public_table: Annotated[
        Path | None,
        Option(
            "--public-table",
            metavar="TABLE",
            help="A public table with the same columns: scales, and with the target a start, come from it; "
            "checks of it take up to 8 % of the budget.",
        ),
    ] = None,
    invalid_rows: options.InvalidRows = "error",
    ledger: options.LedgerUrl = None,
    dataset: options.DatasetName = None,
    note: Annotated[str, Option(help="Why; the ledger keeps it beside the entry.")] = "",
    out_of_core: Annotated[
        bool | None,
        Option(
            "--out-of-core/--in-memory",
            help="Leave the rows of a Parquet file on the disk and read them block by block in every pass.",
            show_default="if the table would fill a quarter of the memory",
        ),
    ] = None,
    dask: options.DaskAddress = None,
    out: options.ModelOut = Path("model.json"),
    seed: options.Seed = None,
    quiet: options.Quiet = False,
    json: options.Json = False,
    force: options.Force = False,
) -> None:
    """Train a model on a CSV or Parquet table with differential privacy.

    Nothing needs to be declared: scales are learned privately, and noisy counts tell whether the target is 0/1 or a
    number; other codes, such as 1 and 2, are asked about. What is declared (bounds, classes, a schema) saves budget.
    """
    from discreet.estimators.model_file import save_model, to_dict
    from discreet.estimators.table_fit import FitRequest, fit_table

    book = _book(ledger, dataset, note)
    parameters = {"epsilon": epsilon, "delta": delta, "solver": solver, "public_n": public_rows, "ledger": book}
    parameters |= {"dataset": dataset, "random_state": seed, "verbose": int(wants_progress(quiet or json))}
    parameters |= {"inference": options.inference_of(inference, robust), "invalid_rows": invalid_rows}
    parameters |= {"rows_per_person": rows_per_person} | ({} if alpha is None else {"alpha": alpha})
    with opened(table, not no_header, dask) as file:
        declared = declare(schema_of(file, schema), target, classes, bounds, y_bounds, relation, person_column)
        if rows_per_person is not None and declared.person is None:
            raise ValueError("--rows-per-person needs --person-column: the column with the id of each row's person.")
        if declared.target.name is not None:
            file.check_names(declared)
        check_free(out, force)
        if str(declared.relation) == "add_remove" and public_rows is None:
            raise ValueError("add_remove keeps the number of rows secret: give a public estimate, --public-rows N.")
        if public_table is not None and public_table.exists() and table.exists() and public_table.samefile(table):
            raise ValueError("--public-table is the private table itself; name a file of public rows, or none.")
        parameters |= _public_inputs(start, public_table, declared, not no_header)
        request = FitRequest(declared, None if task == "auto" else task, estimator, parameters)
        if book is not None:
            book.target = str(declared.target.name)
        done = fit_table(file, request, out_of_core if dask is None else True)
    save_paid(out, partial(save_model, done.model, out, done.schema, force), partial(to_dict, done.model, done.schema))
    budget = None if book is None else _record_model(book, str(dataset), out)
    if json:
        print_json(summary(done) | {"out": str(out), "ledger": budget})
    elif not quiet:
        print(describe(done) + ("" if budget is None else f"\n{in_ledger(budget)}"))
        print(f"\nmodel and full privacy statement written to {out}; read it: discreet statement {out}")


def _public_inputs(start: Path | None, table: Path | None, schema: Schema, header: bool) -> dict[str, Any]:
    """The public model and the public table that were named, as parameters of the estimator."""
    inputs: dict[str, Any] = {}
    if start is not None:
        from discreet.data.public_inputs import PublicModel
        from discreet.estimators.model_file import load_model

        inputs["start"] = PublicModel.of(load_model(start))
    if table is not None:
        from discreet.data.files import open_table
        from discreet.data.public_inputs import PublicTable

        with open_table(table, header=header) as file:
            inputs["public_table"] = PublicTable(file.read(schema, target=schema.target.name in file.kinds))
    return inputs


def _book(ledger: str | None, dataset: str | None, note: str) -> ModelLedger | None:
    """The ledger that pays, which remembers what was reserved for the model."""
    check_ledger(ledger, dataset)
    if ledger is None:
        if note:
            raise ValueError("--note belongs to a ledger; give --ledger URL and --dataset NAME as well.")
        return None
    from discreet.privacy.ledger import ModelLedger

    return ModelLedger(ledger, note)


def _record_model(book: ModelLedger, dataset: str, out: Path) -> dict[str, Any]:
    """Write the hash of the model's file into the ledger, and return what is spent and left."""
    from discreet.privacy.ledger.statement import budget_of

    sha256 = hashlib.sha256(out.read_bytes()).hexdigest()
    try:
        book.record_model(sha256)
    except OSError as error:
        complain("warning", f"the ledger could not note the hash of {out}: {error}")
    return budget_of(book, dataset) | {"entries": [r.id for r in book.granted], "model_sha256": sha256}


def in_ledger(budget: dict[str, Any]) -> str:
    """What the ledger says after a fit, in two lines."""
    numbers = ", ".join(map(str, budget["entries"]))
    left = f"epsilon {budget['spent']:.6g} spent, {budget['remaining']:.6g} left of {budget['epsilon']:.6g}"
    booked = f"entries {numbers}, model file with SHA-256 {budget['model_sha256']}"
    return facts([("ledger", f"{budget['dataset']!r}: {left} at delta {budget['delta']:.3g}"), ("", booked)])


def schema_of(file: TableFile, schema: Path | None) -> Schema:
    """The schema that was given, or one in which all columns are numbers."""
    from discreet.data.schema import load_schema, skeleton

    return skeleton(dict.fromkeys(file.kinds, "number")) if schema is None else load_schema(schema)


def declare(
    schema: Schema,
    target: str | None,
    classes: str | None,
    bounds: str | None = None,
    y_bounds: str | None = None,
    relation: Relation | None = None,
    person: str | None = None,
) -> Schema:
    """The schema with what the options say; an option wins over the file."""
    limits, target_limits = parse_pair("--bounds", bounds), parse_pair("--y-bounds", y_bounds)
    declared = schema.target if target is None else replace(schema.target, name=target)
    if target_limits is not None and classes is not None:
        raise ValueError("--y-bounds is for a regression and --classes for a classification; give one of them.")
    if target_limits is not None:
        declared = replace(declared, classes=None, low=target_limits[0], high=target_limits[1])
    if classes is not None:
        declared = replace(declared, classes=parse_labels(classes), low=None, high=None)
    kept = schema.relation if relation is None else relation
    schema = replace(schema, target=declared, relation=kept, person=person or schema.person)
    return schema if limits is None else schema.with_bounds(*limits)


def summary(done: TableFit) -> dict[str, Any]:
    """What was trained, as JSON values."""
    return {
        "estimator": type(done.model).__name__,
        "task": done.task,
        "task_was_asked": done.question is not None,
        "target": done.schema.target.name,
        "plan": done.model.plan_.to_dict(),
        "guarantee": done.model.guarantee_.to_dict(),
        **({"inference": done.model.inference_.to_dict()} if hasattr(done.model, "inference_") else {}),
    }


def describe(done: TableFit) -> str:
    """What was trained, how, and what is promised, for people."""
    model, schema = done.model, done.schema
    lines = [f"{type(model).__name__} for {schema.target.name!r} ({done.task})"]
    if done.question is not None:
        from discreet.estimators.task import SHARE

        lines.append(f"the task was decided by three noisy counts, for {SHARE:.0%} of the budget; --task saves that")
    if done.task == "classification":
        every = "" if done.question is None else " (every other value counts as 0; --classes refuses other values)"
        lines.append(f"classes {', '.join(map(str, model.classes_.tolist()))}{every}")
    if schema.partly_bounded:
        lines.append("some columns lack declared bounds, so their ranges were learned")
    found = [str(model.inference_), ""] if hasattr(model, "inference_") else []
    return "\n".join([*lines, "", *found, str(model.plan_), in_short(model.guarantee_)])


def in_short(guarantee: Any) -> str:
    """The promise in one line; the model file holds the full statement."""
    if not guarantee.is_private:
        return facts([("privacy", "none: epsilon is infinite")])
    told = f"epsilon = {guarantee.epsilon:.6g}, delta = {guarantee.delta:.3g} for everything released"
    return facts([("privacy", f"{told}, relation {relation_for(guarantee.relation, guarantee.unit)}")])
