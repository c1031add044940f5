"""`discreet federated vertical`: one model of the columns of several tables of the same people."""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

from typer import Argument, Option

from discreet.cli import options
from discreet.cli.console import print_json
from discreet.privacy.relation import Relation

EXAMPLE = "Example: discreet federated vertical bank=bank.csv shop=shop.csv --labels shop --target spent --bounds 0,1"


def vertical(
    tables: Annotated[list[str], Argument(metavar="NAME=TABLE...", help="CSV or Parquet files, rows matched.")],
    labels: Annotated[str, Option(help="Which of the names has the target.")],
    target: Annotated[str, Option(help="The column to predict.")],
    task: Annotated[Literal["classification", "regression"], Option(help="Labels are 0 and 1.")] = "regression",
    epsilon: options.Epsilon = 1.0,
    delta: options.Delta = None,
    alpha: Annotated[float, Option(help="Strength of the L2 penalty.")] = 1e-4,
    bounds: options.Bounds = None,
    y_bounds: options.YBounds = None,
    relation: options.RelationName = None,
    sweeps: Annotated[int | None, Option(min=1, help="How often numbers are exchanged.")] = None,
    plan_only: Annotated[bool, Option("--plan", help="Show what would be sent, and send nothing.")] = False,
    json: options.Json = False,
) -> None:
    """Fit one model of the columns of several holders, all on this machine; every holder has the same budget.

    Row i of every table must be the same person. Real holders run the same objects on their own machines.
    """
    from discreet.federated.vertical import Holder, HolderFacts, plan_vertical, run_vertical
    from discreet.privacy.budget import Budget
    from discreet.problem.losses import Logistic, Squared
    from discreet.problem.penalties import L2
    from discreet.problem.problem import Problem

    frames = _read(tables)
    if labels not in frames or target not in frames[labels].columns:
        raise ValueError(f"--labels must be one of {sorted(frames)}, and --target a column of its table.")
    y = frames[labels].pop(target).to_numpy(dtype=float)
    rows = len(y)
    if task == "classification":
        if not set(y) <= {0.0, 1.0}:
            raise ValueError("labels of a classification must be 0 and 1.")
        y = 2.0 * y - 1.0
    budget = Budget(epsilon, 1.0 / rows**2 if delta is None else delta)
    limits = options.parse_pair("--bounds", bounds)
    facts = [HolderFacts(name, frame.shape[1], budget, limits) for name, frame in frames.items()]
    problem = Problem(Logistic() if task == "classification" else Squared(), L2(alpha))
    plan = plan_vertical(
        problem, facts, rows, labels=labels, y_bounds=options.parse_pair("--y-bounds", y_bounds),
        relation=relation or Relation.REPLACE, sweeps=sweeps,
    )  # fmt: skip
    if plan_only:
        print(plan)
        return
    holders = {
        name: Holder(plan, name, frame.to_numpy(dtype=float), y if name == labels else None)
        for name, frame in frames.items()
    }
    model = run_vertical(plan, holders)
    coef = {name: dict(zip(frame.columns, model.coef[name].tolist(), strict=True)) for name, frame in frames.items()}
    if json:
        own, total = (value if math.isfinite(value) else "inf" for value in (epsilon, model.total.epsilon))
        print_json({"coef": coef, "intercept": model.intercept, "epsilon": own, "total_epsilon": total})
        return
    print(f"{plan}\n\nintercept {model.intercept:.6g}")
    for name, values in coef.items():
        for column, value in values.items():
            print(f"{name}.{column} {value:.6g}")


def _read(tables: list[str]) -> dict[str, Any]:
    """The tables by the names of their holders."""
    import pandas as pd

    frames: dict[str, Any] = {}
    for text in tables:
        name, found, path = text.partition("=")
        if not found or not name or name in frames:
            raise ValueError(f"every table must be given as NAME=FILE, each name once; got {text!r}.")
        frames[name] = pd.read_parquet(path) if path.endswith(".parquet") else pd.read_csv(path)
    if len({len(frame) for frame in frames.values()}) > 1:
        raise ValueError("all tables must have the same people, in the same order: their numbers of rows differ.")
    return frames
