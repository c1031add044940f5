"""DP-EBM: private boosting of one curve for each column, which is more than a linear model."""

from framework import Method
from rivals.judge import scored_by
from rivals.libraries import dp_ebm

method = Method(
    "DP-EBM",
    "interpret-core 0.7.8, its own defaults, in its own environment; told the ranges",
    scored_by(dp_ebm, "interpret"),
    experiments=("scoreboard",),
    style={"color": "tab:orange", "marker": "P"},
)
