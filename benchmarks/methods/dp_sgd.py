"""DP-SGD with one uniformly drawn row a step, as in the papers: with the noise that this needs, and with theirs."""

from __future__ import annotations

import functools

import numpy as np
from framework import Method
from framework.private_runs import common_bounds, fit, numbers_of

from discreet.solvers import StochasticGradientDescent

STEPS = tuple(np.logspace(-6, 0, 10))
PASSES = (0.01, 0.1, 1, 5, 20)  # of the nine in Table D.3 of the thesis


def run(problem, setting, seed, calibration="certified"):
    """`step` is in units of 1/beta and `clip` of raw gradients; the solver takes both in columns divided by `largest`.

    Its own unit of the step is one over the trace bound of the curvature in those columns, c * p.
    """
    bound = problem.problem.loss.smoothness * problem.columns  # of columns in [-1, 1]
    solver = StochasticGradientDescent(
        passes=setting["passes"],
        sampler="single",
        step=setting["step"] / problem.beta * problem.largest**2 * bound,
        clip=setting["clip"] / problem.largest,
        average=False,
        scale_share=0.0,
    )
    traced, declared = setting.get("traced", False), common_bounds(problem)
    make = functools.partial(fit, problem, solver, seed, calibration=calibration, traced=traced, **declared)
    return numbers_of(problem, make, traced)


dp_sgd = Method(
    "dp-sgd",
    "stochastic gradient descent on single rows, with the noise that they need",
    run,
    experiments=("table2", "table3", "greedy"),
    grid={"passes": PASSES, "step": STEPS},
    style={"color": "#ff7f0e", "marker": "^", "label": "DP-SGD"},
    dear=True,
)

dp_sgd_claimed = Method(
    "dp-sgd-claimed",
    "the same with the papers' noise, which is too small: claimed, not certified",
    functools.partial(run, calibration="paper"),
    experiments=("table2", "greedy"),
    grid={"passes": PASSES, "step": STEPS},
    style={"color": "#ff7f0e", "marker": "^", "ls": ":", "mfc": "none", "label": "DP-SGD, claimed, not certified"},
    dear=True,
    version=2,
)


def run_batches(problem, setting, seed):
    """Poisson batches of n/20 rows: what a user of this library would take."""
    bound = problem.problem.loss.smoothness * problem.columns
    solver = StochasticGradientDescent(
        passes=setting["passes"],
        batch_size=max(1, problem.rows // 20),
        step=setting["step"] / problem.beta * problem.largest**2 * bound,
        clip=setting["clip"] / problem.largest,
        average=False,
        scale_share=0.0,
    )
    traced, declared = setting.get("traced", False), common_bounds(problem)
    return numbers_of(problem, lambda: fit(problem, solver, seed, traced=traced, **declared), traced)


dp_sgd_batches = Method(
    "dp-sgd-poisson",
    "stochastic gradient descent on Poisson batches of n/20 rows (not in the papers)",
    run_batches,
    experiments=("greedy",),
    grid={"passes": (0.1, 1, 5, 20), "step": tuple(np.logspace(-3, 1, 9))},
    style={"color": "#bcbd22", "marker": "<", "label": "DP-SGD, Poisson batches"},
)
