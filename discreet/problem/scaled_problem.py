"""A problem with its rows in the solver's coordinates: value, gradient, prox and how far from optimal.

This is where loss, penalty, constraint, frame and rows meet. Solvers and the reference minimiser share it,
so that the private and the non-private objective cannot drift apart. Nothing here adds noise.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from discreet._common.types import FloatArray
from discreet.kernels.gradient import clipped_gradient_sum, margins_of, row_norms
from discreet.problem.column_scaling import ColumnScaling
from discreet.problem.penalties import Coefficients, prox

if TYPE_CHECKING:
    from discreet.data.rows import Data
    from discreet.problem.problem import Problem


@dataclass(frozen=True, eq=False)
class ScaledProblem:
    """Rows, targets and penalty in scaled coordinates; with an intercept the last column is all ones.

    Weights `w` have shape (columns,) or (outputs, columns). `rows` is the public number to divide by.
    """

    problem: Problem
    scaling: ColumnScaling
    X: Any
    y: FloatArray
    weight: FloatArray | None
    rows: int
    coefficients: Coefficients

    @property
    def columns(self) -> int:
        return self.coefficients.l1.size

    @property
    def outputs(self) -> int:
        return self.problem.loss.outputs

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the weights."""
        return (self.columns,) if self.outputs == 1 else (self.outputs, self.columns)

    def start(self) -> FloatArray:
        """The data-free starting point: the feasible point nearest to zero."""
        return self.prox(np.zeros(self.shape), 1.0) if self.problem.constraint is not None else np.zeros(self.shape)

    @property
    def kernel_weight(self) -> FloatArray:
        """The row weights as kernels take them: an empty array stands for none."""
        return np.empty(0) if self.weight is None else self.weight

    def margins(self, w: FloatArray) -> FloatArray:
        return margins_of(self.X, w)

    def slopes(self, w: FloatArray) -> FloatArray:
        return self.problem.loss.slope(self.margins(w), self.y)

    def value(self, w: FloatArray) -> float:
        """The objective: mean loss plus penalty."""
        losses = self.problem.loss.value(self.margins(w), self.y)
        mean = float(losses.sum() if self.weight is None else losses @ self.weight) / self.rows
        c = self.coefficients
        return mean + float((c.l1 * np.abs(w)).sum() + 0.5 * (c.l2 * w**2).sum())

    def gradient(self, w: FloatArray) -> FloatArray:
        """The exact gradient of the mean loss (without the penalty)."""
        slopes = self.slopes(w)
        return clipped_gradient_sum(self.X, slopes, np.ones(slopes.shape[0]), np.inf, self.weight) / self.rows

    def norms(self) -> FloatArray:
        return row_norms(self.X)

    def prox(self, v: FloatArray, step: Any) -> FloatArray:
        """Proximal map of the penalty, or projection onto a constraint that is not separable."""
        moved = prox(v, step, self.coefficients)
        constraint = self.problem.constraint
        if constraint is None or constraint.separable:
            return moved
        # The frame scales all columns alike here, so projecting commutes with the change of coordinates.
        inner = self.scaling.columns
        scale = float(self.scaling.scale[0])
        for row in np.atleast_2d(moved):
            row[:inner] = scale * constraint.project(row[:inner] / scale)
        return moved

    def residual(self, w: FloatArray, curvature: FloatArray) -> float:
        """The largest scaled move of a proximal gradient step; 0 exactly at the optimum."""
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
        constraint = self.problem.constraint
        if constraint is not None:  # a frozen column's zero may lie outside; what is inside keeps its zeros
            rows = [row if constraint.contains(row) else constraint.project(row) for row in np.atleast_2d(coef)]
            coef = np.stack(rows).reshape(coef.shape)
        intercept: Any = w[..., p] if self.problem.fit_intercept else np.zeros(w.shape[:-1])
        return coef, self.scaling.intercept(intercept, coef)


def scale_problem(
    problem: Problem, data: Data, scaling: ColumnScaling, rows: int, order: Literal["C", "F"]
) -> ScaledProblem:
    """Copy the rows into the frame once, in the order the solver wants."""
    if not problem.separable:
        scaling = scaling.uniform()
    inner = scaling.coefficients(problem.coefficients(scaling.columns))
    extra = int(problem.fit_intercept)
    coefficients = Coefficients(
        l1=np.append(inner.l1, np.zeros(extra)),
        l2=np.append(inner.l2, np.zeros(extra)),
        low=np.append(inner.low, np.full(extra, -np.inf)),
        high=np.append(inner.high, np.full(extra, np.inf)),
    )
    return ScaledProblem(
        problem=problem,
        scaling=scaling,
        X=scaling.matrix(data, order, problem.fit_intercept),
        y=data.y if problem.loss.classification else scaling.target(data.y),
        weight=data.weight,
        rows=rows,
        coefficients=coefficients,
    )
