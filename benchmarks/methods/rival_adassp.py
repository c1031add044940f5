"""AdaSSP (Wang, 2018): least squares from noisy sufficient statistics; labels count as -1 and 1."""

from framework import Method
from rivals import adassp
from rivals.judge import scored_by

method = Method(
    "AdaSSP",
    "own code with exactly calibrated Gaussian noise for replaced rows; told the ranges",
    scored_by(adassp.scores),
    experiments=("scoreboard", "generality"),
    style={"color": "tab:green", "marker": "^"},
)
