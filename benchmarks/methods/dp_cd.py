"""DP-CD: proximal coordinate descent with the exact smoothness constants, as in the paper, and with private ones."""

from __future__ import annotations

import numpy as np
from framework import Method
from framework.private_runs import fit, numbers_of, target_bounds

from discreet.solvers import CoordinateDescent

STEPS = tuple(np.logspace(-2, 1, 10))
AS_PRINTED = {"average": False, "outer": 1, "sampling": "uniform"}  # a single loop, the last iterate


def run(problem, setting, seed):
    known = tuple(float(m) for m in problem.smoothness)
    solver = CoordinateDescent(
        passes=setting["passes"], step=setting["step"], clip=setting["clip"], smoothness=known, **AS_PRINTED
    )
    traced = setting.get("traced", False)
    return numbers_of(problem, lambda: fit(problem, solver, seed, traced=traced), traced)


def run_private(problem, setting, seed):
    """Scales are learned with a tenth of the budget, inside twice the largest entry of each column."""
    solver = CoordinateDescent(
        passes=setting["passes"], step=setting["step"], clip=setting["clip"], scale_share=0.1, **AS_PRINTED
    )
    limits = 2.0 * np.abs(problem.X).max(axis=0)
    declared = {"bounds": (-limits, limits), "y_bounds": target_bounds(problem)}
    traced = setting.get("traced", False)
    return numbers_of(problem, lambda: fit(problem, solver, seed, traced=traced, **declared), traced)


dp_cd = Method(
    "dp-cd",
    "coordinate descent; smoothness constants given, as in the paper",
    run,
    experiments=("table2", "table3", "greedy"),
    grid={"step": STEPS},
    style={"color": "#1f77b4", "marker": "o", "label": "DP-CD"},
)

dp_cd_p = Method(
    "dp-cd-p",
    "coordinate descent; scales of the columns learned with a tenth of the budget",
    run_private,
    experiments=("table2",),
    grid={"step": STEPS},
    refuses=lambda problem: "only shown where columns are uneven" if problem.name.endswith(("ised", "lasso")) else None,
    style={"color": "#2ca02c", "marker": "P", "label": "DP-CD, private scales"},
)
