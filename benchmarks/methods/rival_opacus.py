"""Opacus: private stochastic gradient descent on a linear model in PyTorch."""

from framework import Method
from rivals.judge import scored_by
from rivals.libraries import opacus

method = Method(
    "Opacus",
    "version 1.6.0, a linear model, fixed settings, in its own environment; told the ranges",
    scored_by(opacus, "opacus"),
    experiments=("scoreboard", "generality"),
    version=2,
    style={"color": "tab:purple", "marker": "*"},
)
