"""Federated plans as JSON values: what the server sends to the clients before the first round."""

from __future__ import annotations

import math
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from discreet._common.json_file import described, read_json_file
from discreet.data.public import Public
from discreet.federated.plan import FederatedPlan
from discreet.privacy.budget import Budget
from discreet.problem import constraints, losses, penalties
from discreet.problem.problem import Problem

FORMAT, VERSION = "discreet federated plan", 2
LOSSES: dict[str, Any] = {
    kind.name: kind for kind in (losses.Squared, losses.Logistic, losses.Huber, losses.SmoothedHinge)
}
PENALTIES: dict[str, Any] = {
    kind.name: kind for kind in (penalties.Zero, penalties.L1, penalties.L2, penalties.ElasticNet)
}
CONSTRAINTS: dict[str, Any] = {
    kind.name: kind for kind in (constraints.L1Ball, constraints.L2Ball, constraints.Box, constraints.Simplex)
}
NUMBERS = ("clients", "per_round", "rounds", "participations", "dropouts")
REALS = ("gamma", "relaxation", "clip", "tolerance", "multiplier")
TEXTS = ("unit", "model", "sampling", "run")


def plan_to_dict(plan: FederatedPlan) -> dict[str, Any]:
    """A plan as JSON values; a loss, penalty or constraint of another package is a ValueError."""
    problem, public = plan.problem, plan.public
    return {
        "format": FORMAT,
        "version": VERSION,
        "problem": {
            "loss": _named(problem.loss, LOSSES, "loss"),
            "penalty": _named(problem.penalty, PENALTIES, "penalty"),
            "constraint": None if problem.constraint is None else _named(problem.constraint, CONSTRAINTS, "constraint"),
            "fit_intercept": problem.fit_intercept,
        },
        "public": {
            "rows": public.rows,
            "columns": public.columns,
            "relation": str(public.relation),
            "bounds": [_listed(public.low), _listed(public.high)],
            "y_bounds": None if public.target_low is None else [public.target_low, public.target_high],
        },
        "budget": plan.budget.to_dict(),
        **{name: getattr(plan, name) for name in (*NUMBERS, *REALS, *TEXTS)},
        "digest": plan.digest.hex(),
        "guarantees": {
            f"{model} {unit}": {"epsilon": promise.epsilon if promise.is_private else "inf", "delta": promise.delta}
            for (model, unit), promise in plan.guarantees.items()
        },
    }


def plan_from_dict(content: Any) -> FederatedPlan:
    """The plan that `plan_to_dict` wrote; anything else is a ValueError."""
    return described(lambda: _read(content), "this is not a federated plan")


def _read(content: Any) -> FederatedPlan:
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise ValueError(f'it lacks "format": "{FORMAT}".')
    if content["version"] != VERSION:
        raise ValueError(f"it has version {content['version']!r}; this discreet reads version {VERSION}.")
    public, problem = content["public"], content["problem"]
    if not isinstance(problem["fit_intercept"], bool):
        raise ValueError(f"fit_intercept must be true or false; got {problem['fit_intercept']!r}.")
    for name in TEXTS:
        if not isinstance(content[name], str):
            raise ValueError(f"{name} must be a text; got {content[name]!r}.")
    plan = FederatedPlan(
        problem=Problem(
            _made(problem["loss"], LOSSES, "loss"),
            _made(problem["penalty"], PENALTIES, "penalty"),
            None if problem["constraint"] is None else _made(problem["constraint"], CONSTRAINTS, "constraint"),
            problem["fit_intercept"],
        ),
        public=Public.of(
            public["rows"],
            public["columns"],
            relation=public["relation"],
            bounds=public["bounds"],
            y_bounds=public["y_bounds"],
        ),
        budget=Budget.from_dict(content["budget"]),
        **{name: content[name] for name in (*NUMBERS, *REALS, *TEXTS)},
    )
    if plan.digest.hex() != content["digest"]:
        raise ValueError("its digest is that of another plan: it was changed, or written by another version.")
    return plan


def _listed(values: Any) -> list[float]:
    return np.asarray(values, dtype=np.float64).tolist()


def _named(value: Any, known: dict[str, Any], what: str) -> dict[str, Any]:
    if known.get(value.name) is not type(value):
        raise ValueError(f"the {what} {value!r} cannot be written to a plan.")
    settings = {field.name: getattr(value, field.name) for field in fields(value)}
    return {"name": value.name} | {name: _plain(setting) for name, setting in settings.items()}


def _made(content: Any, known: dict[str, Any], what: str) -> Any:
    name = content["name"]
    if not isinstance(name, str) or name not in known:
        raise ValueError(f"unknown {what} {name!r}.")
    return known[name](**{key: _numbers(value) for key, value in content.items() if key != "name"})


def _plain(value: Any) -> Any:
    if isinstance(value, (tuple, list, np.ndarray)):
        return [_plain(item) for item in value]
    return str(value) if isinstance(value, float) and math.isinf(value) else value


def _numbers(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(map(_numbers, value))
    return float(value) if value in ("inf", "-inf") else value


def read_plan(path: Path) -> FederatedPlan:
    """Return the plan in a file; a ValueError if it is damaged, or its noise does not keep its budget."""
    return read_json_file(path, FederatedPlan.from_dict, f"{path} is not the plan of a federated run")
