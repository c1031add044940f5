"""What is minimised: a loss, a penalty, a set, and the optimum without privacy."""

from discreet.problem.constraints import Box, Constraint, L1Ball, L2Ball, Simplex
from discreet.problem.coupled_penalties import CoupledPenalty, GroupL2, TotalVariation
from discreet.problem.directional_l2 import DirectionalL2
from discreet.problem.losses import (
    ClassWeighted,
    Gamma,
    Huber,
    Logistic,
    Loss,
    Multinomial,
    OneVsRest,
    Poisson,
    SmoothedHinge,
    Squared,
)
from discreet.problem.penalties import L1, L2, ElasticNet, Penalty, Zero
from discreet.problem.problem import Problem

__all__ = [
    "L1",
    "L2",
    "Box",
    "ClassWeighted",
    "Constraint",
    "CoupledPenalty",
    "DirectionalL2",
    "ElasticNet",
    "Gamma",
    "GroupL2",
    "Huber",
    "L1Ball",
    "L2Ball",
    "Logistic",
    "Loss",
    "Multinomial",
    "OneVsRest",
    "Penalty",
    "Poisson",
    "Problem",
    "Simplex",
    "SmoothedHinge",
    "Squared",
    "TotalVariation",
    "Zero",
]
