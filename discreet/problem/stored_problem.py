"""A problem whose rows stay where they are stored and are read, and scaled, anew in every pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from discreet.problem.blockwise import BlockwiseProblem, ScaledBlock, scaled_penalty_terms, scaled_start, scaling_for
from discreet.problem.column_scaling import ColumnScaling

if TYPE_CHECKING:
    from discreet._common.types import FloatArray
    from discreet.data.public_inputs import PublicModel
    from discreet.data.rows import Data, Rows
    from discreet.problem.problem import Problem


@dataclass(frozen=True, eq=False, kw_only=True)
class StoredProblem(BlockwiseProblem):
    """A problem that holds one block of its rows in memory at a time.

    The blocks are those of a table in memory, and so are the sums over them, to the last bit.
    """

    source: Rows

    def blocks(self) -> Iterator[ScaledBlock]:
        return map(self._scaled, self.source.blocks())

    def sum(self, part: Callable[[ScaledBlock], FloatArray]) -> FloatArray:
        return self.source.sum(lambda block: part(self._scaled(block)))

    def _scaled(self, block: Data) -> ScaledBlock:
        scaling, problem = self.scaling, self.problem
        X = scaling.matrix(block, "C", problem.fit_intercept)
        y = block.y if problem.loss.classification else scaling.target(block.y)
        return ScaledBlock(X, y, block.weight, problem.loss)


def stored_problem(
    problem: Problem, source: Rows, scaling: ColumnScaling, rows: int, start: PublicModel | None = None
) -> StoredProblem:
    """The problem on stored rows; none is read yet."""
    scaling = scaling_for(problem, scaling)
    return StoredProblem(
        problem=problem,
        scaling=scaling,
        rows=rows,
        penalty_terms=scaled_penalty_terms(problem, scaling),
        origin=scaled_start(problem, scaling, start),
        source=source,
    )
