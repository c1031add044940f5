"""Noisy fixed-point iterations, the general method behind `gd`, `cd` and `admm`: docs/guarantees/fixed-point.md."""

from discreet.solvers.fixed_point.iteration import FixedPoint
from discreet.solvers.fixed_point.operators import (
    Composition,
    NonExpansive,
    Operator,
    Reflection,
    Relaxation,
)
from discreet.solvers.fixed_point.plan import FixedPointNoise, FixedPointResult
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
    "FixedPointNoise",
    "FixedPointResult",
    "GradientStep",
    "NonExpansive",
    "Operator",
    "Projection",
    "ProximalStep",
    "Reflection",
    "Relaxation",
    "clipped_rows",
    "douglas_rachford",
    "forward_backward",
]
