"""BoostedAdaSSP (Tang et al., 2023): AdaSSP, which then fits the clipped residuals again, ten times."""

import functools

from framework import Method
from rivals import adassp
from rivals.judge import scored_by

method = Method(
    "BoostedAdaSSP",
    "own code with exactly calibrated Gaussian noise for replaced rows; told the ranges",
    scored_by(functools.partial(adassp.scores, rounds=adassp.BOOSTING_ROUNDS)),
    experiments=("scoreboard", "generality"),
    style={"color": "tab:olive", "marker": "v"},
)
