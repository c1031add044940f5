"""DP-FTRL: follow the regularised leader of noisy running sums of gradients; every pass reads each row once.

No sampling and no secrecy of the order is needed, so that the rows may come as a stream (stream.py).
Gradients are added to the open leaf, a full leaf moves the leader. Theorem and proof: docs/guarantees/ftrl.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from discreet._common.checks import check_threshold, one_of, positive
from discreet._common.types import FloatArray, IndexArray
from discreet.data.public import Public
from discreet.kernels.gradient import clipped_gradient_sum
from discreet.privacy import mechanisms
from discreet.privacy.budget import Budget
from discreet.privacy.mechanisms.additive import NoisyGrid
from discreet.privacy.mechanisms.aggregation import Kind, RunningSumGaussian, RunningSums, row_norm
from discreet.privacy.random.generator import RandomGenerator
from discreet.privacy.relation import Relation
from discreet.privacy.release import PlannedRelease, planned_releases
from discreet.problem.problem import Problem
from discreet.problem.scaled_problem import ScaledProblem
from discreet.scaling.plan import ScalingPlan
from discreet.solvers._shared.batch_steps import assign_rows
from discreet.solvers._shared.descents import (
    BATCH_CLIP,
    GrowingTailAverage,
    curvature_bound,
    typical_slope,
    until_optimal,
)
from discreet.solvers.base import Capabilities, Run, Solver, calibrated
from discreet.solvers.plan import OF_THE_THRESHOLD, Plan, Settings

GeneratorOf = Callable[[int], RandomGenerator]
Prox = Callable[[FloatArray, float], FloatArray]


class Leader:
    """The minimiser of (sum of gradients so far) . w + (their number) penalty(w) + ||w - origin||^2 / (2 length).

    `origin` is the public start, or 0. Gradients come in leaves of about equal size. Several trees (one per pass, or
    one per part of a stream) follow each other: `base` holds the noisy sums of those that are finished. `length` is the
    step a leaf makes.
    """

    def __init__(self, start: FloatArray, length: float, origin: FloatArray | None = None) -> None:
        self.w, self.length = start, length
        self.origin = np.zeros_like(start) if origin is None else origin
        self.base = np.zeros_like(start)
        self.latest = np.zeros_like(start)
        self.average = GrowingTailAverage(start)
        self.sums: RunningSums | None = None

    def begin(self, sums: RunningSums) -> None:
        """A new tree, on top of what the old one has released."""
        self.base = self.base + self.latest
        self.latest = np.zeros_like(self.base)
        self.sums = sums

    def follow(self, gradient: FloatArray, leaf_rows: float, grid: NoisyGrid, rng: RandomGenerator, prox: Prox) -> None:
        """Take one leaf's sum of clipped gradients and move to the next leader.

        Guarantee: `w` and `average` depend on the gradients only through their running sums with noise.
        """
        if self.sums is None:
            raise RuntimeError("begin a tree first: without its noise the sums would be released as they are.")
        self.latest = self.sums.next(gradient, grid, rng) / leaf_rows
        leaves = self.average.count + 1
        self.w = prox(self.origin - self.length * (self.base + self.latest), self.length * leaves)
        self.average.add(self.w)


R = TypeVar("R")  # how some rows are named: their numbers, or a slice


class LeafLoop:
    """The leader, and the exact sum of the gradients in the leaf that is still open.

    Parameters
    ----------
    solver : FTRL
    plan : Plan
    scaled : ScaledProblem
        The problem; which rows it holds does not matter here.
    generator_of : callable
        The generator that draws the noise of the leaf with this number, counted over all trees.

    Guarantee: whatever leaves `leader.w` and `leader.average` costs the plan's mechanism, if each row is read once in
    every tree. `leaf` is not released.
    """

    def __init__(self, solver: FTRL, plan: FTRLPlan, scaled: ScaledProblem, generator_of: GeneratorOf) -> None:
        self.solver, self.plan, self.scaled, self.generator_of = solver, plan, scaled, generator_of
        self.leader = Leader(scaled.start(), solver.step / curvature_bound(scaled), scaled.origin)
        self.leaf = np.zeros(scaled.shape)

    def start_tree(self, sums: RunningSums, number: int = 0) -> None:
        """Begin a tree; one with number k > 0 reads 2^k times as many rows as planned, in as many leaves."""
        self.leaf_rows = self.plan.settings.leaf_rows << number
        self.clip = threshold(self.solver, self.scaled, self.plan, self.plan.public.rows << number)
        self.grid = self._grid(self.plan.public.rows << number)
        self.leader.begin(sums)

    def _grid(self, rows: int) -> NoisyGrid:
        """The grid and the noise for sums of gradients clipped to `self.clip`, over so many rows."""
        entries = self.scaled.outputs * self.scaled.columns
        sensitivity = mechanisms.clipped_sum(self.plan.public.relation, entries) * self.clip
        return self.plan.mechanism.grid(sensitivity, entries, rows)

    def read(self, scaled: ScaledProblem, pieces: Iterable[tuple[R, bool]]) -> Iterator[R]:
        """Read the pieces, each of which says which rows it holds and whether it ends a leaf; yields their rows."""
        norms = scaled.norms()
        for rows, ends_leaf in pieces:
            self.leaf = self.leaf + leaf_gradient(scaled, norms, rows, self.leader.w, self.clip, self.grid.step)
            if ends_leaf:
                rng = self.generator_of(self.leader.average.count)
                self.leader.follow(self.leaf, self.leaf_rows, self.grid, rng, self.scaled.prox)
                self.leaf = np.zeros(self.scaled.shape)
            yield rows


def threshold(solver: FTRL, scaled: ScaledProblem, plan: FTRLPlan, rows: int) -> float:
    """The clipping norm for a tree over so many rows, from public and released numbers."""
    deviation = plan.mechanism.deviation(mechanisms.clipped_sum(plan.public.relation))
    noise = deviation * row_norm(solver.aggregation, plan.settings.leaves) / rows  # on the last sum
    if solver.clip is not None or plan.budget.is_infinite:
        return math.inf if solver.clip is None else solver.clip
    unit = typical_slope(scaled.problem, scaled.scaling)
    return stream_factor(noise) * unit * math.sqrt(scaled.scaling.second_moment.sum() + scaled.problem.fit_intercept)


def stream_factor(noise: float) -> float:
    """The threshold in units of a typical gradient; paused streams of earlier versions go on with it, so it stays."""
    return min(1.0, BATCH_CLIP.at(noise))


def leaf_gradient(
    scaled: ScaledProblem, norms: FloatArray, rows: Any, w: FloatArray, clip: float, step: float
) -> FloatArray:
    """The sum of the clipped gradients of some rows, each rounded to multiples of the step."""
    X = scaled.X[rows]
    slopes = scaled.problem.loss.slope(np.asarray(X @ w.T, dtype=np.float64), scaled.y[rows])
    weight = None if scaled.weight is None else scaled.weight[rows]
    return clipped_gradient_sum(X, slopes, norms[rows], clip, weight, step)


LEAVES, EPOCHS = 128, 8  # updates in a pass, and passes: docs/defaults.md
NOISELESS_EPOCHS = 400  # the most passes where epsilon is infinite


@dataclass(frozen=True)
class FTRLSettings(Settings):
    """How many updates a pass makes, of how many rows each, and how many passes there are."""

    leaves: int
    leaf_rows: int
    epochs: int


FTRLPlan = Plan[RunningSumGaussian, FTRLSettings]


@dataclass(frozen=True)
class FTRL(Solver[RunningSumGaussian, FTRLSettings]):
    """Follow the regularised leader.

    With infinite epsilon each update reads the whole table, up to 400 times. The error of the average may fall as
    slowly as the inverse of their number, so that accelerated gradient steps finish from there, to the optimum.

    Parameters
    ----------
    leaves : int, optional
        Number of updates in one pass; each uses an equal part of the rows.
    epochs : int, optional
        Number of passes, each with fresh noise.
    aggregation : {"square-root", "tree"}
        How the noise of the running sums is correlated; the square root needs less, the tree less memory.
    shuffle : bool
        Put the rows into a random order, anew for every pass; False takes them as they come.
    clip : float, optional
        Norm to which each row's gradient is clipped, in the solver's (scaled) columns.
    step : float
        Length of an update in units of 1/beta, beta being a public bound on the curvature.
    average : bool
        Return the average of the latest half of the iterates or more, instead of the last one.
    scale_share : float, optional
        Share of the budget for learning scales (default 0.1, more on small tables; 0 needs declared bounds).
    """

    name = "ftrl"
    capabilities = Capabilities(start=True, consistent=False)

    leaves: int | None = None
    epochs: int | None = None
    aggregation: Kind = "square-root"
    shuffle: bool = True
    clip: float | None = None
    step: float = 1.9
    average: bool = True
    scale_share: float | None = None

    def __post_init__(self) -> None:
        positive("leaves", self.leaves, whole=True)
        positive("epochs", self.epochs, whole=True)
        check_threshold("clip", self.clip)
        positive("step", self.step)
        one_of("aggregation", self.aggregation, ("square-root", "tree"))

    def _decide(
        self, problem: Problem, public: Public, budget: Budget, scaling_plan: ScalingPlan
    ) -> tuple[RunningSumGaussian, FTRLSettings]:
        if public.relation is Relation.ADD_REMOVE and not self.shuffle:
            raise ValueError('shuffle=False needs a public place for every row; use relation="replace" or "zero_out".')
        # Without noise there is no better leaf than the whole table; the error falls as the inverse of the updates.
        default_leaves, default_epochs = (1, NOISELESS_EPOCHS) if budget.is_infinite else (LEAVES, EPOCHS)
        leaf_rows = math.ceil(public.rows / (self.leaves or default_leaves))
        leaves, epochs = math.ceil(public.rows / leaf_rows), int(self.epochs or default_epochs)

        def make(multiplier: float) -> RunningSumGaussian:
            return RunningSumGaussian(multiplier, self.aggregation, leaves, epochs)

        return calibrated(make, scaling_plan, budget, public), FTRLSettings(leaves, leaf_rows, epochs)

    def _releases(self, plan: FTRLPlan) -> list[PlannedRelease]:
        relation, length = plan.public.relation, row_norm(self.aggregation, plan.settings.leaves)
        # The last running sum of a pass is that of all rows; its noise is `length` times that of a node.
        sensitivity = mechanisms.clipped_sum(relation) * (length**2 / plan.public.rows)
        what = "running mean gradients, a pass each"
        return planned_releases(what, plan.mechanism.event, relation, sensitivity, OF_THE_THRESHOLD)

    def _descend(self, scaled: ScaledProblem, plan: FTRLPlan, run: Run) -> tuple[FloatArray, int]:
        loop = LeafLoop(self, plan, scaled, lambda _: run.rng)
        leader, updates = loop.leader, plan.settings.leaves * plan.settings.epochs
        if plan.budget.is_infinite and self.leaves is None and self.epochs is None:
            own_steps = (leader.average.mean() for _ in self.follow(loop, run.rng))
            return until_optimal(scaled, run, own_steps)
        for done, _ in enumerate(self.follow(loop, run.rng), start=1):
            if done % plan.settings.leaves == 0:
                run.report(done, updates, scaled, leader.w)
        return (leader.average.mean() if self.average else leader.w), updates

    def follow(self, loop: LeafLoop, rng: RandomGenerator) -> Iterator[IndexArray]:
        """Run the loop's plan; yields the rows of each leaf after the leader has followed them.

        Guarantee: all iterates together cost the plan's mechanism.
        """
        return loop.read(loop.scaled, self._leaves(loop, rng))

    def _leaves(self, loop: LeafLoop, rng: RandomGenerator) -> Iterator[tuple[IndexArray, bool]]:
        """The leaves of all passes; every pass has a tree of its own."""
        plan, scaled = loop.plan, loop.scaled
        for _ in range(plan.settings.epochs):
            loop.start_tree(plan.mechanism.begin(scaled.shape))
            for rows in self._parts(plan, scaled.X.shape[0], rng):
                yield rows, True

    def _parts(self, plan: FTRLPlan, rows: int, rng: RandomGenerator) -> list[IndexArray]:
        """Which rows each leaf holds; every row is in exactly one, chosen without looking at any row."""
        settings, relation = plan.settings, plan.public.relation
        return assign_rows(relation, rows, settings.leaves, settings.leaf_rows, rng, self.shuffle)
