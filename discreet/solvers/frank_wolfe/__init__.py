"""DP Frank-Wolfe: at every step a vertex of the set is chosen privately and the weights move towards it."""

from discreet.solvers.frank_wolfe.solver import FrankWolfe

__all__ = ["FrankWolfe"]
