"""`discreet statement`: what a model file promises, checked again and told in plain words."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from discreet.cli import options
from discreet.cli.console import print_json

EXAMPLE = "Example: discreet statement model.json"


def statement(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A file written by discreet fit or save_model.")],
    json: options.Json = False,
) -> None:
    """Show the privacy statement of a model file.

    The statement is made again from what was done to the rows, and a file that does not prove its promise is refused.
    """
    from discreet.estimators.model_file import read_model

    guarantee = read_model(model).estimator.guarantee_
    if json:
        print_json(guarantee.to_dict())
    else:
        print(guarantee)
