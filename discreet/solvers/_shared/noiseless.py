"""Epsilon is infinite: no noise is added, and a solver runs until a certificate says that it is at the optimum."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from discreet._common.types import FloatArray
from discreet.problem.blockwise import BlockwiseProblem
from discreet.problem.certificate import curvature, is_optimal
from discreet.problem.fista import accelerated_steps, largest_curvature
from discreet.solvers.base import Run

TOLERANCE = 1e-9
MOST_STEPS = 50_000


def stop_at_optimum(
    scaled: BlockwiseProblem,
    run: Run,
    iterates: Iterable[FloatArray],
    every: int = 20,
    most: int = MOST_STEPS,
    bound: FloatArray | None = None,
) -> tuple[FloatArray, int]:
    """The first iterate, of every so many, whose certificate is small, and its number. Not private.

    Parameters
    ----------
    iterates : iterable of arrays
        The weights after each step of the solver.
    every : int
        How many steps lie between two looks at the certificate, which costs about as much as a few gradients.
    most : int
        The number of steps after which the last iterate is taken as it is.
    bound : array, optional
        Coordinate-wise smoothness constants, where the solver has them.
    """
    bound = curvature(scaled) if bound is None else bound
    w, done = scaled.start(), 0
    for done, w in enumerate(islice(iterates, most), start=1):
        run.report(done, most, scaled, w)
        if done % every == 0 and is_optimal(scaled, w, TOLERANCE, bound):
            break
    return w, done


def until_optimal(scaled: BlockwiseProblem, run: Run) -> tuple[FloatArray, int]:
    """Accelerated gradient steps until the optimum is reached."""
    steps = accelerated_steps(scaled, scaled.start(), 1.0 / largest_curvature(scaled))
    return stop_at_optimum(scaled, run, steps)
