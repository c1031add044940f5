"""The solvers, in teaching order. To add one: a file, a row in this table, a page in docs/guarantees/.

`FixedPoint` is not in the table: it is the iteration that several of them share, for operators of the user's own.
"""

from discreet.solvers.accelerated_gradient_descent import AcceleratedGradientDescent
from discreet.solvers.admm.solver import ADMM
from discreet.solvers.base import Plan, Solution, Solver
from discreet.solvers.bolt_on import BoltOn
from discreet.solvers.coordinate_descent.solver import CoordinateDescent
from discreet.solvers.dual_coordinate_descent import DualCoordinateDescent
from discreet.solvers.exponential.solver import ExponentialMechanism
from discreet.solvers.fixed_point.iteration import FixedPoint
from discreet.solvers.frank_wolfe.solver import FrankWolfe
from discreet.solvers.ftrl.solver import FTRL
from discreet.solvers.gradient_descent import GradientDescent
from discreet.solvers.greedy_coordinate_descent.solver import GreedyCoordinateDescent
from discreet.solvers.mirror_descent import MirrorDescent
from discreet.solvers.newton import Newton
from discreet.solvers.objective_perturbation import ObjectivePerturbation
from discreet.solvers.output_perturbation import OutputPerturbation
from discreet.solvers.screened.solver import Screened
from discreet.solvers.sketched.solver import SketchedDescent
from discreet.solvers.stochastic_gradient import StochasticGradientDescent
from discreet.solvers.sufficient_statistics import SufficientStatistics
from discreet.solvers.svrg import SVRG

SOLVERS: dict[str, type[Solver]] = {
    "cd": CoordinateDescent,
    "greedy-cd": GreedyCoordinateDescent,
    "screened": Screened,
    "sketched": SketchedDescent,
    "gd": GradientDescent,
    "accelerated-gd": AcceleratedGradientDescent,
    "admm": ADMM,
    "sgd": StochasticGradientDescent,
    "svrg": SVRG,
    "dual-cd": DualCoordinateDescent,
    "ftrl": FTRL,
    "frank-wolfe": FrankWolfe,
    "mirror-descent": MirrorDescent,
    "bolt-on": BoltOn,
    "exponential": ExponentialMechanism,
    "output-perturbation": OutputPerturbation,
    "objective-perturbation": ObjectivePerturbation,
    "newton": Newton,
    "sufficient-statistics": SufficientStatistics,
}

__all__ = [
    "ADMM",
    "FTRL",
    "SOLVERS",
    "SVRG",
    "AcceleratedGradientDescent",
    "BoltOn",
    "CoordinateDescent",
    "DualCoordinateDescent",
    "ExponentialMechanism",
    "FixedPoint",
    "FrankWolfe",
    "GradientDescent",
    "GreedyCoordinateDescent",
    "MirrorDescent",
    "Newton",
    "ObjectivePerturbation",
    "OutputPerturbation",
    "Plan",
    "Screened",
    "SketchedDescent",
    "Solution",
    "Solver",
    "StochasticGradientDescent",
    "SufficientStatistics",
]
