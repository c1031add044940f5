"""`discreet export`: a model file as a query of SQL or as an ONNX file, to score where discreet is not installed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Option

from discreet.cli import options
from discreet.cli.console import check_free, print_json

EXAMPLE = "Example: discreet export model.json --sql patients --keep id --proba"


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
    if onnx is not None:
        check_free(onnx, force, "--onnx")
    stored = read_model(model)
    query = None
    if sql is not None:
        query = stored.estimator.to_sql(sql.split("."), schema=stored.schema, keep=keep or [], score=score, proba=proba)
    if onnx is not None:
        stored.estimator.to_onnx(onnx)
    if json:
        print_json({"sql": query, "onnx": None if onnx is None else str(onnx)})
    elif query is not None:
        print(query)
