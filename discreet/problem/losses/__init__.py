"""Losses: functions of a margin and a target, one number per row; no loss ever sees the features."""

from discreet.kernels.forms import CompiledForms
from discreet.problem.losses.classes import ClassWeighted, Multinomial, OneVsRest
from discreet.problem.losses.log_link import Gamma, Poisson
from discreet.problem.losses.scalar import Huber, Logistic, Loss, SmoothedHinge, Squared

__all__ = [
    "ClassWeighted",
    "CompiledForms",
    "Gamma",
    "Huber",
    "Logistic",
    "Loss",
    "Multinomial",
    "OneVsRest",
    "Poisson",
    "SmoothedHinge",
    "Squared",
]
