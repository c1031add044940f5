"""`discreet evaluate`: how good a model is on private rows, paid for, with confidence intervals."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.cli import options
from discreet.cli.console import check_free, complain, print_json

if TYPE_CHECKING:
    from discreet.data.files import TableFile
    from discreet.data.schema import Schema

ROWS_ALONE = (
    "The model protects whole persons, and an evaluation protects single rows: a person with several rows in this "
    "table is protected less than the cost says."
)
EXAMPLE = "Example: discreet evaluate model.json test.csv --epsilon 0.5"


def evaluate(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A file written by discreet fit.")],
    table: Annotated[Path, typer.Argument(metavar="TABLE", help="Rows with the target, as CSV or Parquet.")],
    epsilon: options.Epsilon,
    delta: options.Delta = None,
    figures: Annotated[
        str | None,
        typer.Option(
            metavar="A,B,...",
            help="For classifiers: some of accuracy, log_loss, curves; fewer have less noise.",
            show_default="all that the model has",
        ),
    ] = None,
    confidence: Annotated[float, typer.Option(help="Probability with which an interval holds.")] = 0.95,
    y_bounds: Annotated[
        str | None,
        typer.Option(metavar="LOW,HIGH", help="Public limits of a regression target.", show_default="the model's"),
    ] = None,
    largest_error: Annotated[
        float | None,
        typer.Option(help="Clip regression errors to this public number: less noise.", show_default="none is clipped"),
    ] = None,
    relation: options.RelationName = None,
    public_rows: options.PublicRows = None,
    ledger: options.LedgerUrl = None,
    dataset: options.DatasetName = None,
    no_header: options.NoHeader = False,
    dask: options.DaskAddress = None,
    seed: options.Seed = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Also write the evaluation to this file, for discreet report.")
    ] = None,
    force: options.Force = False,
    json: options.Json = False,
) -> None:
    """Evaluate a model on private rows: accuracy, log-loss, ROC and calibration curves, or R2.

    One private release is made, with its own cost. All figures have confidence intervals that cover the noise and the
    draw of the rows, and are compared with the best constant prediction. The curves are in the output of --json.
    """
    from discreet.estimators.model_file import read_model
    from discreet.estimators.table_fit import exceeds_memory
    from discreet.metrics import evaluate as evaluate_model
    from discreet.metrics import save_evaluation
    from discreet.privacy.relation import Relation

    stored = read_model(model)
    if stored.schema is None or stored.schema.target.name is None:
        raise ValueError(f"{model} was not trained on a table file; use discreet.metrics.evaluate in Python.")
    bounds = options.parse_pair("--y-bounds", y_bounds)
    if out is not None:
        check_free(out, force)
    settings: dict[str, Any] = {"ledger": ledger, "dataset": dataset, "random_state": seed, "public_n": public_rows}
    settings |= {"confidence": confidence, "y_bounds": bounds, "largest_error": largest_error}
    settings |= {"figures": None if figures is None else [name.strip() for name in figures.split(",")]}
    settings |= {"relation": relation or Relation.REPLACE}
    too_large = partial(
        exceeds_memory, schema=stored.schema, relation=settings["relation"], public_n=settings["public_n"]
    )
    with _rows(table, stored.schema, too_large, not no_header, dask) as (rows, labels):
        found = evaluate_model(stored.estimator, rows, labels, epsilon, delta, **settings)
    if out is not None:
        save_evaluation(found, out, overwrite=force)
    if stored.estimator.guarantee_.unit == "person":
        complain("warning", ROWS_ALONE)
    if json:
        print_json(found.to_dict())
    else:
        print(found)


@contextmanager
def _rows(
    table: Path, schema: Schema, too_large: Callable[[TableFile], bool], header: bool, dask: str | None
) -> Iterator[tuple[Any, Any]]:
    """The rows and their targets: in memory, in files too large for it, or on the workers of a cluster."""
    if dask is None:
        from discreet.data.files import open_table

        with open_table(table, header=header) as file:
            if too_large(file):
                yield file.stored(schema), None
                return
            rows = file.read(schema, target=True)
        yield rows, rows.y
        return
    from discreet.data.distributed.cluster import connected
    from discreet.data.distributed.parquet_files import ParquetFiles

    with connected(dask) as client:
        yield ParquetFiles(table, client).stored(schema), None
