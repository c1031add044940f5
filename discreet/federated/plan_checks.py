"""What plans of federated runs are checked against, from public facts alone."""

from __future__ import annotations

from typing import Any, cast

from discreet.data.public import Public
from discreet.privacy.budget import Budget
from discreet.privacy.relation import Relation
from discreet.problem.column_scaling import ColumnScaling
from discreet.problem.problem import Problem


def protected_count(clients: int, unit: str, public: Public) -> int:
    """How many clients, or rows of all clients, there are, about."""
    return clients if unit == "client" else clients * public.rows


def less_delta(budget: Budget, lost: float) -> Budget:
    """The budget without a small part of its delta; other kinds of budget have none to spare."""
    if budget.kind != "approximate":
        raise ValueError("the central model needs a budget in epsilon and delta; use Budget(epsilon, delta).")
    assert budget.delta is not None
    if budget.delta <= 2.0 * lost:
        raise ValueError(f"delta must be above {2.0 * lost:.2g} in the central model; got {budget.delta:g}.")
    return Budget(budget.epsilon, budget.delta - lost)


def declared_scaling(problem: Problem, public: Public) -> ColumnScaling:
    """The map of the columns to [-1, 1], and of a regression target, from the declared bounds."""
    from discreet.scaling.learn import learn_scaling
    from discreet.scaling.plan import ScalingPlan

    target = not problem.loss.classification
    declared = ScalingPlan("declared", None, None, None, None, problem.fit_intercept, target)
    no_rows, no_noise = cast(Any, None), cast(Any, None)  # declared bounds need neither
    scaling = learn_scaling(declared, no_rows, public, no_noise)
    return scaling.uniform() if problem.common_scale else scaling


def check_problem(problem: Problem, public: Public) -> None:
    """Refuse a problem that federated runs cannot solve, from public facts."""
    loss = problem.loss
    if loss.outputs > 1:
        raise ValueError("federated runs need a loss with one margin: for several classes, train one model each.")
    for form in ("slope", "curvature"):
        if form not in loss.forms:
            raise ValueError(f"the compiled loop of federated runs does not know the {form} of the {loss.name} loss.")
    if not public.bounded or (not loss.classification and not public.target_bounded):
        missing = "y_bounds" if public.bounded else "bounds"
        raise ValueError(f"federated runs need {missing}=(low, high): nobody sees the rows of all clients.")
    if public.relation is Relation.ADD_REMOVE:
        raise ValueError("federated runs protect against relation replace or zero_out: who the clients are is public.")
    if public.sparse:
        raise ValueError("federated runs need dense columns.")
