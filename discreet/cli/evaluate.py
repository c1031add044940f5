"""`discreet evaluate`: how good a model is on private rows, paid for, with confidence intervals."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

from discreet.cli import options
from discreet.cli.console import answer, check_free, complain, model_and_schema, opened

ROWS_ALONE = (
    "The model protects whole persons, and an evaluation protects single rows: a person with several rows in this "
    "table is protected less than the cost says."
)
EXAMPLE = "Example: discreet evaluate model.json test.csv --epsilon 0.5"


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
        Option(help="Clip regression errors to this public number: less noise.", show_default="none is clipped"),
    ] = None,
    relation: options.RelationName = None,
    public_rows: options.PublicRows = None,
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

    One private release is made, with its own cost. All figures have confidence intervals that cover the noise and the
    draw of the rows, and are compared with the best constant prediction. The curves are in the output of --json.
    """
    from discreet.estimators.table_fit import exceeds_memory
    from discreet.metrics import evaluate as evaluate_model
    from discreet.metrics import save_evaluation
    from discreet.privacy.relation import Relation

    estimator, schema = model_and_schema(model, "discreet.metrics.evaluate")
    bounds = options.parse_pair("--y-bounds", y_bounds)
    if out is not None:
        check_free(out, force)
    settings: dict[str, Any] = {"ledger": ledger, "dataset": dataset, "random_state": seed, "public_n": public_rows}
    settings |= {"confidence": confidence, "y_bounds": bounds, "largest_error": largest_error}
    settings |= {"figures": None if figures is None else [name.strip() for name in figures.split(",")]}
    settings |= {"relation": relation or Relation.REPLACE}
    with opened(table, not no_header, dask) as file:
        if dask is not None or exceeds_memory(file, schema, settings["relation"], public_rows):
            rows, labels = file.stored(schema), None
        else:
            rows = file.read(schema, target=True)
            labels = rows.y
        found = evaluate_model(estimator, rows, labels, epsilon, delta, **settings)
    if out is not None:
        save_evaluation(found, out, overwrite=force)
    if estimator.guarantee_.unit == "person":
        complain("warning", ROWS_ALONE)
    answer(json, found.to_dict, found)
