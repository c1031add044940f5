"""What theorems say of the objective after planned coordinate descent."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from discreet._common.types import FloatArray
from discreet.privacy.mechanisms.grid import NoisyGrid
from discreet.solvers._shared.error_bounds import assumptions_of, gap_after_loops, start_gap
from discreet.solvers._shared.public_problem import PublicProblem
from discreet.solvers.coordinate_descent.distance import coordinate_steps
from discreet.theory.bound import Bound

if TYPE_CHECKING:
    from discreet.solvers.coordinate_descent.solver import CoordinateDescent, CoordinateDescentPlan


def planned_error(
    solver: CoordinateDescent,
    plan: CoordinateDescentPlan,
    known: PublicProblem,
    bound: FloatArray,
    clip: FloatArray,
    grid: NoisyGrid,
    radius: float,
) -> Bound | None:
    """Theorems G5 and G6 of docs/guarantees/utility.md; as an order only, where the run is not that of a theorem."""
    if solver.step >= 2.0 or (solver.step > 1.0 and not solver.average):
        return None
    moved = coordinate_steps(solver, known, bound, clip, grid)
    curvature = bound / solver.step
    half_square = 0.5 * float(curvature.max()) * radius**2
    gap = start_gap(known, float((clip**2).sum() ** 0.5), radius)
    convexity = float((known.penalty_terms.l2 / curvature).min())
    value = gap_after_loops(moved, plan.settings, solver.average, half_square, gap, convexity)
    if math.isinf(value):
        return None
    proved = plan.settings.sampling != "cyclic" and plan.settings.screening is None
    told = ["no entry of a row's gradient is larger than its threshold, where it would be clipped"]
    if not proved:
        told.append('proved for random coordinates (sampling="uniform") without screening; here they are taken as such')
    return Bound(
        value,
        "expected excess of the objective",
        "docs/guarantees/utility.md, theorems G5 and G6, after Mangold's thesis (A.3.28)",
        proved,
        (*told, *assumptions_of(plan)),
        {"steps": float(plan.settings.steps)},
    )
