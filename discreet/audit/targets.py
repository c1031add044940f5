"""What can be audited: an estimator, a transformer, a plan of a solver, or any function of a table and a generator."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import numpy as np

from discreet._common.exceptions import DiscreetWarning
from discreet.data.rows import Data
from discreet.data.validation import array_rows
from discreet.privacy.budget import budget_from
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.guarantee import guarantee_for as promise_of
from discreet.privacy.random.generator import RandomGenerator
from discreet.privacy.relation import Relation, relation_from
from discreet.solvers import Plan

Outputs = Mapping[str, Any]  # everything that a run tells, by name
Runner = Callable[[Data, RandomGenerator | None], Outputs]


@dataclass(frozen=True, eq=False)
class Target:
    """Something that reads a table and tells something about it.

    Attributes
    ----------
    run : callable
        run(data, rng) makes one run; rng is None where it is to draw its own noise.
    relation : Relation
        Which tables are neighbours.
    name : str
    guarantee_for : callable
        The promise for a table of this shape, without reading it: guarantee_for(data).
    """

    run: Runner
    relation: Relation
    name: str
    guarantee_for: Callable[[Data], Guarantee | None]


def target_of(audited: Any) -> Target:
    """Make a target of an estimator or transformer, a plan of a solver, an AuditCase, or a target itself."""
    if isinstance(audited, Target):
        return audited
    if isinstance(audited, Plan):
        return _plan_target(audited)
    if isinstance(getattr(audited, "plan", None), Plan):
        return _plan_target(audited.plan)
    if hasattr(audited, "fit") and hasattr(audited, "get_params"):
        return _estimator_target(audited)
    raise TypeError(f"{audited!r} cannot be audited: pass an estimator, a transformer, a plan or an audit case.")


def function_target(
    name: str, relation: Relation, release: Callable[[Data, RandomGenerator | None], tuple[Outputs, Guarantee]]
) -> Target:
    """Make a target of any function of a table and a generator that gives all that it tells, and what it promises.

    The promise for a table is learned by a run of its own.
    """
    return Target(lambda data, rng: release(data, rng)[0], relation, name, lambda data: release(data, None)[1])


def as_data(table: Any) -> Data:
    """A table as `Data`: pass Data, (X, y) or (X, y, sample_weight)."""
    if isinstance(table, Data):
        return table
    X, y, *weight = table
    labels = np.asarray(y)
    codes = labels if labels.dtype.kind in "fiub" else np.unique(labels, return_inverse=True)[1]
    return array_rows(X, codes, *weight)


def _plan_target(plan: Plan[Any, Any]) -> Target:
    def run(data: Data, rng: RandomGenerator | None) -> Outputs:
        from discreet.privacy.random.generator import secure_generator

        solution = plan.solver.solve(plan.problem, data, plan, rng or secure_generator())
        return {
            "coef": solution.coef,
            "intercept": solution.intercept,
            "iterations": solution.iterations,
            **numbers_of("scaling", solution.scaling),
        }

    return Target(run, plan.public.relation, plan.solver.name, lambda data: plan.guarantee)


def _estimator_target(estimator: Any) -> Target:
    from sklearn.base import clone

    parameters = estimator.get_params(deep=False)
    inner = getattr(parameters.get("estimator"), "relation", Relation.REPLACE)  # of a search
    relation = relation_from(parameters.get("relation", inner))

    def run(data: Data, rng: RandomGenerator | None) -> Outputs:
        fitted = clone(estimator)
        if rng is not None:
            fitted.set_params(random_state=rng)
        options: dict[str, Any] = {} if data.weight is None else {"sample_weight": data.weight}
        options |= {} if data.persons is None else {"groups": data.persons}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DiscreetWarning)
            fitted.fit(data.X, data.y, **options)
        return numbers_of("", fitted)

    def guarantee_for(data: Data) -> Guarantee | None:
        shape: dict[str, Any] = {} if data.persons is None else {"persons": True}
        planned: Any = estimator.plan(data.units, data.columns, **shape) if hasattr(estimator, "plan") else None
        if hasattr(planned, "guarantee") or not hasattr(planned, "event"):
            return getattr(planned, "guarantee", None)
        budget = budget_from(parameters["epsilon"], parameters.get("delta"), data.rows)  # a transformer
        return promise_of(planned.event, budget, relation, data.rows)

    return Target(run, relation, type(estimator).__name__, guarantee_for)


def numbers_of(name: str, thing: Any) -> dict[str, Any]:
    """Every number and array that an object shows: the fields of a dataclass, or what a fit has learned."""
    if is_dataclass(thing) and not hasattr(thing, "get_params"):
        parts = {field.name: getattr(thing, field.name) for field in fields(thing)}
    else:
        learned = (key for key in dir(thing) if key.endswith("_") and not key.startswith("_"))
        parts = {key: getattr(thing, key) for key in learned if hasattr(thing, key)}
        solution = parts.pop("solution_", None)
        if solution is not None:
            parts["scaling"] = solution.scaling
    found: dict[str, Any] = {}
    for key, value in parts.items():
        path = f"{name}.{key}" if name else key
        if isinstance(value, (bool, int, float, np.number, np.ndarray)):
            found[path] = np.array(value)
        elif (is_dataclass(value) and key == "scaling") or hasattr(value, "get_params"):
            found |= numbers_of(path, value)
    return found
