"""The solvers, in teaching order. To add one: a file, a row in this table, a page in docs/guarantees/."""

from discreet.solvers.base import Plan, Solution, Solver
from discreet.solvers.coordinate_descent import CoordinateDescent
from discreet.solvers.gradient_descent import GradientDescent
from discreet.solvers.greedy_coordinate_descent import GreedyCoordinateDescent
from discreet.solvers.stochastic_gradient import StochasticGradientDescent

SOLVERS: dict[str, type[Solver]] = {
    "cd": CoordinateDescent,
    "greedy-cd": GreedyCoordinateDescent,
    "gd": GradientDescent,
    "sgd": StochasticGradientDescent,
}

__all__ = [
    "SOLVERS",
    "CoordinateDescent",
    "GradientDescent",
    "GreedyCoordinateDescent",
    "Plan",
    "Solution",
    "Solver",
    "StochasticGradientDescent",
]
