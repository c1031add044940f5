"""A problem with all its rows in memory, as a copy in scaled columns."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import scipy.sparse as sp

from discreet._common.types import FloatArray, IntArray
from discreet.data.people import person_slices
from discreet.data.rows import block_slices
from discreet.kernels.gradient import margins_of, row_norms
from discreet.problem.blockwise import BlockwiseProblem, scaled_penalty_terms, scaled_start, scaling_for
from discreet.problem.column_scaling import ColumnScaling
from discreet.problem.scaled_block import MatrixBlock, ScaledBlock

if TYPE_CHECKING:
    from discreet.data.public_inputs import PublicModel
    from discreet.data.rows import Data
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
