"""Epsilon is infinite: no noise is added, and a solver runs its own steps until a certificate says "optimal".

Steps that converge slowly, by nature or on a badly conditioned table, are cut off after a fixed amount of work, and
accelerated gradient steps finish from the point that they have reached.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from discreet._common.types import FloatArray
from discreet.problem.certificate import curvature, is_optimal
from discreet.problem.fista import accelerated_steps, largest_curvature
from discreet.problem.optimum import LARGEST_NEWTON, is_smooth, lbfgs, newton
from discreet.problem.scaled_problem import BlockwiseProblem, ScaledProblem
from discreet.solvers.base import Run

TOLERANCE = 1e-9  # of the certificate at which a run without noise ends
FEWEST_STEPS, MOST_STEPS = 200, 2_000  # own steps
ENTRIES_READ = 2e9  # of the table, by all own steps together: a few seconds
MOST_FINAL_STEPS = 50_000  # after which the run ends anyhow
DIVERGED = 1e6  # in units of the objective at the start; steps that got so far do not come back
LOOK_EVERY = 20  # steps between two looks at the certificate, which costs about as much as a few gradients


def until_optimal(
    scaled: BlockwiseProblem,
    run: Run,
    own_steps: Iterable[FloatArray],
    every: int = LOOK_EVERY,
    most: int | None = None,
    bound: FloatArray | None = None,
) -> tuple[FloatArray, int]:
    """The optimum, by the solver's own steps as far as they get in `most` steps, and the number of steps. Not private.

    Parameters
    ----------
    own_steps : iterable of arrays
        The weights after each step of the solver.
    every : int
        How many steps lie between two looks at the certificate.
    most : int, optional
        The number of own steps after which accelerated ones take over; by default as many as a few seconds allow,
        which for small tables is enough for all methods with a linear rate of convergence.
    bound : array, optional
        Coordinate-wise smoothness constants, where the solver has them.
    """
    if scaled.problem.loss.log_link and is_smooth(scaled):
        return smooth_optimum(scaled, run), 1
    bound = curvature(scaled) if bound is None else bound
    most = affordable_steps(scaled) if most is None else most
    w, done, optimal = stop_at_optimum(scaled, run, own_steps, every, most, bound)
    if optimal:
        return w, done
    start = w if scaled.value(w) <= scaled.value(scaled.start()) else scaled.start()  # false also for NaN
    steps = accelerated_steps(scaled, start, 1.0 / largest_curvature(scaled))
    w, more, _ = stop_at_optimum(scaled, run, steps, LOOK_EVERY, MOST_FINAL_STEPS, bound)
    return w, done + more


def smooth_optimum(scaled: BlockwiseProblem, run: Run) -> FloatArray:
    """The optimum of a loss whose curvature grows exponentially, for which no single step length is good."""
    if isinstance(scaled, ScaledProblem) and scaled.columns <= LARGEST_NEWTON:
        w = newton(scaled, TOLERANCE)
    else:
        w = lbfgs(scaled)
    run.report(1, 1, scaled, w)
    return w


def stop_at_optimum(
    scaled: BlockwiseProblem, run: Run, iterates: Iterable[FloatArray], every: int, most: int, bound: FloatArray
) -> tuple[FloatArray, int, bool]:
    """The first iterate, of every so many, with a small certificate, its number, and whether there was one."""
    w, done = scaled.start(), 0
    limit = DIVERGED * max(scaled.value(w), 1.0)
    for done, w in enumerate(islice(iterates, most), start=1):
        run.report(done, most, scaled, w)
        if done % every == 0:
            if not scaled.value(w) <= limit:  # true also for NaN
                return w, done, False
            if is_optimal(scaled, w, TOLERANCE, bound):
                return w, done, True
    return w, done, done % every != 0 and is_optimal(scaled, w, TOLERANCE, bound)


def affordable_steps(scaled: BlockwiseProblem, passes: float = 1.0, most: int = MOST_STEPS) -> int:
    """How many steps take a few seconds, each of them making so many passes over the table."""
    steps = min(most, max(FEWEST_STEPS, ENTRIES_READ / max(1, scaled.rows * scaled.columns)))
    return max(1, round(steps / passes))
