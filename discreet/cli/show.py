"""`discreet show`: what a model file says, column by column."""

from __future__ import annotations

from discreet.cli import options
from discreet.cli.console import answer

EXAMPLE = "Example: discreet show model.json"


def show(
    model: options.ModelFile,
    columns: options.Columns = 40,
    json: options.Json = False,
) -> None:
    """Show what a model says: coefficients per unit and per range, where columns are clipped, noise, privacy.

    Everything shown was released with the model or is public; showing it costs nothing.
    """
    from discreet.estimators.model_file import read_model

    summary = read_model(model).estimator.summary()
    answer(json, summary.to_dict, lambda: summary.text(columns))
