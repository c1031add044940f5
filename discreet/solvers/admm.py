"""Private consensus ADMM (Douglas-Rachford splitting): proximal steps of every row and of the penalty.

Takes every penalty with a proximal map, separable or not. Theorem and proof: docs/guarantees/admm.md.

The dual variable u_i of row i, which starts where the weights do, is a vector as long as a row, but nothing except
q_i = x_i . u_i is ever needed of it: the proximal step of a linear model moves along x_i. So one number per row is
kept, and no matrix of the table's size. Where rows lie on workers, these numbers live beside them and never leave them.
A worker that dies takes them with it; they follow from the rows and from the weights of earlier rounds, which are
released, so another worker computes them again.
Proof of what may be released: docs/guarantees/admm.md.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from discreet._common.checks import LARGEST_THRESHOLD, SMALLEST_THRESHOLD, check_threshold, number_in, one_of, positive
from discreet._common.types import FloatArray
from discreet.data.public import Public
from discreet.data.rows import Data, piece_slices, sum_over_blocks
from discreet.kernels.gradient import clipped_gradient_sum, clipped_slopes
from discreet.privacy import mechanisms
from discreet.privacy.budget import Budget
from discreet.privacy.mechanisms.additive import NoisyGrid
from discreet.privacy.random.generator import RandomGenerator
from discreet.privacy.relation import Relation
from discreet.privacy.release import PlannedRelease, planned_releases
from discreet.problem.problem import Problem
from discreet.problem.scaled_block import BlockScaling, ScaledBlock
from discreet.problem.scaled_problem import BlockwiseProblem, UnscaledProblem
from discreet.scaling.plan import ScalingPlan
from discreet.solvers._shared.descents import curvature_bound
from discreet.solvers._shared.full_batch import (
    FullBatchPlan,
    FullBatchSettings,
    FullBatchSolver,
    Move,
    NoisyGradient,
    iterates,
)
from discreet.solvers.base import Capabilities
from discreet.solvers.plan import OF_THE_THRESHOLD

CHANGED = "the rows changed or came in another order while they were read; train again on a table that stays."


class HiddenDuals(NoisyGradient):
    """Exact dual variables that never leave; a round releases the sum of the rows' gradients at their proximal points.

    Guarantee: a call costs one of the `steps` releases of the plan's mechanism, because what a row adds is a function
    of that row and of earlier releases, of norm at most `clip`.
    """

    def __init__(
        self, scaled: BlockwiseProblem, plan: FullBatchPlan, clip: float | None, gamma: float, relaxation: float
    ) -> None:
        super().__init__(scaled, plan, clip)
        self.gamma, self.relaxation = gamma, relaxation
        self.products: list[FloatArray] = []  # q_i = x_i . u_i of the rows, block by block
        self._seen: list[float] = []  # a checksum of each block

    def __call__(self, w: FloatArray, rng: RandomGenerator) -> FloatArray:
        """One round at the consensus w: the mean of the rows' gradients, with noise; all duals move."""
        total = sum_over_blocks(
            enumerate(self._same_blocks()), lambda numbered: self._block_sum(numbered[0], numbered[1], w, rng)
        )
        return self._released(total, rng) / self.scaled.rows

    def _same_blocks(self) -> Iterator[ScaledBlock]:
        """The blocks; memory goes by the place of a row, so stored rows that come in another order are refused."""
        passed, started = 0, bool(self._seen)
        for passed, block in enumerate(self.scaled.blocks(), start=1):
            found = float(block.keep("checksum", lambda block=block: np.array([checksum(block)]))[0])  # type: ignore[misc]
            if not started:
                self._seen.append(found)
            elif passed > len(self._seen) or found != self._seen[passed - 1]:
                raise ValueError(CHANGED)
            yield block
        if passed != len(self._seen):
            raise ValueError(CHANGED)

    def _released(self, total: FloatArray, rng: RandomGenerator) -> FloatArray:
        return self.grid.release(rng, total)

    def _block_sum(self, number: int, block: ScaledBlock, w: FloatArray, rng: RandomGenerator) -> FloatArray:
        margins, slopes = self._proximal_step(number, block, w)
        own = clipped_slopes(slopes, block.norms, self.clip, block.weight)
        self._move(number, margins, own * block.norms**2)
        return clipped_gradient_sum(block.X, slopes, block.norms, self.clip, block.weight, self.grid.step)

    def _proximal_step(self, number: int, block: ScaledBlock, w: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The margins at w, and the slope of each row's loss at its proximal point."""
        if len(self.products) <= number:
            self.products.append(block.margins(self.scaled.start()))
        return proximal_step(block, w, self.products[number], self.gamma)

    def _move(self, number: int, margins: FloatArray, products: FloatArray) -> None:
        """u_i <- (1 - 2 lam) u_i + 2 lam (w - gam g_i), of which x_i . u_i is kept; `products` are the x_i . g_i."""
        self.products[number] = moved(self.products[number], margins, products, self.gamma, self.relaxation)


class NoisyDuals(HiddenDuals):
    """The form of the papers: every row adds noise to its own gradient, and its dual variable moves by the noisy one.

    Guarantee: a call costs one of the `steps` releases of the plan's mechanism, even for an observer who sees the
    noisy gradient of every row by itself.
    """

    def _relative_noise(self) -> float:
        return math.sqrt(self.scaled.rows) * super()._relative_noise()

    def _make_grid(self) -> NoisyGrid:
        return self.mechanism.grid(self.sensitivity, self.scaled.columns)  # of one row's gradient

    def _released(self, total: FloatArray, rng: RandomGenerator) -> FloatArray:
        return total  # of numbers that were released before

    def _block_sum(self, number: int, block: ScaledBlock, w: FloatArray, rng: RandomGenerator) -> FloatArray:
        margins, slopes = self._proximal_step(number, block, w)
        own = clipped_slopes(slopes, block.norms, self.clip, block.weight)
        products, total = np.empty_like(margins), np.zeros(self.scaled.columns)
        for part in piece_slices(margins.size, self.scaled.columns):
            rows = block.X[part].toarray() if sp.issparse(block.X) else block.X[part].astype(np.float64, copy=False)
            gradients = self.grid.release(rng, own[part, None] * rows)
            products[part] = np.einsum("ij,ij->i", rows, gradients)
            total += gradients.sum(axis=0)
        self._move(number, margins, products)
        return total


def proximal_step(
    block: ScaledBlock, w: FloatArray, products: FloatArray, gamma: float
) -> tuple[FloatArray, FloatArray]:
    """The margins at w, and the slope of each row's loss at its proximal point; `products` are the x_i . u_i."""
    from discreet.kernels.slopes import fill_proximal_slopes

    margins, loss = block.margins(w), block.loss
    stiffness = gamma * block.norms**2
    if block.weight is not None:
        stiffness *= block.weight
    slopes = np.empty_like(margins)
    fill_proximal_slopes(loss.code, float(loss.parameter), 2.0 * margins - products, block.y, stiffness, slopes)
    return margins, slopes


def moved(
    products: FloatArray, margins: FloatArray, gradients: FloatArray, gamma: float, relaxation: float
) -> FloatArray:
    """The x_i . u_i after a round, from those before it, the margins x_i . w and the x_i . g_i."""
    share = 2.0 * relaxation
    return (1.0 - share) * products + share * (margins - gamma * gradients)


def checksum(block: ScaledBlock) -> float:
    """Of the norms and targets of the rows in their order."""
    return float(zlib.crc32(block.y.tobytes(), zlib.crc32(block.norms.tobytes())))


class DualsLostError(Exception):
    """A block has no dual variables of this round: its worker is new."""


class RemoteDuals(HiddenDuals):
    """The same releases as `HiddenDuals`, from rows that give sums only.

    Guarantee: a call costs one of the `steps` releases of the plan's mechanism: rounds that are computed again are
    computed from the same numbers, and released once.
    """

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._points: list[FloatArray] = []  # the weights of the rounds so far

    def __call__(self, w: FloatArray, rng: RandomGenerator) -> FloatArray:
        if not isinstance(self.scaled, UnscaledProblem):
            raise RuntimeError("rows that give sums only have a problem that asks for them.")
        numbers = (self.gamma, self.relaxation, self.clip, self.grid.step)
        part = DualRound(self.scaled.block_scaling, np.array(w), self.scaled.start(), *numbers, len(self._points))
        try:
            total = self.scaled.source.sum(part)
        except DualsLostError:
            total = self.scaled.source.sum(replace(part, earlier=tuple(self._points)))
        self._points.append(part.w)
        return self._released(total, rng) / self.scaled.rows


@dataclass(frozen=True, eq=False)
class DualRound:
    """One round of a block: the sum of the rows' gradients at their proximal points; the block remembers its duals.

    Those of this round stay beside those of the next: a round that is asked for twice gives the same sum.
    """

    scaled: BlockScaling
    w: FloatArray
    start: FloatArray
    gamma: float
    relaxation: float
    clip: float
    step: float
    number: int
    earlier: tuple[FloatArray, ...] = ()  # the weights of all rounds before, if a worker may have lost the duals

    def __call__(self, block: Data) -> FloatArray:
        scaled = block.keep(self.scaled.key, self.scaled)
        if self.number == 0:
            block.memory.clear()
            block.memory.update(checksum=checksum(scaled), duals={0: scaled.margins(self.start)})
        elif self.number not in block.memory.get("duals", {}):
            block.memory.update(checksum=checksum(scaled), duals={self.number: self._again(scaled)})
        if checksum(scaled) != block.memory["checksum"]:
            raise ValueError(CHANGED)
        before = block.memory["duals"][self.number]
        after, slopes = self._round(scaled, self.w, before)
        block.memory["duals"] = {self.number: before, self.number + 1: after}
        return clipped_gradient_sum(scaled.X, slopes, scaled.norms, self.clip, scaled.weight, self.step)

    def _round(self, block: ScaledBlock, w: FloatArray, products: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The products x_i . u_i after a round, and the slopes at the proximal points."""
        margins, slopes = proximal_step(block, w, products, self.gamma)
        own = clipped_slopes(slopes, block.norms, self.clip, block.weight)
        return moved(products, margins, own * block.norms**2, self.gamma, self.relaxation), slopes

    def _again(self, block: ScaledBlock) -> FloatArray:
        """The products before this round, from the weights of all rounds before."""
        if len(self.earlier) != self.number:
            raise DualsLostError
        products = block.margins(self.start)
        for w in self.earlier:
            products, _ = self._round(block, w, products)
        return products


TAKEN = Capabilities(pure=True, coupled=True, single_output=True, compiled=("proximal_slope",), start=True, stored=True)
FORMS = {"hidden-duals": HiddenDuals, "noisy-duals": NoisyDuals}


@dataclass(frozen=True)
class ADMM(FullBatchSolver):
    """Consensus ADMM with one copy of the weights per row, of which one number per row is kept.

    Parameters
    ----------
    rounds : int, optional
        Number of rounds; by default from the size of the table and the budget, as `gd` chooses its steps.
    clip : float, optional
        Norm to which each row's gradient is clipped, in the solver's (scaled) columns.
    gamma : float
        Length of the proximal steps in units of 1/beta, beta being a public bound on the curvature, for which a second
        derivative of the loss above 1 counts as 1. Without noise the rounds converge for every length.
    relaxation : float
        Half the part of the way that the dual variables go in a round; above 0, below 1 to converge. 1/2 is plain ADMM.
    form : {"hidden-duals", "noisy-duals"}
        Who adds the noise. By default the dual variables are exact, private and never released, and each round releases
        one noisy sum. "noisy-duals" is the form of the papers: every row adds the noise to its own message, which holds
        against whoever sees all messages, and the mean is sqrt(n) times as noisy.
    average : bool
        Return the average of the second half of the iterates instead of the last one.
    scale_share : float, optional
        Share of the budget for learning scales (default 0.1, more on small tables; 0 needs declared bounds).
    """

    name = "admm"

    rounds: int | None = None
    clip: float | None = None
    gamma: float = 1.9
    relaxation: float = 0.5
    form: str = "hidden-duals"
    average: bool = True
    scale_share: float | None = None

    def __post_init__(self) -> None:
        positive("rounds", self.rounds, whole=True)
        check_threshold("clip", self.clip)
        number_in("gamma", self.gamma, SMALLEST_THRESHOLD, LARGEST_THRESHOLD)
        number_in("relaxation", self.relaxation, 0.0, 1.0, above=True)
        one_of("form", self.form, tuple(FORMS))

    @property
    def steps(self) -> int | None:  # type: ignore[override]
        """Its rounds, by the name that they have in other solvers."""
        return self.rounds

    @property
    def capabilities(self) -> Capabilities:  # type: ignore[override]
        return replace(TAKEN, workers=self.form == "hidden-duals")

    def _decide(
        self, problem: Problem, public: Public, budget: Budget, scaling_plan: ScalingPlan
    ) -> tuple[mechanisms.Additive, FullBatchSettings]:
        if self.form == "noisy-duals" and public.relation is Relation.ADD_REMOVE:
            raise ValueError('form="noisy-duals" shows how many rows send messages; use relation="replace".')
        return super()._decide(problem, public, budget, scaling_plan)

    def _releases(self, plan: FullBatchPlan) -> list[PlannedRelease]:
        if self.form == "hidden-duals":
            return super()._releases(plan)
        relation, columns = plan.public.relation, plan.public.columns + plan.problem.fit_intercept
        sensitivity = mechanisms.clipped_sum(relation, columns)
        return planned_releases("gradients of every row", plan.mechanism.event, relation, sensitivity, OF_THE_THRESHOLD)

    def noisy_gradient(self, scaled: BlockwiseProblem, plan: FullBatchPlan) -> NoisyGradient:
        """What a round releases."""
        kind = FORMS[self.form] if scaled.gives_blocks else RemoteDuals
        return kind(scaled, plan, self.clip, self.step_length(scaled), self.relaxation)

    def step_length(self, scaled: BlockwiseProblem) -> float:
        """No length diverges, so a kink in the loss need not shorten the steps: its slopes still change by about 1."""
        return self.gamma * max(1.0, scaled.problem.loss.smoothness) / curvature_bound(scaled)

    def _iterates(self, scaled: BlockwiseProblem, plan: FullBatchPlan, rng: RandomGenerator) -> Iterator[FloatArray]:
        gamma, gradient = self.step_length(scaled), self.noisy_gradient(scaled, plan)
        start = scaled.prox(scaled.start(), gamma)
        return iterates(gradient, rng, start, self._consensus(scaled, gamma))

    def _consensus(self, scaled: BlockwiseProblem, gamma: float) -> Move:
        """The other half of a round: the mean of the duals, from released numbers alone, then the penalty's step."""
        mean, share = np.array(scaled.start()), 2.0 * self.relaxation

        def move(w: FloatArray, gradient: FloatArray) -> FloatArray:
            mean[...] = (1.0 - share) * mean + share * (w - gamma * gradient)
            return scaled.prox(mean, gamma)

        return move
