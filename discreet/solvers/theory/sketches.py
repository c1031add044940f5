"""What is proved of descent on random sets of coordinates: docs/guarantees/utility.md, theorem G6."""

from __future__ import annotations

import math

import numpy as np

from discreet._common.types import FloatArray
from discreet.solvers.sketched.sketches import Independent, Nice, Partition, Sketch
from discreet.solvers.sketched.solver import SketchedDescent, SketchedPlan
from discreet.solvers.theory.assumptions import assumptions_of
from discreet.solvers.theory.coordinates import gap_after_loops
from discreet.solvers.theory.lookup import bound_of
from discreet.solvers.theory.public_problem import planned_problem, start_gap
from discreet.theory.bound import Bound
from discreet.theory.steps import NoisyCoordinateSteps


@bound_of.register(SketchedDescent)
def _(solver: SketchedDescent, plan: SketchedPlan, radius: float) -> Bound | None:
    """As an order only, where the run is not the one of the theorem."""
    known = planned_problem(plan)
    sizes = solver.sizes(known, plan)
    if sizes.step >= 2.0 or (sizes.step > 1.0 and not solver.average):
        return None
    chances, clip = sizes.sketch.probabilities(), sizes.clip
    curvature, l2 = sizes.curvature / sizes.step, known.penalty_terms.l2
    squares = _squared_units(solver.noise, sizes.sketch, clip) * (sizes.grid.scale / known.rows) ** 2
    least = float(chances.min())
    moved = NoisyCoordinateSteps(
        least,
        float((chances / least * squares / (curvature + l2)).sum()),
        float((l2 / (curvature + l2)).min()),
        length=max(1.0, sizes.step),
    )
    half_square = 0.5 * float(curvature.max()) * radius**2
    gap = start_gap(known, float(np.linalg.norm(clip)), radius)
    convexity = float((l2 / curvature).min())
    value = gap_after_loops(moved, plan.settings, solver.average, half_square, gap, convexity)
    if math.isinf(value):
        return None
    shape = solver.noise == "equalised" or _equal(clip) or not isinstance(sizes.sketch, Nice)
    proved = _equal(chances) and not isinstance(sizes.sketch, Independent) and shape
    told = ["no row's gradient in a set is larger than its limit, where it would be clipped"]
    if not proved:
        told.append("proved for sets of one size, all equally likely, and noise in proportion to the thresholds")
    source = "docs/guarantees/utility.md, theorem G6"
    settings = {"steps": float(plan.settings.steps)}
    quantity = "expected excess of the objective"
    return Bound(value, quantity, source, proved, (*told, *assumptions_of(plan)), settings)


def _equal(values: FloatArray) -> bool:
    return bool(np.ptp(values) <= 1e-12 * values.max())


def _squared_units(noise: str, sketch: Sketch, clip: FloatArray) -> FloatArray:
    """The expected square of the unit of the noise of each coordinate, in a set that holds it."""
    squares = clip**2
    if isinstance(sketch, Partition):
        totals, counts = np.empty_like(squares), np.empty_like(squares)
        for block in map(list, sketch.blocks):
            totals[block], counts[block] = squares[block].sum(), len(block)
    else:
        # Of the other coordinates, as many as a set has beside this one.
        others = sketch.size - 1.0 if isinstance(sketch, Nice | Independent) else 0.0
        part = min(1.0, others / max(1, clip.size - 1))
        totals, counts = squares + part * (squares.sum() - squares), np.full_like(squares, 1.0 + others)
    return counts * squares if noise == "equalised" else totals
