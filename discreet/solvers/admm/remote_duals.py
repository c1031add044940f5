"""Consensus ADMM on rows that lie on workers: the dual variables live beside the rows, and never leave them.

A worker that dies takes its rows' dual variables with it. They follow from the rows and from the weights of earlier
rounds, which are released, so another worker computes them again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet._common.types import FloatArray
from discreet.kernels.gradient import clipped_gradient_sum, clipped_slopes
from discreet.problem.scaled_block import BlockScaling, ScaledBlock
from discreet.problem.scaled_problem import UnscaledProblem
from discreet.solvers.admm.row_duals import CHANGED, HiddenDuals, checksum, moved, proximal_step

if TYPE_CHECKING:
    from discreet.data.rows import Data
    from discreet.privacy.random.generator import RandomGenerator


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
