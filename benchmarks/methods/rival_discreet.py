"""This library: what it does by itself, the same with the ranges that all rivals are told, and plain gradients."""

import functools

from framework import Method
from rivals import ours
from rivals.judge import scored_by

methods = (
    Method(
        "discreet",
        'solver="auto", nothing declared: ranges are learned within the budget',
        scored_by(ours.scores),
        experiments=("scoreboard",),
        style={"color": "tab:blue", "marker": "o", "lw": 2.5},
    ),
    Method(
        "discreet, told",
        'solver="auto" with the true ranges as declared bounds, as all rivals are told them',
        scored_by(functools.partial(ours.scores, told=True)),
        experiments=("scoreboard",),
        style={"color": "tab:cyan", "marker": "o", "lw": 2.5},
    ),
    Method(
        "discreet, gd, told",
        'solver="gd", the counterpart of Opacus in this library, with the true ranges as declared bounds',
        scored_by(functools.partial(ours.scores, solver="gd", told=True)),
        experiments=("scoreboard",),
        style={"color": "navy", "marker": "o", "ls": "--"},
    ),
)
