"""A problem with its rows: as a copy in scaled columns, or as they are, each block scaled when it is read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import scipy.sparse as sp

from discreet._common.types import FloatArray, IntArray
from discreet.data.people import person_slices
from discreet.data.rows import block_rows, block_slices, max_over_blocks, sum_over_blocks
from discreet.kernels.gradient import margins_of, row_norms
from discreet.problem.blockwise import BlockwiseProblem, scaled_penalty_terms, scaled_start, scaling_for
from discreet.problem.column_scaling import ColumnScaling
from discreet.problem.scaled_block import BlockScaling, MatrixBlock, PartOfScaled, ScaledBlock

if TYPE_CHECKING:
    from discreet.data.public_inputs import PublicModel
    from discreet.data.rows import Data, Rows
    from discreet.problem.problem import Problem


@dataclass(frozen=True, eq=False, kw_only=True)
class ScaledProblem(BlockwiseProblem):
    """A problem whose scaled rows are one array, for loops that need all of them at hand."""

    X: Any
    y: FloatArray
    weight: FloatArray | None
    persons: IntArray | None = None

    def blocks(self) -> list[ScaledBlock]:
        """Views of the rows; they are kept, and with them what has been computed of their rows."""
        return self._blocks

    @cached_property
    def _blocks(self) -> list[ScaledBlock]:
        loss = self.problem.loss
        if sp.issparse(self.X):
            parts = [slice(None)]
        elif self.persons is not None:
            parts = person_slices(self.persons, self.scaling.columns)
        else:
            parts = block_slices(self.X.shape[0], self.scaling.columns)
        if len(parts) <= 1:
            return [MatrixBlock(self.X, self.y, self.weight, loss, self.persons)]
        of_rows = [[None if each is None else each[part] for part in parts] for each in (self.weight, self.persons)]
        return [
            MatrixBlock(self.X[part], self.y[part], weight, loss, persons)
            for part, weight, persons in zip(parts, *of_rows, strict=True)
        ]

    @property
    def kernel_weight(self) -> FloatArray:
        """The row weights as kernels take them: an empty array stands for none."""
        return np.empty(0) if self.weight is None else self.weight

    def margins(self, w: FloatArray) -> FloatArray:
        return margins_of(self.X, w)

    def slopes(self, w: FloatArray) -> FloatArray:
        return self.problem.loss.slope(self.margins(w), self.y)

    def norms(self) -> FloatArray:
        return row_norms(self.X)


def scale_problem(
    problem: Problem,
    data: Data,
    scaling: ColumnScaling,
    rows: int,
    order: Literal["C", "F"],
    start: PublicModel | None = None,
) -> ScaledProblem:
    """Copy the rows into scaled columns once, in the order the solver wants."""
    scaling = scaling_for(problem, scaling)
    return ScaledProblem(
        problem=problem,
        scaling=scaling,
        rows=rows,
        penalty_terms=scaled_penalty_terms(problem, scaling),
        origin=scaled_start(problem, scaling, start),
        X=scaling.matrix(data, order, problem.fit_intercept),
        y=data.y if problem.loss.classification else scaling.target(data.y),
        weight=data.weight,
        persons=data.persons,
    )


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
        """The blocks of rows in memory, with what is computed of them."""
        return list(self.blocks())

    @property
    def _jobs(self) -> int:
        return getattr(self.source, "jobs", 1)

    @cached_property
    def block_scaling(self) -> BlockScaling:
        one_block = self.source.rows <= block_rows(self.source.columns)
        return BlockScaling(self.scaling, self.problem.loss, self.problem.fit_intercept, one_block)


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
