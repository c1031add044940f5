"""DP-GCD: greedy coordinate descent by the rules of the thesis, by our signed scores, and with the printed noise."""

from __future__ import annotations

import functools

import numpy as np
from framework import Method
from framework.private_runs import fit, numbers_of

from discreet.solvers import GreedyCoordinateDescent

GRID = {"passes": (1, 2, 4, 7, 10, 15, 20), "step": tuple(np.logspace(-2, 1, 10))}


def run(problem, setting, seed, rule="gs-r", signed=False, calibration="certified"):
    """A pass is one step. `least_entry=0` moves every chosen coordinate, as the thesis does."""
    solver = GreedyCoordinateDescent(
        steps=setting["passes"],
        step=setting["step"],
        clip=setting["clip"],
        rule=rule,
        signed=signed,
        selection="laplace" if calibration == "paper" else "gumbel",
        least_entry=0.0,
        smoothness=tuple(float(m) for m in problem.smoothness),
    )
    traced = setting.get("traced", False)
    return numbers_of(problem, lambda: fit(problem, solver, seed, calibration=calibration, traced=traced), traced)


def of_rule(rule, colour):
    return Method(
        f"dp-gcd, {rule}",
        f"greedy coordinate descent by {rule}",
        functools.partial(run, rule=rule),
        experiments=("greedy",),
        grid=GRID | {"passes": (1, 2, 4, 10)},
        refuses=lambda problem: None if problem.problem.penalty.penalty_terms(1).l1.any() else "as gs-r without L1",
        style={"color": colour, "marker": "v", "ls": "-.", "label": f"DP-GCD, {rule}"},
    )


dp_gcd = Method(
    "dp-gcd",
    "greedy coordinate descent by gs-r, as in the thesis's figures, with correct noise",
    run,
    experiments=("greedy",),
    grid=GRID,
    style={"color": "#2ca02c", "marker": "D", "label": "DP-GCD (gs-r)"},
)
rules = [of_rule("gs-s", "#8c564b"), of_rule("gs-q", "#17becf")]
dp_gcd_signed = Method(
    "dp-gcd-signed",
    "greedy coordinate descent by signed scores, this library's default",
    functools.partial(run, rule="gs-s", signed=True),
    experiments=("greedy",),
    grid=GRID,
    style={"color": "#9467bd", "marker": "X", "label": "DP-GCD, signed scores (ours)"},
)
dp_gcd_claimed = Method(
    "dp-gcd-claimed",
    "gs-r with the thesis's noise (B.1.1), which is too small: claimed, not certified",
    functools.partial(run, calibration="paper"),
    experiments=("greedy",),
    grid=GRID,
    style={"color": "#2ca02c", "marker": "D", "ls": ":", "mfc": "none", "label": "DP-GCD, claimed, not certified"},
)
