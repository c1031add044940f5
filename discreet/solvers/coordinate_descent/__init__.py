"""DP-CD: proximal coordinate descent with noisy, clipped coordinate gradients."""

from discreet.solvers.coordinate_descent.solver import CoordinateDescent

__all__ = ["CoordinateDescent"]
