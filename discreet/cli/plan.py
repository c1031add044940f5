"""`discreet plan`: what a fit would do, without any data."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from discreet._common.text import facts
from discreet.cli import options
from discreet.cli.console import answer, command
from discreet.cli.fit import in_short
from discreet.privacy.relation import Relation

if TYPE_CHECKING:
    from discreet.estimators.table_fit import FitRequest


@command("discreet plan --rows 45312 --columns 8 --epsilon 1")
def plan(
    rows: Annotated[int, Option(min=1, help="Number of rows (with add_remove: a public estimate).")],
    columns: Annotated[int, Option(min=1, help="Number of columns without the target.")],
    epsilon: options.Epsilon = 1.0,
    delta: options.Delta = None,
    estimator: options.Estimator = None,
    solver: options.SolverName = "auto",
    alpha: options.Alpha = None,
    bounds: options.Bounds = None,
    y_bounds: options.YBounds = None,
    class_count: Annotated[int, Option(min=2, help="Number of classes of a classification.")] = 2,
    relation: options.RelationName = None,
    persons: Annotated[bool, Option("--persons", help="--rows counts persons, who may have several rows.")] = False,
    ledger: options.LedgerUrl = None,
    dataset: options.DatasetName = None,
    theory: Annotated[bool, Option(help="Show bounds of the literature on the error, below and above.")] = False,
    radius: Annotated[float, Option(help="With --theory: assumed norm of the optimum in scaled columns.")] = 1.0,
    json: options.Json = False,
) -> None:
    """Show the noise, the steps and the cost of a fit, from public facts alone.

    With a ledger: also whether it would pay for the fit, and if not, what it would pay for. Nothing is booked.
    With --theory: also what no private algorithm can beat and what is proved of the planned run (docs/theory.md).
    """
    from discreet.data.schema import Column, Schema, Target
    from discreet.estimators.table_fit import FitRequest

    names = [f"x{i}" for i in range(columns)]
    low, high = options.parse_pair("--y-bounds", y_bounds) or (None, None)
    person = "person" if persons else None
    schema = Schema(tuple(map(Column, names)), Target("y", None, low, high), relation or Relation.REPLACE, person)
    limits = options.parse_pair("--bounds", bounds)
    schema = schema if limits is None else schema.with_bounds(*limits)
    parameters: dict[str, Any] = {"epsilon": epsilon, "delta": delta, "solver": solver}
    parameters |= {} if alpha is None else {"alpha": alpha}
    parameters |= {"public_n": rows} if relation is Relation.ADD_REMOVE else {}
    request = FitRequest(schema=schema, estimator=estimator, parameters=parameters)
    task = request.known_task or "classification"
    model = request.model(task)
    planned = model.plan(rows, columns, class_count, persons=persons)
    paid = {"ledger": ledger, "dataset": dataset}
    request = replace(request, task=task, parameters={**request.parameters, **paid})
    budget = _ask_ledger(request, rows, columns, class_count)
    values = {"plan": planned.to_dict(), "guarantee": planned.guarantee.to_dict(), "ledger": budget}
    lines = [f"{type(model).__name__}\n\n{planned}\n{in_short(planned.guarantee)}"]
    if theory:
        known = planned.theory(radius)
        values["theory"] = known.to_dict()
        lines.append(f"\n{known}")
    if budget is not None:
        left = f"epsilon {budget['remaining']:.6g} left of {budget['epsilon']:.6g} at delta {budget['delta']:.3g}"
        verdict = "would pay for this" if budget["fits"] else f"does not cover this; {budget['would_fit']}"
        lines.append(facts([("ledger", f"{dataset!r} {verdict} ({left})")]))
    answer(json, values, "\n".join(lines))


def _ask_ledger(request: FitRequest, rows: int, columns: int, classes: int) -> dict[str, Any] | None:
    """Whether the ledger, if one was named, would pay for the fit, and what it would pay for instead."""
    ledger, dataset = request.parameters["ledger"], request.parameters["dataset"]
    if (ledger is None) != (dataset is None):
        raise ValueError("--ledger URL and --dataset NAME belong together.")
    if ledger is None:
        return None
    from discreet.estimators.table_fit import covers, what_fits
    from discreet.privacy.ledger import Ledger
    from discreet.privacy.ledger.statement import budget_of

    fits = covers(request, rows, columns, classes)
    would_fit = None if fits else what_fits(request, rows, columns, classes)
    return budget_of(Ledger(ledger), dataset) | {"fits": fits, "would_fit": would_fit}
