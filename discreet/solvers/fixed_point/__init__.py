"""Noisy fixed-point iterations, the general method behind `gd`, `cd` and `admm`: docs/guarantees/fixed-point.md."""

from discreet.solvers.fixed_point.iteration import FixedPoint
from discreet.solvers.fixed_point.operators import (
    Composition,
    NonExpansive,
    Operator,
    Reflection,
    Relaxation,
)
from discreet.solvers.fixed_point.plan import FixedPointResult, contraction_of, releases_of
from discreet.solvers.fixed_point.queries import clipped_rows
from discreet.solvers.fixed_point.steps import (
    GradientStep,
    Projection,
    ProximalStep,
    douglas_rachford,
    forward_backward,
)

__all__ = [
    "Composition",
    "FixedPoint",
    "FixedPointResult",
    "GradientStep",
    "NonExpansive",
    "Operator",
    "Projection",
    "ProximalStep",
    "Reflection",
    "Relaxation",
    "clipped_rows",
    "contraction_of",
    "douglas_rachford",
    "forward_backward",
    "releases_of",
]
