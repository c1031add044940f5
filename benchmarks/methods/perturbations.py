"""Output and objective perturbation, untuned; the first also with the noise of Theorem 3.2.1, half of what it needs.

The columns lie in [-1, 1], which is taken to be known.
"""

from __future__ import annotations

import functools

from framework import Method
from framework.private_runs import fit, numbers_of

from discreet.solvers import ObjectivePerturbation, OutputPerturbation

BOUND = 1.0
RIDGE = 0.01  # none beside the penalty of the problem, as the theorem has it


def run(problem, setting, seed, solver, calibration="certified"):
    declared = {"bounds": (-BOUND, BOUND), "epsilon": setting["epsilon"], "calibration": calibration}
    return numbers_of(problem, lambda: fit(problem, solver, seed, **declared))


output = Method(
    "output-perturbation",
    "noise on the minimiser",
    functools.partial(run, solver=OutputPerturbation(ridge=RIDGE, scale_share=0.0)),
    experiments=("perturbation",),
    style={"color": "#1f77b4", "marker": "o", "label": "output perturbation"},
)
output_claimed = Method(
    "output-perturbation-claimed",
    "the same with the noise of Theorem 3.2.1, half of what is needed: claimed, not certified",
    functools.partial(run, solver=OutputPerturbation(ridge=RIDGE, scale_share=0.0), calibration="paper"),
    experiments=("perturbation",),
    style={"color": "#1f77b4", "marker": "o", "ls": ":", "mfc": "none", "label": "output, claimed, not certified"},
)
objective = Method(
    "objective-perturbation",
    "a random linear term in the objective",
    functools.partial(run, solver=ObjectivePerturbation(scale_share=0.0)),
    experiments=("perturbation",),
    style={"color": "#d62728", "marker": "s", "label": "objective perturbation"},
)
