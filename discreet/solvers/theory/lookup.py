"""Which theorem covers a planned run, by the type of its solver."""

from __future__ import annotations

from functools import singledispatch
from typing import Any

from discreet.problem.column_scaling import ColumnScaling
from discreet.solvers.plan import Plan
from discreet.theory.bound import Bound
from discreet.theory.distance import DistanceLaw


@singledispatch
def distance_of(solver: Any, plan: Plan, scaling: ColumnScaling) -> DistanceLaw:
    """The law for a kind of solver."""
    raise ValueError(f"no theorem bounds the distance of {solver.name} from its optimum.")


@singledispatch
def bound_of(solver: Any, plan: Plan, radius: float) -> Bound | None:
    """The bound for a kind of solver; the run is noisy."""
    return None
