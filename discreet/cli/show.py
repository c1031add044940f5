"""`discreet show`: what a model file says, column by column."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from discreet.cli import options
from discreet.cli.console import print_json

EXAMPLE = "Example: discreet show model.json"


def show(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A file written by discreet fit or save_model.")],
    columns: Annotated[
        int, typer.Option(min=0, help="Show so many columns at most, those that can move the prediction most.")
    ] = 40,
    json: options.Json = False,
) -> None:
    """Show what a model says: coefficients per unit and per range, where columns are clipped, noise, privacy.

    Everything shown was released with the model or is public; showing it costs nothing.
    """
    from discreet.estimators.model_file import read_model

    summary = read_model(model).estimator.summary()
    if json:
        print_json(summary.to_dict())
    else:
        print(summary.text(columns))
