"""`discreet predict`, `evaluate`, `show`, `report`, `export` and `statement`: what is done with a model file."""

from __future__ import annotations

import csv
import sys
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

from discreet._common.text import csv_cell
from discreet.cli import options
from discreet.cli.console import (
    answer,
    check_free,
    check_ledger,
    command,
    complain,
    model_and_schema,
    opened,
    parse_pair,
    print_json,
    save_paid,
)


@command("discreet predict model.json new_patients.csv --out predictions.csv")
def predict(
    model: options.ModelFile,
    table: options.TableFile,
    out: Annotated[Path | None, Option(help="A CSV file to write.", show_default="stdout")] = None,
    no_header: options.NoHeader = False,
    proba: Annotated[bool, Option("--proba", help="Class probabilities as well.")] = False,
    json: options.Json = False,
    force: options.Force = False,
) -> None:
    """Predict the target of every row of a table.

    The columns are found by name; others, the target among them, are ignored. Predictions cost no privacy of
    the rows the model was trained on, but they do describe the rows they are made for.
    """
    from discreet.data.files import read_table
    from discreet.estimators.model_file import read_model

    check_free(out, force)
    stored = read_model(model)
    if stored.schema is None:
        raise ValueError(f"{model} was not trained on a table file; use discreet.load_model in Python.")
    estimator: Any = stored.estimator
    if proba and not hasattr(estimator, "predict_proba"):
        raise ValueError(f"--proba: a {type(estimator).__name__} has no probabilities.")
    rows = read_table(table, stored.schema, target=False, header=not no_header)
    columns = {"prediction": estimator.predict(rows).tolist()}
    if proba:
        chances = estimator.predict_proba(rows)
        columns |= {f"probability_{c}": chances[:, i].tolist() for i, c in enumerate(estimator.classes_.tolist())}
    if json:
        print_json(columns)
    if out is not None or not json:
        with nullcontext(sys.stdout) if out is None else open(out, "w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(map(csv_cell, columns))
            writer.writerows(map(csv_cell, row) for row in zip(*columns.values(), strict=True))


ROWS_ALONE = (
    "The model protects whole persons, and an evaluation protects single rows: a person with several rows in this "
    "table is protected less than the cost says."
)


@command("discreet evaluate model.json test.csv --epsilon 0.5")
def evaluate(
    model: options.ModelFile,
    table: Annotated[Path, Argument(metavar="TABLE", help="Rows with the target, as CSV or Parquet.")],
    epsilon: options.Epsilon,
    delta: options.Delta = None,
    figures: Annotated[
        str | None,
        Option(
            metavar="A,B,...",
            help="For classifiers: some of accuracy, log_loss, curves; fewer have less noise.",
            show_default="all that the model has",
        ),
    ] = None,
    confidence: Annotated[float, Option(help="Probability with which an interval holds.")] = 0.95,
    y_bounds: Annotated[
        str | None, Option(metavar="LOW,HIGH", help="Public limits of a regression target.", show_default="the model's")
    ] = None,
    largest_error: Annotated[
        float | None,
        Option(help="Clip errors of a regression and of the mean to this public number.", show_default="learned"),
    ] = None,
    relation: options.RelationName = None,
    public_rows: options.PublicRows = None,
    invalid_rows: options.InvalidRows = "error",
    ledger: options.LedgerUrl = None,
    dataset: options.DatasetName = None,
    no_header: options.NoHeader = False,
    dask: options.DaskAddress = None,
    seed: options.Seed = None,
    out: Annotated[
        Path | None, Option("--out", "-o", help="Also write the evaluation to this file, for discreet report.")
    ] = None,
    force: options.Force = False,
    json: options.Json = False,
) -> None:
    """Evaluate a model on private rows: accuracy, log-loss, ROC and calibration curves, or R2.

    Noisy sums are released, with a cost of their own. All figures have confidence intervals that cover the noise and
    the draw of the rows, and are compared with the best constant prediction. The curves are in the output of --json.
    """
    from discreet.estimators.table_fit import exceeds_memory
    from discreet.metrics import evaluate as evaluate_model
    from discreet.metrics import save_evaluation
    from discreet.privacy.relation import Relation

    check_ledger(ledger, dataset)
    estimator, schema = model_and_schema(model, "discreet.metrics.evaluate")
    bounds, kept = parse_pair("--y-bounds", y_bounds), relation or Relation.REPLACE
    check_free(out, force)
    settings: dict[str, Any] = {"ledger": ledger, "dataset": dataset, "random_state": seed, "public_n": public_rows}
    settings |= {"confidence": confidence, "y_bounds": bounds, "largest_error": largest_error, "relation": kept}
    settings["invalid_rows"] = invalid_rows
    settings |= {"figures": None if figures is None else [name.strip() for name in figures.split(",")]}
    with opened(table, not no_header, dask) as file:
        elsewhere = dask is not None or exceeds_memory(file, schema, kept, public_rows)
        rows = file.stored(schema) if elsewhere else file.read(schema, True, invalid_rows == "neutral")
        found = evaluate_model(estimator, rows, None if elsewhere else rows.y, epsilon, delta, **settings)
    if out is not None:
        save_paid(out, partial(save_evaluation, found, out, force), found.to_dict)
    if estimator.guarantee_.unit == "person":
        complain("warning", ROWS_ALONE)
    answer(json, found.to_dict, found)


@command("discreet show model.json")
def show(
    model: options.ModelFile,
    columns: options.Columns = 40,
    intervals: Annotated[bool, Option("--intervals", help="Only estimates with their intervals.")] = False,
    alpha: Annotated[
        float | None, Option(help="With --intervals: probability with which an interval may miss.", show_default="0.05")
    ] = None,
    json: options.Json = False,
) -> None:
    """Show what a model says: coefficients per unit and per range, where columns are clipped, noise, privacy.

    Everything shown was released with the model or is public; showing it costs nothing.
    """
    from discreet.estimators.model_file import read_model

    if alpha is not None and not intervals:
        raise ValueError("--alpha goes with --intervals.")
    found = read_model(model)
    estimator: Any = found.estimator
    if intervals:
        if not hasattr(estimator, "inference_"):
            raise ValueError(f"{model} was not fitted for intervals: discreet fit --inference.")
        level = 0.05 if alpha is None else alpha
        answer(json, lambda: estimator.inference_.to_dict(level), lambda: estimator.inference_.text(level))
        return
    summary, told = estimator.summary(), "" if found.schema is None else found.schema.contrasts_told()
    answer(json, summary.to_dict, lambda: "\n\n".join([summary.text(columns), *([told] if told else [])]))


@command("discreet report model.json --evaluation evaluation.json -o report.html")
def report(
    model: options.ModelFile,
    out: Annotated[
        Path | None, Option("--out", "-o", help="Where to write the page.", show_default="report.html")
    ] = None,
    evaluation: Annotated[
        Path | None, Option(metavar="FILE", help="An evaluation of this model, from discreet evaluate --out.")
    ] = None,
    ledger: Annotated[
        str | None, Option(metavar="URL", help="The ledger that was charged: show its entries, and check its records.")
    ] = None,
    dataset: options.DatasetName = None,
    purpose: Annotated[str, Option(help="What the model is for.", show_default="lines to fill in by hand")] = "",
    columns: options.Columns = 30,
    markdown: Annotated[
        bool, Option("--markdown", help="Write Markdown, without pictures; also if --out ends in .md.")
    ] = False,
    force: options.Force = False,
    json: options.Json = False,
) -> None:
    """Write one page about a model: what was trained, the guarantee, coefficients, performance, sign-off.

    Everything comes from the model file and, if given, its evaluation and its ledger. No row is read: it costs nothing.
    """
    from discreet.report import write_report
    from discreet.report.write import is_markdown

    plain = markdown or (out is not None and is_markdown(out))
    page = out or Path("report.md" if plain else "report.html")
    check_free(page, force)
    for source in (model, evaluation):
        if source is not None and page.exists() and source.exists() and page.samefile(source):
            raise ValueError(f"--out {page} is a file that the report is made from; choose another name.")
    about = {"evaluation": evaluation, "ledger": ledger, "dataset": dataset, "purpose": purpose, "columns": columns}
    made = write_report(model, page, markdown=plain, overwrite=force, **about)
    values = {"out": str(page), "title": made.title, "numbers": dict(made.numbers)}
    answer(json, values, f"report written to {page}")


@command("discreet export model.json --sql patients --keep id --proba")
def export(
    model: options.ModelFile,
    sql: Annotated[
        str | None, Option(metavar="TABLE", help="Print a query that scores this table, or SCHEMA.TABLE.")
    ] = None,
    onnx: Annotated[Path | None, Option(metavar="FILE", help="Write the model as ONNX to this file.")] = None,
    keep: Annotated[
        list[str] | None, Option(metavar="COLUMN", help="A column that the query repeats; may be given again.")
    ] = None,
    score: Annotated[bool, Option("--score", help="With --sql: scores of a classifier as well.")] = False,
    proba: Annotated[bool, Option("--proba", help="With --sql: class probabilities as well.")] = False,
    json: options.Json = False,
    force: options.Force = False,
) -> None:
    """Turn a model into a query of standard SQL, or into an ONNX file; both clip columns and answer as predict does.

    Both hold only what the model file holds, so the privacy statement of the model covers them.
    """
    from discreet.estimators.model_file import read_model

    if sql is None and onnx is None:
        raise ValueError("say what to make: --sql TABLE, --onnx FILE or both.")
    check_free(onnx, force, "--onnx")
    stored = read_model(model)
    query = None
    if sql is not None:
        query = stored.estimator.to_sql(sql.split("."), schema=stored.schema, keep=keep or [], score=score, proba=proba)
    if onnx is not None:
        stored.estimator.to_onnx(onnx)
    if json or query is not None:
        answer(json, {"sql": query, "onnx": None if onnx is None else str(onnx)}, query)


@command("discreet statement model.json")
def statement(model: options.ModelFile, json: options.Json = False) -> None:
    """Show the privacy statement of a model file.

    The statement is made again from what was done to the rows, and a file that does not prove its promise is refused.
    The first line says whether somebody signed the file; one that was changed after that is refused.
    """
    from discreet.estimators.model_file import read_model
    from discreet.privacy.signatures import signature_line, signature_of, signature_values

    guarantee, signed = read_model(model).estimator.guarantee_, signature_of(model)
    answer(json, lambda: guarantee.to_dict() | signature_values(signed), f"{signature_line(signed)}\n\n{guarantee}")
