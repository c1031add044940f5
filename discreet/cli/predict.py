"""`discreet predict`: apply a model file to a table file."""

from __future__ import annotations

import csv
import sys
from pathlib import Path
from typing import Annotated, Any

from typer import Option

from discreet._common.text import csv_cell
from discreet.cli import options
from discreet.cli.console import check_free, print_json

EXAMPLE = "Example: discreet predict model.json new_patients.csv --out predictions.csv"


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

    if out is not None:
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
    if out is not None:
        with open(out, "w", newline="", encoding="utf-8") as file:
            _write(file, columns)
    elif not json:
        _write(sys.stdout, columns)


def _write(file: Any, columns: dict[str, list[Any]]) -> None:
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(map(csv_cell, columns))
    writer.writerows(map(csv_cell, row) for row in zip(*columns.values(), strict=True))
