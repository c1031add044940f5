"""DP-SkGD: descent on random sets of coordinates, by the law of the sets and their mean size."""

from __future__ import annotations

import functools

import numpy as np
from framework import Method
from framework.private_runs import fit, numbers_of

from discreet.solvers import SketchedDescent

LAWS = {
    "nice": ("all sets of a size alike", "#1f77b4", "o"),
    "independent": ("every coordinate by its own coin", "#ff7f0e", "s"),
    "blocks": ("one block of a fixed partition", "#2ca02c", "D"),
    "importance": ("one coordinate, in proportion to its smoothness", "#d62728", "X"),
}


def run(problem, setting, seed, law):
    """The step is in units of the longest one that is safe for the sketch."""
    size, columns = setting["size"], problem.columns
    blocks = tuple(tuple(range(j, min(j + size, columns))) for j in range(0, columns, size))
    of_law = {"blocks": {"blocks": blocks}, "importance": {}}.get(law, {"size": size})
    solver = SketchedDescent(
        sketch=law,
        passes=setting["passes"],
        step=setting["step"],
        clip=setting["clip"],
        smoothness=tuple(float(m) for m in problem.smoothness),
        average=False,
        outer=1,
        **of_law,
    )
    traced = setting.get("traced", False)
    return numbers_of(problem, lambda: fit(problem, solver, seed, traced=traced), traced)


sketched = [
    Method(
        f"dp-skgd, {law}",
        f"descent on random sets of coordinates: {about}",
        functools.partial(run, law=law),
        experiments=("sketched",),
        grid={"step": tuple(np.logspace(-1, 0.6, 6))},
        style={"color": colour, "marker": marker, "label": law},
    )
    for law, (about, colour, marker) in LAWS.items()
]
