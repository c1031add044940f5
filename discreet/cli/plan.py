"""`discreet plan`: what a fit would do, without any data."""

from __future__ import annotations

from typing import Annotated

import typer

from discreet.cli import options
from discreet.cli.console import print_json
from discreet.cli.fit import in_short
from discreet.privacy.relation import Relation

EXAMPLE = "Example: discreet plan --rows 45312 --columns 8 --epsilon 1"


def plan(
    rows: Annotated[int, typer.Option(min=1, help="Number of rows (with add_remove: a public estimate).")],
    columns: Annotated[int, typer.Option(min=1, help="Number of columns without the target.")],
    epsilon: options.Epsilon = 1.0,
    delta: options.Delta = None,
    estimator: options.Estimator = None,
    solver: options.SolverName = "auto",
    alpha: options.Alpha = None,
    bounds: options.Bounds = None,
    y_bounds: options.YBounds = None,
    class_count: Annotated[int, typer.Option(min=2, help="Number of classes of a classification.")] = 2,
    relation: options.RelationName = None,
    json: options.Json = False,
) -> None:
    """Show the noise, the steps and the cost of a fit, from public facts alone."""
    from discreet.data.schema import Column, Schema, Target
    from discreet.estimators.table_fit import FitRequest

    names = [f"x{i}" for i in range(columns)]
    low, high = options.parse_pair("--y-bounds", y_bounds) or (None, None)
    schema = Schema(tuple(map(Column, names)), Target("y", None, low, high), relation or Relation.REPLACE)
    limits = options.parse_pair("--bounds", bounds)
    parameters = {"epsilon": epsilon, "delta": delta, "solver": solver} | ({} if alpha is None else {"alpha": alpha})
    if relation is Relation.ADD_REMOVE:
        parameters["public_n"] = rows
    request = FitRequest(
        schema=schema if limits is None else schema.with_bounds(*limits),
        estimator=estimator,
        parameters=parameters,
    )
    model = request.model(request.known_task or "classification")
    planned = model.plan(rows, columns, class_count)
    if json:
        print_json({"plan": planned.to_dict(), "guarantee": planned.guarantee.to_dict()})
        return
    print(f"{type(model).__name__}\n\n{planned}\n{in_short(planned.guarantee)}")
