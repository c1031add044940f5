"""What the descents share: public sizes of gradients, the loop that steps, reports and averages, runs without noise.

Thresholds at which gradients are clipped follow the noise. The noise level is a public fact, so a default that is tight
where noise is strong and that grows without bound as it vanishes costs nothing. The form is derived, the numbers are
tuned on public tables and are not theory (docs/defaults.md); no guarantee depends on them. Averaging the later iterates
averages their noise.

Where epsilon is infinite, no noise is added, and a solver runs its own steps until a certificate says "optimal". Steps
that converge slowly, by nature or on a badly conditioned table, are cut off after a fixed amount of work, and
accelerated gradient steps finish from the point that they have reached.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import NamedTuple

import numpy as np

from discreet._common.types import FloatArray
from discreet.problem.column_scaling import ColumnScaling
from discreet.problem.optimum import (
    LARGEST_NEWTON,
    accelerated_steps,
    curvature,
    is_optimal,
    is_smooth,
    largest_curvature,
    lbfgs,
    newton,
)
from discreet.problem.problem import Problem
from discreet.problem.scaled_problem import BlockwiseProblem, ScaledProblem
from discreet.solvers.base import Run
from discreet.solvers.plan import Plan


class NoiseRule(NamedTuple):
    """min(most, factor / noise^power): how many steps are made under this noise."""

    factor: float
    power: float
    most: float

    def at(self, relative_noise: float) -> float:
        """The default where a mean of numbers clipped to 1 is released with noise of this standard deviation."""
        return self.most if relative_noise == 0.0 else min(self.most, self.factor * relative_noise**-self.power)


QUIET = 0.25  # of the error of sampled rows: noise of this size adds a sixteenth to their variance


class ClippingRule(NamedTuple):
    """A clipping threshold, in units of a typical size, that grows without bound as the noise falls.

    Where noise is strong, factor / noise^power, which weighs it against what lies beyond the threshold. Where it is
    weaker than the error of sampled rows, nothing is gained by a bias: the threshold grows until its noise is a part
    `QUIET` of that error, at most to noise^(-1/4), so that noise and bias both vanish: docs/defaults.md.
    """

    factor: float
    power: float

    def at(self, noise: float, sampling: float = 0.0) -> float:
        """The threshold, for noise of this standard deviation on a mean of numbers clipped to 1.

        `sampling` is the error of that mean because rows are sampled, for numbers of size 1.
        """
        if noise == 0.0:
            return math.inf
        return max(self.factor * noise**-self.power, min(QUIET * sampling / noise, noise**-0.25))


COORDINATE_CLIP = ClippingRule(0.16, 0.45)  # single entries of the rows' gradients
GRADIENT_CLIP = ClippingRule(0.13, 0.35)  # whole gradients, summed over all rows
BATCH_CLIP = ClippingRule(0.126, 0.235)  # whole gradients, summed over few rows


def planned_threshold(rule: ClippingRule, noise: float, plan: Plan, averaged: float = 1.0, entries: int = 1) -> float:
    """The threshold of a plan, in units of a typical size; from public facts alone.

    `averaged` releases with noise of this standard deviation are averaged in the result. What is clipped has so many
    `entries`, which share its length evenly.
    """
    return rule.at(noise, math.sqrt(averaged / (plan.public.rows * entries)))


def row_entries(plan: Plan) -> int:
    """The number of entries of the gradient of a row."""
    return plan.problem.loss.outputs * (plan.public.columns + plan.problem.fit_intercept)


def typical_slope(problem: Problem, scaling: ColumnScaling) -> float:
    """How large a slope usually is, from public or released numbers: the unit for clipping thresholds."""
    if problem.loss.classification:
        return float(min(problem.loss.lipschitz, np.sqrt(problem.loss.outputs)))
    return float(min(problem.loss.lipschitz, scaling.target_scale))


def planned_slope(problem: Problem) -> float:
    """`typical_slope` before the target's scale is known: for regressions in units of that scale."""
    return float(min(problem.loss.lipschitz, np.sqrt(problem.loss.outputs))) if problem.loss.classification else 1.0


def row_threshold(
    clip: float | None, rule: ClippingRule, noise: float, scaled: BlockwiseProblem, plan: Plan, averaged: float = 1.0
) -> float:
    """The clipping norm of a row's gradient: as asked, none without noise, else from public and released numbers.

    By the rule from typical sizes, but never more than what no gradient can exceed. `noise` is the standard deviation
    of the noise on a mean of gradients clipped to 1, `averaged` how many such means are averaged in the result.
    """
    if clip is not None:
        return clip
    if plan.budget.is_infinite:
        return math.inf
    planned = planned_threshold(rule, noise, plan, averaged, row_entries(plan))
    return min(planned * typical_length(plan.problem, scaled.scaling), largest_length(plan.problem, scaled.scaling))


def typical_length(problem: Problem, scaling: ColumnScaling) -> float:
    """How long the gradient of a row usually is, from public or released numbers."""
    return typical_slope(problem, scaling) * math.sqrt(_mean_square_norm(problem, scaling))


def largest_length(problem: Problem, scaling: ColumnScaling) -> float:
    """The bound on the length of the gradient of a row, whatever the row is; infinite if slopes have none."""
    with np.errstate(over="ignore"):
        return problem.loss.lipschitz * float(np.linalg.norm(largest_entries(problem, scaling)))


def largest_entries(problem: Problem, scaling: ColumnScaling) -> FloatArray:
    """How large the entries of a scaled row can be, whatever the row is; the intercept's is 1."""
    with np.errstate(over="ignore"):
        farthest = np.maximum(scaling.high - scaling.shift, scaling.shift - scaling.low) * scaling.gain
    return np.append(farthest, np.ones(int(problem.fit_intercept)))


def curvature_bound(scaled: BlockwiseProblem) -> float:
    """beta: the largest eigenvalue of the Hessian is at most its trace."""
    return scaled.problem.loss.smoothness * _mean_square_norm(scaled.problem, scaled.scaling)


def _mean_square_norm(problem: Problem, scaling: ColumnScaling) -> float:
    return float(scaling.second_moment.sum()) + problem.fit_intercept


def averaged_noise(steps: int, averaged: int, memory: float) -> float:
    """Noise in the mean of the last iterates, over the noise of a single step that goes all the way.

    A step keeps the part `memory` of the earlier error and adds (1 - memory) times its own noise. The factors of the
    noises of all steps in the mean are summed as squares.
    """
    first = steps - averaged  # iterates are numbered from 1; those after `first` are averaged
    later = np.arange(1, steps + 1)
    begin = np.maximum(later, first + 1) - later
    powers = np.power(memory, begin) - np.power(memory, steps + 1 - later)
    return float(np.sqrt((powers**2).sum()) / averaged)


class Made(NamedTuple):
    """Steps that have just been made: where they ended, the weighted sum of their iterates, and the sum of weights."""

    w: FloatArray
    total: FloatArray
    weight: float = 1.0
    steps: int = 1


def descend(
    scaled: BlockwiseProblem, run: Run, steps: int, made: Iterable[Made], average: bool
) -> tuple[FloatArray, int]:
    """The mean of the second half of the iterates, or the last one, and their number; `made` makes all `steps`."""
    tail, w = TailAverage(steps, scaled.shape), scaled.start()
    for w, total, weight, count in made:
        tail.add(total, weight, count)
        run.report(tail.count, steps, scaled, w)
    return (tail.mean() if average else w), steps


def tail_length(steps: int) -> int:
    """How many of so many iterates are averaged: the second half; of an odd number the one in the middle counts."""
    return steps - steps // 2


def blocks(steps: int, size: int) -> Iterator[int]:
    """Numbers of steps that are made at once, at most `size`; those before the averaged ones apart from these."""
    for part in (steps - tail_length(steps), tail_length(steps)):
        yield from [size] * (part // size)
        if part % size:
            yield part % size


class TailAverage:
    """The weighted mean of the second half of a known number of iterates.

    Parameters
    ----------
    steps : int
        How many iterates there will be.
    shape : tuple of int
        The shape of an iterate.
    """

    def __init__(self, steps: int, shape: tuple[int, ...]) -> None:
        self.steps, self.first = steps, steps - tail_length(steps)
        self.total, self.weight = np.zeros(shape), 0.0
        self.count = 0

    def add(self, total: FloatArray, weight: float = 1.0, count: int = 1) -> None:
        """Take the weighted sum of the next `count` iterates: all of them belong to the tail, or none."""
        before, self.count = self.count, self.count + count
        if before < self.first < self.count or self.count > self.steps:
            raise ValueError(f"{count} iterates after {before} were summed up, which do not belong together.")
        if before >= self.first:
            self.total += total
            self.weight += weight

    def mean(self) -> FloatArray:
        """The mean of the iterates of the tail."""
        return self.total / self.weight


class GrowingTailAverage:
    """The mean of the latest iterates, between a half and three quarters of all, in the memory of two of them.

    For an unknown number of iterates, as those of a stream.

    Parameters
    ----------
    start : array
        The mean as long as there is no iterate.
    """

    def __init__(self, start: FloatArray) -> None:
        self.count = 0
        self.older, self.newer = np.zeros_like(start), np.zeros_like(start)
        self.start = start

    def add(self, w: FloatArray) -> None:
        """Take the next iterate."""
        self.count += 1
        if self.count & (self.count - 1) == 0:  # at powers of two the windows move on
            self.older, self.newer = self.newer, np.zeros_like(self.newer)
        self.newer = self.newer + w

    def mean(self) -> FloatArray:
        """The mean of the iterates in the two windows."""
        if self.count == 0:
            return self.start
        first = max(1, 1 << (self.count.bit_length() - 2)) if self.count > 1 else 1
        return (self.older + self.newer) / (self.count - first + 1)


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
