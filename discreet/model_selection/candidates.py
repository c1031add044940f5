"""What a search and a cross-validation fit: an estimator of discreet, or a private pipeline that ends in one.

The private steps of a pipeline share the budget of a fit. Proof: docs/guarantees/model-selection.md, theorem 4.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from discreet.data.loading import CheckedTable
from discreet.data.pipeline_steps import is_private, leaves
from discreet.data.validation import is_neutral
from discreet.estimators.fitting import load_for, readable_for
from discreet.preprocessing.pipeline import check_pipeline, pipeline_guarantee
from discreet.privacy.budget import Budget
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.relation import Relation
from discreet.privacy.release import WHOLE


def is_pipeline(model: Any) -> bool:
    """Whether the model is a pipeline; an exact type, as a subclass may do more."""
    return type(model) is Pipeline


def last_step(model: Any) -> Any:
    """The estimator that predicts: the last step of a pipeline, or the model itself."""
    return last_step(model.steps[-1][1]) if is_pipeline(model) else model


def private_steps(model: Any) -> list[Any]:
    """What states a guarantee: the private steps of a pipeline, or the model itself."""
    return [step for _, step in leaves(model) if is_private(step)]


def set_private(model: Any, **settings: Any) -> Any:
    """Set these parameters of every private step that has them."""
    for step in private_steps(model):
        known = step.get_params(deep=False)
        step.set_params(**{name: value for name, value in settings.items() if name in known})
    return model


def silenced(model: Any) -> Any:
    """The model without progress bars and messages of its own, or of any step."""
    shown = {name: value for name, value in model.get_params().items() if name.rpartition("__")[2] == "verbose"}
    return model.set_params(**{name: type(value)(0) for name, value in shown.items()})


def with_budget(model: Any, budget: Budget) -> Any:
    """The model, with this budget for one fit of it."""
    if not is_pipeline(model):
        return model.set_params(epsilon=budget, delta=None)
    for step, part in zip(private_steps(model), pipeline_budgets(model, budget), strict=True):
        step.set_params(epsilon=part, delta=None)
    return model


def budget_of_steps(budget: Budget) -> Budget:
    """The budget of the fit of a pipeline, in a definition in which its steps compose: GDP or pure epsilon."""
    if budget.is_infinite:
        raise ValueError("a pipeline needs a finite epsilon here; without privacy use the tools of scikit-learn.")
    return budget if budget.kind in ("pure", "gdp") else Budget.gdp(budget.gaussian_mu())


def pipeline_budgets(pipeline: Any, budget: Budget) -> list[Budget]:
    """What each private step gets of a budget in GDP or in pure epsilon, in the ratio of their own epsilons."""
    weights = np.array([step.epsilon for step in private_steps(pipeline)])
    squares = weights if budget.kind == "pure" else weights**2
    return [budget.part(WHOLE * share) for share in (squares / squares.sum()).tolist()]


def check_candidate(model: Any, what: str) -> None:
    """Refuse a pipeline that the proof does not cover; `what` fits it."""
    if not is_pipeline(model):
        return
    check_pipeline(model)
    steps = private_steps(model)
    if any(not _is_amount(getattr(step, "epsilon", None)) for step in steps):
        raise ValueError(
            f"{what} divides its budget among the private steps in the ratio of their epsilons: make each a positive "
            "number."
        )
    if {Relation(step.relation) for step in steps} not in ({Relation.REPLACE}, {Relation.ZERO_OUT}):
        raise ValueError(f"{what} takes a pipeline whose private steps all have relation='replace', or all 'zero_out'.")
    if any(getattr(step, "ledger", None) is not None for step in steps):
        raise ValueError(f"pass ledger= to {what}, which books all fits at once, and not to the steps of its pipeline.")
    if any(is_neutral(getattr(step, "invalid_rows", "error")) for step in steps):
        raise ValueError(f"{what} takes no pipeline with invalid_rows='neutral'; use it with a model alone.")
    last = last_step(model)
    if getattr(last, "start", None) is not None or getattr(last, "public_table", None) is not None:
        raise ValueError(f"{what} takes no pipeline with start= or public_table=; leave them out.")


def check_varied(model: Any, varied: set[str], name: str) -> None:
    """Refuse settings that would exchange steps of a pipeline; `name` is the parameter that names them."""
    whole = sorted(setting for setting in varied if "__" not in setting)
    if is_pipeline(model) and whole:
        raise ValueError(f"{name} cannot vary {whole[0]!r}: of a pipeline it varies settings, such as 'step__alpha'.")


def _is_amount(epsilon: Any) -> bool:
    number = isinstance(epsilon, int | float | np.number) and not isinstance(epsilon, bool)
    return number and math.isfinite(epsilon) and epsilon > 0.0


def readable(model: Any, X: Any, y: Any, metadata: dict[str, Any]) -> tuple[Any, Any, dict[str, Any]]:
    """The arguments of a fit in which every row can be read, if the model asks for it; a pipeline cannot."""
    return (X, y, metadata) if is_pipeline(model) else readable_for(model, X, y, metadata)


def checked_table(model: Any, X: Any, y: Any, metadata: dict[str, Any]) -> CheckedTable:
    """The checked rows of a fit; for a pipeline their target, as its steps check X when they get it."""
    if not is_pipeline(model):
        return load_for(clone(model), X, y, metadata)
    if metadata.get("sample_weight") is not None:
        raise ValueError("sample_weight would not reach every step of a pipeline; leave it out, or pass a model alone.")
    shape = getattr(X, "shape", None) or np.shape(X)
    if len(shape) != 2 or not all(isinstance(size, int) for size in shape):
        raise ValueError("X must be a table in memory, with rows and columns, to be divided for a pipeline.")
    return load_for(clone(last_step(model)), np.broadcast_to(np.float64(0.0), shape), y, metadata)


def cost_of(model: Any) -> Any:
    """What the fit of a model, or of all private steps of a pipeline, has cost."""
    return pipeline_guarantee(model).event if is_pipeline(model) else model.plan_.event


def promise_of(model: Any) -> Guarantee:
    """The promise of one fit."""
    return pipeline_guarantee(model) if is_pipeline(model) else model.guarantee_


def keep_promise(model: Any, promise: Guarantee) -> None:
    """Make this the promise to quote: of a pipeline every private step carries it, the very same object."""
    for step in private_steps(model):
        step.guarantee_ = promise
