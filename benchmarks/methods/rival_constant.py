"""A private constant on which the whole budget is spent: what any model should beat; and one without privacy."""

from framework import Method
from rivals import constants
from rivals.judge import scored_by

constant = Method(
    "private constant",
    "the mean or the share of label 1, with the whole budget; told the range of the target",
    scored_by(constants.scores),
    experiments=("scoreboard",),
    style={"color": "black", "ls": ":", "marker": "."},
)
without = Method(
    "constant without privacy",
    "the mean or the share of label 1 as it is",
    scored_by(constants.without_privacy),
    experiments=("generality",),
    grid={"epsilon": ()},  # it has none, and is run once
)
