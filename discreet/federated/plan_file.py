"""Federated plans as JSON values: what the server sends to the clients before the first round."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from discreet._common.codec import Format, built, by_name, checked, described, from_name, plain, read_json_file
from discreet.data.public import Public
from discreet.federated.plan import FederatedPlan
from discreet.problem import losses, penalties
from discreet.problem.constraints import CONSTRAINTS
from discreet.problem.problem import Problem

FORMAT = Format("discreet federated plan", 2, derived=("guarantees",))
LOSSES = {kind.name: kind for kind in (losses.Squared, losses.Logistic, losses.Huber, losses.SmoothedHinge)}
PENALTIES = {kind.name: kind for kind in (penalties.Zero, penalties.L1, penalties.L2, penalties.ElasticNet)}
PARTS: dict[str, dict[str, Any]] = {"loss": LOSSES, "penalty": PENALTIES, "constraint": CONSTRAINTS}
SETTINGS = (
    *("clients", "per_round", "rounds", "participations", "dropouts"),
    *("gamma", "relaxation", "clip", "tolerance", "multiplier"),
    *("unit", "model", "sampling", "run"),
)


def plan_to_dict(plan: FederatedPlan) -> dict[str, Any]:
    """A plan as JSON values; a loss, penalty or constraint of another package is a ValueError."""
    problem, public = plan.problem, plan.public
    parts = {name: getattr(problem, name) for name in PARTS}
    return {
        **FORMAT.head,
        "problem": {
            **{name: None if part is None else by_name(part, PARTS[name], name) for name, part in parts.items()},
            "fit_intercept": problem.fit_intercept,
        },
        "public": {
            "rows": public.rows,
            "columns": public.columns,
            "relation": str(public.relation),
            "bounds": plain([public.low, public.high]),
            "y_bounds": None if public.target_low is None else [public.target_low, public.target_high],
        },
        "budget": plan.budget.to_dict(),
        **{name: getattr(plan, name) for name in SETTINGS},
        "digest": plan.digest.hex(),
        "guarantees": {
            f"{model} {unit}": {"epsilon": plain(promise.epsilon), "delta": promise.delta}
            for (model, unit), promise in plan.guarantees.items()
        },
    }


def plan_from_dict(content: Any) -> FederatedPlan:
    """The plan that `plan_to_dict` wrote; anything else is a ValueError."""
    return described(lambda: _read(content), "this is not a federated plan")


def _read(content: Any) -> FederatedPlan:
    fields = FORMAT.body(content)
    digest, public = fields.pop("digest"), fields["public"]
    hints = dict.fromkeys(PARTS, Any) | {"fit_intercept": bool}
    parts = checked(hints, tuple(hints), fields["problem"], "the problem")
    for name, known in PARTS.items():
        parts[name] = None if parts[name] is None else from_name(parts[name], known, name)
    problem = Problem(parts["loss"], parts["penalty"], parts["constraint"], parts["fit_intercept"])
    facts = Public.of(public.pop("rows"), public.pop("columns"), **public)
    plan = built(FederatedPlan, fields | {"problem": problem, "public": facts}, "the plan")
    if plan.digest.hex() != digest:
        raise ValueError("its digest is that of another plan: it was changed, or written by another version.")
    return plan


def read_plan(path: Path) -> FederatedPlan:
    """Return the plan in a file; a ValueError if it is damaged, or its noise does not keep its budget."""
    return read_json_file(path, FederatedPlan.from_dict, f"{path} is not the plan of a federated run")
