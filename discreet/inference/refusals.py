"""Where no interval is given: what released numbers say after a fit. No setting overrides it: docs/inference.md."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from discreet._common.text import one_line
from discreet.inference.covariance import shrunk_meat
from discreet.problem.losses import Squared
from discreet.scaling.second_moment import noise_edge

if TYPE_CHECKING:
    from discreet.inference.estimate import OneStepEstimate
    from discreet.inference.released import InferenceReleases
    from discreet.problem.column_scaling import ColumnScaling
    from discreet.problem.losses import Loss

MOST_NOISE = 2.0  # edge of the noise of the Hessian over its least eigenvalue: docs/inference.md has the measurements
LONGEST_STEP = 0.3  # from the iterates to the estimate, in the norm of the Hessian: beyond it is no quadratic
LONGEST_LINEAR_STEP = 1.0  # the same in deviations of the residuals: thresholds were learned for the iterates'


def why_refused(
    released: InferenceReleases, found: OneStepEstimate, loss: Loss, scaling: ColumnScaling, names: Sequence[str]
) -> tuple[str, ...]:
    """Why no interval is given, one sentence each; empty if one is."""
    if scaling.frozen.any():
        lost = np.flatnonzero(scaling.frozen)
        which = one_line(names[lost[0]], longest=40) + (f" and {lost.size - 1} more" if lost.size > 1 else "")
        return (
            f"No interval can be given: column {which} could not be told from noise; declare bounds, or leave it out.",
        )
    if scaling.target_low == scaling.target_high:
        return ("No interval can be given: the target could not be told from noise; declare y_bounds.",)
    reasons = []
    least = float(np.linalg.eigvalsh(found.hessian)[0])
    edge = noise_edge(found.w.size, found.deviation)
    if not edge <= MOST_NOISE * least:
        times = f"{edge / least:.1f} times as large" if least > 0.0 else "larger"
        reasons.append(
            "No interval can be given: the columns are too correlated for the noise, which is "
            f"{times} as what tells them apart at the weakest; use more rows, more epsilon or fewer columns."
        )
    if not found.length <= longest_step(released, found, loss):
        reasons.append(
            "No interval can be given: the steps ended far from the optimum without a penalty; use a smaller alpha, "
            "more rows or more epsilon."
        )
    return tuple(reasons)


def longest_step(released: InferenceReleases, found: OneStepEstimate, loss: Loss) -> float:
    """How long the last step may be, in the norm of the Hessian."""
    if not isinstance(loss, Squared):
        return LONGEST_STEP
    residual = float(np.trace(shrunk_meat(released, found))) / max(float(np.trace(found.hessian)), 1e-300)
    return LONGEST_LINEAR_STEP * math.sqrt(max(residual, 0.0))
