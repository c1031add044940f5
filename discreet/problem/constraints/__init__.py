"""Convex sets that the coefficients (never the intercept) may be confined to; an array is one long vector."""

from discreet.problem.constraints.balls import L1Ball, L2Ball
from discreet.problem.constraints.base import AxisPolytope, Constraint, SetAroundZero
from discreet.problem.constraints.box import Box
from discreet.problem.constraints.simplex import Simplex

CONSTRAINTS: dict[str, type[Constraint]] = {kind.name: kind for kind in (L1Ball, L2Ball, Box, Simplex)}

__all__ = ["AxisPolytope", "Box", "Constraint", "L1Ball", "L2Ball", "SetAroundZero", "Simplex"]
