"""Follow the regularised leader, for tables and streams: gradients are added to the open leaf, a full leaf moves it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from discreet._common.types import FloatArray
from discreet.kernels.gradient import clipped_gradient_sum
from discreet.privacy import mechanisms
from discreet.privacy.mechanisms.additive import NoisyGrid
from discreet.privacy.mechanisms.aggregation import RunningSums, row_norm
from discreet.problem.scaled_problem import ScaledProblem
from discreet.solvers._shared.clipping import BATCH_CLIP, curvature_bound, row_threshold

if TYPE_CHECKING:
    from discreet.privacy.random.generator import RandomGenerator
    from discreet.solvers.ftrl.solver import FTRL, FTRLPlan

    GeneratorOf = Callable[[int], RandomGenerator]
from collections.abc import Callable

from discreet.privacy.random.generator import RandomGenerator
from discreet.solvers._shared.averaging import GrowingTailAverage

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
    return row_threshold(solver.clip, BATCH_CLIP.at(noise), scaled, plan)


def leaf_gradient(
    scaled: ScaledProblem, norms: FloatArray, rows: Any, w: FloatArray, clip: float, step: float
) -> FloatArray:
    """The sum of the clipped gradients of some rows, each rounded to multiples of the step."""
    X = scaled.X[rows]
    slopes = scaled.problem.loss.slope(np.asarray(X @ w.T, dtype=np.float64), scaled.y[rows])
    weight = None if scaled.weight is None else scaled.weight[rows]
    return clipped_gradient_sum(X, slopes, norms[rows], clip, weight, step)
