"""With an infinite budget no noise is added: run until a certificate says that the optimum is reached."""

from __future__ import annotations

from typing import TYPE_CHECKING

from discreet._common.types import FloatArray
from discreet.problem.scaled_problem import ScaledProblem
from discreet.solvers.base import Run

if TYPE_CHECKING:
    pass


NOISELESS_TOLERANCE = 1e-9


NOISELESS_STEPS = 50_000


def until_optimal(scaled: ScaledProblem, run: Run) -> tuple[FloatArray, int]:
    """Without noise there is nothing to ration: momentum steps until the certificate is small."""
    from discreet.problem.optimum import accelerated_steps

    done = 0
    w = scaled.start()
    for done, w in accelerated_steps(scaled, NOISELESS_TOLERANCE, NOISELESS_STEPS):
        run.report(done, NOISELESS_STEPS, scaled, w)
    return w, done
