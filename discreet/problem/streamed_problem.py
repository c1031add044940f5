"""A problem whose rows stay where they are stored and are read, and scaled, anew in every pass."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from discreet.problem.blockwise import BlockwiseProblem, ScaledBlock, scaled_coefficients
from discreet.problem.column_scaling import ColumnScaling

if TYPE_CHECKING:
    from discreet.data.rows import Rows
    from discreet.problem.problem import Problem


@dataclass(frozen=True, eq=False, kw_only=True)
class StreamedProblem(BlockwiseProblem):
    """A problem that holds one block of its rows in memory at a time.

    The blocks are those of a table in memory, and so are the sums over them, to the last bit.
    """

    source: Rows

    def blocks(self) -> Iterator[ScaledBlock]:
        scaling, problem = self.scaling, self.problem
        for block in self.source.blocks():
            X = scaling.matrix(block, "C", problem.fit_intercept)
            y = block.y if problem.loss.classification else scaling.target(block.y)
            yield ScaledBlock(X, y, block.weight, problem.loss)


def stream_problem(problem: Problem, source: Rows, scaling: ColumnScaling, rows: int) -> StreamedProblem:
    """The problem on stored rows; none is read yet."""
    if not problem.separable:
        scaling = scaling.uniform()
    return StreamedProblem(
        problem=problem,
        scaling=scaling,
        rows=rows,
        coefficients=scaled_coefficients(problem, scaling),
        source=source,
    )
