"""DP-GCD: at every step the coordinate that promises most is chosen privately and moved."""

from discreet.solvers.greedy_coordinate_descent.solver import GreedyCoordinateDescent

__all__ = ["GreedyCoordinateDescent"]
