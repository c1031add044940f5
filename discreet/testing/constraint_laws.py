"""Laws of a closed convex set."""

from __future__ import annotations

import math

import numpy as np

from discreet._common.types import FloatArray
from discreet.problem.constraints import Constraint
from discreet.testing.laws import broken, skipped
from discreet.testing.tables import SIZE, points

SLACK = 1e-9


def projection_is_the_nearest_point(constraint: Constraint) -> None:
    """The projection p of v is in the set, and <v - p, z - p> <= 0 for every z in the set."""
    inside = _inside(constraint)
    for v in points():
        p = constraint.project(v)
        if not constraint.contains(p):
            broken(f"project({v}) is {p}, which is not in the set")
        for z in inside:
            size = float(np.linalg.norm(v - p) * np.linalg.norm(z - p))
            if not float((v - p) @ (z - p)) <= SLACK * (1.0 + size):
                broken(f"project({v}) is {p}, but the way towards {z} leads nearer")


def support_bounds_the_set(constraint: Constraint) -> None:
    """support(u) >= <u, z> for every z in the set."""
    for u in points():
        support = constraint.support(u)
        for z in _inside(constraint):
            if not support >= float(u @ z) - SLACK * (1.0 + abs(float(u @ z))):
                broken(f"support({u}) is {support!r}, less than <u, z> at {z}")


def oracle_attains_the_support(constraint: Constraint) -> None:
    """linear_oracle(g) is in the set, and <g, linear_oracle(g)> = -support(-g)."""
    _needs_bounded(constraint)
    for g in points():
        s = constraint.linear_oracle(g)
        wanted = -constraint.support(-g)
        if not constraint.contains(s) or not abs(float(g @ s) - wanted) <= SLACK * (1.0 + abs(wanted)):
            broken(f"linear_oracle({g}) is {s} with <g, s> = {float(g @ s)!r}; least on the set is {wanted!r}")


def diameter_is_the_largest_distance(constraint: Constraint) -> None:
    """No two points of the set lie further apart than `diameter`."""
    _needs_bounded(constraint)
    inside, diameter = _inside(constraint), constraint.diameter(SIZE)
    largest = max(float(np.linalg.norm(a - b)) for a in inside for b in inside)
    if not largest <= diameter * (1.0 + SLACK):
        broken(f"two points of the set are {largest!r} apart, but its diameter is {diameter!r}")


def extreme_numbers_give_no_nan(constraint: Constraint) -> None:
    """Points up to 1.7e308 have a projection in the set."""
    v = np.array([1e308, -1.7e308, 5e-324, 0.0])
    p = constraint.project(v)
    if not np.isfinite(p).all() or not constraint.contains(p):
        broken(f"project({v}) is {p}")


def start_is_feasible(constraint: Constraint) -> None:
    """Solvers start at a point of the set that depends on no data."""
    start = constraint.start(SIZE)
    if not constraint.contains(start):
        broken(f"start({SIZE}) is {start}, which is not in the set")


def _inside(constraint: Constraint) -> list[FloatArray]:
    """Points of the set: projections, and answers of the linear oracle where the set is bounded."""
    found = [constraint.project(v) for v in points()]
    if math.isfinite(constraint.diameter(SIZE)):
        found += [constraint.linear_oracle(g) for g in points()]
    return [z for z in found if constraint.contains(z)]


def _needs_bounded(constraint: Constraint) -> None:
    if not math.isfinite(constraint.diameter(SIZE)):
        skipped("the set is unbounded")
