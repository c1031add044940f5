"""diffprivlib: objective perturbation for labels, the functional mechanism for numbers; its defaults."""

from framework import Method
from rivals.judge import scored_by
from rivals.libraries import diffprivlib

method = Method(
    "diffprivlib",
    "version 0.6.6, its own defaults, in its own environment; told the ranges",
    scored_by(diffprivlib, "diffprivlib"),
    experiments=("scoreboard", "generality"),
    style={"color": "tab:red", "marker": "x"},
)
