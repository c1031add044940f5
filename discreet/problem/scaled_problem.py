"""A problem with its rows: as a copy in scaled columns, or as they are, each block scaled when it is read.

This is where loss, penalty, constraint, column scaling and rows meet. Solvers and the reference minimiser share it, so
that the private and the non-private objective cannot drift apart; what asks only for sums over rows gets one block at a
time. Nothing here adds noise.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
import scipy.sparse as sp

from discreet._common.types import FloatArray, IntArray
from discreet.data.people import person_slices
from discreet.data.rows import block_rows, block_slices, max_over_blocks, sum_over_blocks, takes_tensors
from discreet.kernels.gradient import margins_of, row_norms
from discreet.problem.column_scaling import ColumnScaling
from discreet.problem.coupled_penalties import RescaledPenalty
from discreet.problem.penalties import Penalty, PenaltyTerms, prox
from discreet.problem.scaled_block import BlockScaling, MatrixBlock, PartOfScaled, ScaledBlock

if TYPE_CHECKING:
    from discreet.data.public_inputs import PublicModel
    from discreet.data.rows import Data, Rows
    from discreet.problem.problem import Problem


@dataclass(frozen=True, eq=False, kw_only=True)
class BlockwiseProblem(ABC):
    """Penalty, constraint and rows in scaled columns; with an intercept the last column is all ones.

    Weights `w` have shape (columns,) or (outputs, columns). `rows` is the public number to divide by, `origin` a public
    start in these columns.
    """

    problem: Problem
    scaling: ColumnScaling
    rows: int
    penalty_terms: PenaltyTerms
    origin: FloatArray | None = None

    @classmethod
    def of(
        cls, problem: Problem, scaling: ColumnScaling, rows: int, start: PublicModel | None = None, **own: Any
    ) -> Self:
        """The problem in the columns of a scaling, from a public start if there is one."""
        terms, origin = scaled_penalty_terms(problem, scaling), scaled_start(problem, scaling, start)
        return cls(problem=problem, scaling=scaling, rows=rows, penalty_terms=terms, origin=origin, **own)

    @abstractmethod
    def blocks(self) -> Iterable[ScaledBlock]:
        """The rows in their order, cut as `discreet.data.rows` says; every call reads them anew."""

    @property
    def gives_blocks(self) -> bool:
        """Whether blocks can be had here; if not, only sums over them, as the rows lie on other machines."""
        return True

    @property
    def columns(self) -> int:
        return self.penalty_terms.l1.size

    @property
    def outputs(self) -> int:
        return self.problem.loss.outputs

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the weights."""
        return (self.columns,) if self.outputs == 1 else (self.outputs, self.columns)

    def start(self) -> FloatArray:
        """The data-free starting point: the public one, or the feasible point nearest to zero."""
        return self.nearest_to_zero() if self.origin is None else np.array(self.origin)

    def nearest_to_zero(self) -> FloatArray:
        """The feasible point nearest to zero."""
        return self.prox(np.zeros(self.shape), 1.0) if self.problem.constraint is not None else np.zeros(self.shape)

    def sum(self, part: Callable[[ScaledBlock], FloatArray]) -> FloatArray:
        """The sum of one array per block, added in the order of the blocks. Not private."""
        return sum_over_blocks(self.blocks(), part)

    def max(self, part: Callable[[ScaledBlock], FloatArray]) -> FloatArray:
        """The largest entries of one array per block. Not private."""
        return max_over_blocks(self.blocks(), part)

    def value(self, w: FloatArray) -> float:
        """The objective: mean loss plus penalty. Not private."""
        mean = float(self.sum(partial(ScaledBlock.loss_sum, w=w))[0]) / self.rows
        c = self.penalty_terms
        separable = float((c.l1 * np.abs(w)).sum() + 0.5 * (c.l2 * w**2).sum())
        return mean + separable + self._coupled_value(w)

    def gradient(self, w: FloatArray) -> FloatArray:
        """The exact gradient of the mean loss, without the penalty. Not private."""
        return self.sum(partial(_plain_gradient, w=w)) / self.rows

    def prox(self, v: FloatArray, step: Any) -> FloatArray:
        """Proximal map of the penalty, or projection onto a constraint that is not separable."""
        moved = prox(v, step, self.penalty_terms)
        if self.problem.separable or self.scaling.columns == 0:
            return moved
        inner = self.scaling.columns
        for row in np.atleast_2d(moved):
            row[:inner] = self._coupled_prox(row[:inner], step)
        return moved

    def _coupled_prox(self, point: FloatArray, step: float) -> FloatArray:
        """Proximal map of a penalty, or projection onto a set, that ties the coefficients of one output together."""
        penalty, constraint = self.problem.penalty, self.problem.constraint
        if isinstance(penalty, RescaledPenalty):
            return _checked_prox(penalty, point, lambda: penalty.scaled_prox(point, step, self._gain))
        # All columns have one scale here: w -> w / scale turns a step of the penalty into one of step / scale^2, and
        # projecting commutes with it.
        scale = float(self.scaling.scale[0])
        point = point / scale
        if constraint is not None:
            return scale * constraint.project(point)
        return scale * _checked_prox(penalty, point, lambda: penalty.prox(point, step / scale**2))

    def _coupled_value(self, w: FloatArray) -> float:
        """The part of the objective that a penalty adds which is not separable."""
        penalty, inner = self.problem.penalty, self.scaling.columns
        if penalty.separable or inner == 0:
            return 0.0
        gain = self._gain if isinstance(penalty, RescaledPenalty) else 1.0 / self.scaling.scale
        return sum(penalty.value(row[:inner] * gain) for row in np.atleast_2d(w))

    @property
    def _gain(self) -> FloatArray:
        """By what weights are multiplied to be the user's coefficients; that of a frozen column is released as 0."""
        return np.where(self.scaling.frozen, 0.0, 1.0 / self.scaling.scale)

    def residual(self, w: FloatArray, curvature: FloatArray) -> float:
        """The largest scaled move of a proximal gradient step; 0 exactly at the optimum. Not private."""
        if self.problem.separable:
            step: Any = 1.0 / curvature
        else:
            step = 1.0 / float(curvature.sum())
        move = (w - self.prox(w - step * self.gradient(w), step)) / np.sqrt(step)
        return float(np.abs(move).max(initial=0.0))

    def to_user(self, w: FloatArray) -> tuple[FloatArray, Any]:
        """Coefficients and intercept in the user's columns; the coefficients are feasible."""
        p = self.scaling.columns
        coef = self.scaling.coef(w[..., :p])
        coef = feasible(self.problem, coef)  # a frozen column's zero may lie outside
        intercept: Any = w[..., p] if self.problem.fit_intercept else np.zeros(w.shape[:-1])
        return coef, self.scaling.intercept(intercept, coef)


@takes_tensors
def _plain_gradient(block: ScaledBlock, w: FloatArray) -> FloatArray:
    return block.gradient_sum(w, np.ones(block.y.size), np.inf)


def _checked_prox(penalty: Penalty, point: FloatArray, prox: Callable[[], Any]) -> FloatArray:
    """The proximal map of a penalty, which a user may have written; points have been released, so it may complain."""
    mapped = np.asarray(prox())
    where = f"prox of the {penalty.name} penalty"
    if mapped.dtype.kind not in "fiu":
        raise ValueError(f"{where} must return real numbers, got values of type {mapped.dtype}.")
    if mapped.shape != point.shape:
        raise ValueError(f"{where} must return {point.size} numbers for {point.size} coefficients, got {mapped.shape}.")
    if not np.isfinite(mapped).all() and np.isfinite(point).all():
        raise ValueError(f"{where} returned numbers that are not finite for {point}.")
    return mapped


def feasible(problem: Problem, coef: FloatArray) -> FloatArray:
    """The coefficients in the constraint; what is inside keeps its zeros."""
    constraint = problem.constraint
    if constraint is None:
        return coef
    rows = [row if constraint.contains(row) else constraint.project(row) for row in np.atleast_2d(coef)]
    return np.stack(rows).reshape(coef.shape)


def scaled_start(problem: Problem, scaling: ColumnScaling, start: PublicModel | None) -> FloatArray | None:
    """Public coefficients and intercept as feasible weights of the scaled columns, the intercept last."""
    if start is None:
        return None
    coef = np.array(start.coef)
    if problem.constraint is not None:
        coef = np.stack([problem.constraint.project(row) for row in np.atleast_2d(coef)]).reshape(coef.shape)
    terms = problem.penalty_terms(scaling.columns)
    coef = np.clip(np.where(scaling.frozen, 0.0, coef), terms.low, terms.high)
    weights = scaling.from_user(coef)
    if not problem.fit_intercept:
        return weights
    # The prediction at the centre of the columns stays what it was, whatever was projected.
    intercept = start.intercept - scaling.intercept(0.0, start.coef)
    return np.concatenate([weights, np.asarray(intercept)[..., None]], axis=-1)


def scaling_for(problem: Problem, scaling: ColumnScaling) -> ColumnScaling:
    """The scaling as the problem needs it: one scale for all columns, the target in units of its mean."""
    if problem.common_scale:
        scaling = scaling.uniform()
    return scaling.with_log_target(problem.fit_intercept) if problem.loss.log_link else scaling


def scaled_penalty_terms(problem: Problem, scaling: ColumnScaling) -> PenaltyTerms:
    """The penalty in scaled columns, with that of the intercept, which is none, last.

    Of a target in units of its mean the loss is smaller by a power of the mean, and so must the penalty be.
    """
    inner = scaling.penalty_terms(problem.penalty_terms(scaling.columns))
    extra = int(problem.fit_intercept)
    unit = float(np.exp(scaling.target_shift * problem.loss.target_power)) if scaling.log_target else 1.0
    none, end = np.zeros(extra), np.full(extra, np.inf)
    l1, l2 = np.append(inner.l1 / unit, none), np.append(inner.l2 / unit, none)
    return PenaltyTerms(l1, l2, np.append(inner.low, -end), np.append(inner.high, end))


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
    X = scaling.matrix(data, order, problem.fit_intercept)
    y = data.y if problem.loss.classification else scaling.target(data.y)
    return ScaledProblem.of(problem, scaling, rows, start, X=X, y=y, weight=data.weight, persons=data.persons)


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
    return UnscaledProblem.of(problem, scaling_for(problem, scaling), rows, start, source=source)
