"""`discreet statement`: what a model file promises, checked again and told in plain words."""

from __future__ import annotations

from discreet.cli import options
from discreet.cli.console import answer

EXAMPLE = "Example: discreet statement model.json"


def statement(
    model: options.ModelFile,
    json: options.Json = False,
) -> None:
    """Show the privacy statement of a model file.

    The statement is made again from what was done to the rows, and a file that does not prove its promise is refused.
    """
    from discreet.estimators.model_file import read_model

    guarantee = read_model(model).estimator.guarantee_
    answer(json, guarantee.to_dict, guarantee)
