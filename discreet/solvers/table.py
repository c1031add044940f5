"""The solvers by name, in teaching order.

How to add one: CONTRIBUTING.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from discreet._common.lazy import LazyTable

if TYPE_CHECKING:
    from discreet.solvers.base import Solver

SOLVERS: Mapping[str, type[Solver]] = LazyTable(
    "discreet.solvers",
    {
        "cd": "CoordinateDescent",
        "greedy-cd": "GreedyCoordinateDescent",
        "screened": "Screened",
        "sketched": "SketchedDescent",
        "gd": "GradientDescent",
        "accelerated-gd": "AcceleratedGradientDescent",
        "admm": "ADMM",
        "sgd": "StochasticGradientDescent",
        "svrg": "SVRG",
        "dual-cd": "DualCoordinateDescent",
        "ftrl": "FTRL",
        "frank-wolfe": "FrankWolfe",
        "mirror-descent": "MirrorDescent",
        "bolt-on": "BoltOn",
        "exponential": "ExponentialMechanism",
        "output-perturbation": "OutputPerturbation",
        "objective-perturbation": "ObjectivePerturbation",
        "newton": "Newton",
        "adaptive": "AdaptiveDescent",
        "sufficient-statistics": "SufficientStatistics",
    },
)
