"""A problem whose rows stay as they are, in memory or elsewhere, and are scaled anew in every pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from discreet._common.digest import digest_of
from discreet.data.rows import block_rows, can_take_tensors, max_over_blocks, sum_over_blocks
from discreet.problem.blockwise import BlockwiseProblem, scaled_penalty_terms, scaled_start, scaling_for
from discreet.problem.column_scaling import ColumnScaling
from discreet.problem.scaled_block import MatrixBlock, ScaledBlock, UnscaledBlock

if TYPE_CHECKING:
    from discreet._common.types import FloatArray
    from discreet.data.public_inputs import PublicModel
    from discreet.data.rows import Data, Rows
    from discreet.problem.losses import Loss
    from discreet.problem.problem import Problem


@dataclass(frozen=True, eq=False, kw_only=True)
class UnscaledProblem(BlockwiseProblem):
    """A problem that asks its rows for sums, block by block, and holds no scaled copy of them.

    Blocks of a table in memory and of the same table in a file are the same, and so are the sums, to the last bit. What
    is computed of rows in memory is kept for other passes; of rows elsewhere, where they lie.
    """

    source: Rows

    @property
    def gives_blocks(self) -> bool:
        return self.source.gives_blocks

    def blocks(self) -> Iterator[ScaledBlock]:
        return map(self.block_scaling, self.source.blocks())

    def sum(self, part: Callable[[ScaledBlock], FloatArray]) -> FloatArray:
        if self.source.in_memory:
            return sum_over_blocks(self._held, part, self._jobs)
        return self.source.sum(PartOfScaled(part, self.block_scaling))

    def max(self, part: Callable[[ScaledBlock], FloatArray]) -> FloatArray:
        if self.source.in_memory:
            return max_over_blocks(self._held, part, self._jobs)
        return self.source.max(PartOfScaled(part, self.block_scaling))

    @cached_property
    def _held(self) -> list[ScaledBlock]:
        """The blocks of rows in memory."""
        return [block.keep(self.block_scaling.key, self.block_scaling) for block in self.source.blocks()]

    @property
    def _jobs(self) -> int:
        return getattr(self.source, "jobs", 1)

    @cached_property
    def block_scaling(self) -> BlockScaling:
        one_block = self.source.rows <= block_rows(self.source.columns)
        return BlockScaling(self.scaling, self.problem.loss, self.problem.fit_intercept, one_block)


@dataclass(frozen=True, eq=False)
class BlockScaling:
    """Blocks of rows in scaled columns; `key` is equal for equal scalings, copies in other processes included."""

    scaling: ColumnScaling
    loss: Loss
    fit_intercept: bool
    keeps_matrix: bool  # whether the scaled rows may be held beside the rows, as there are few

    def __call__(self, block: Data) -> ScaledBlock:
        y = block.y if self.loss.classification else self.scaling.target(block.y)
        if block.sparse:
            X = self.scaling.matrix(block, "C", self.fit_intercept)
            return MatrixBlock(X, y, block.weight, self.loss, start=block.start)
        if block.on_device:
            from discreet.problem.gpu_block import GpuBlock

            return GpuBlock(block, self.scaling, y, self.loss, self.fit_intercept, keeps_matrix=False)
        return UnscaledBlock(block, self.scaling, y, self.loss, self.fit_intercept, self.keeps_matrix)

    @cached_property
    def key(self) -> bytes:
        return digest_of("scaled block", self.scaling, self.loss, self.fit_intercept, self.keeps_matrix)


@dataclass(frozen=True, eq=False)
class PartOfScaled:
    """A part that is written for scaled blocks, as one of the rows as they are: it may be computed where they lie."""

    part: Callable[[ScaledBlock], FloatArray]
    scaled: BlockScaling

    @property
    def takes_tensors(self) -> bool:
        """Whether the part asks a block for what it computes itself, so that it may lie on a GPU."""
        return can_take_tensors(self.part)

    def __call__(self, block: Data) -> FloatArray:
        return self.part(block.keep(self.scaled.key, self.scaled))


def unscaled_problem(
    problem: Problem, source: Rows, scaling: ColumnScaling, rows: int, start: PublicModel | None = None
) -> UnscaledProblem:
    """The problem on rows that stay where they are; none is read yet."""
    scaling = scaling_for(problem, scaling)
    return UnscaledProblem(
        problem=problem,
        scaling=scaling,
        rows=rows,
        penalty_terms=scaled_penalty_terms(problem, scaling),
        origin=scaled_start(problem, scaling, start),
        source=source,
    )
