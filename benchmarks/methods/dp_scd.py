"""DP-SCD: dual coordinate descent (Damaskinos et al.), for L2 penalties.

It has no step size; what is tuned in its place is the weight of the pull towards an earlier iterate, in units of beta,
which conditions the dual problem: with the weak penalty alone it would hardly move.
"""

from __future__ import annotations

import numpy as np
from framework import Method
from framework.private_runs import common_bounds, fit, numbers_of

from discreet.solvers import DualCoordinateDescent


def run(problem, setting, seed):
    """The clip is for raw gradients; the solver takes it, and its unit of the pull, in columns divided by `largest`."""
    bound = problem.problem.loss.smoothness * problem.columns * problem.largest**2
    solver = DualCoordinateDescent(
        passes=setting["passes"],
        clip=setting["clip"] / problem.largest,
        proximity=setting["step"] * problem.beta / bound,
        average=False,
        scale_share=0.0,
    )
    traced, declared = setting.get("traced", False), common_bounds(problem)
    return numbers_of(problem, lambda: fit(problem, solver, seed, traced=traced, **declared), traced)


dp_scd = Method(
    "dp-scd",
    "dual coordinate descent on Poisson batches",
    run,
    experiments=("table2",),
    grid={"step": tuple(np.logspace(-4, 1, 6))},
    refuses=lambda problem: None if problem.problem.penalty.strong_convexity > 0.0 else "needs an L2 penalty",
    style={"color": "#d62728", "marker": "s", "label": "DP-SCD"},
    version=2,
)
