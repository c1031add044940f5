"""Accelerated proximal gradient steps (FISTA, Beck and Teboulle 2009): the one copy that all minimisers use."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial

import numpy as np

from discreet._common.types import FloatArray
from discreet.problem.scaled_problem import BlockwiseProblem, ScaledBlock

LARGEST_MATRIX = 2_000  # columns up to which the second-moment matrix is formed, in one pass
POWER_ITERATIONS = 100


def accelerated_steps(
    problem: BlockwiseProblem, w: FloatArray, step: float, restarts: bool = True
) -> Iterator[FloatArray]:
    """The iterates after w, without end.

    With `restarts` the momentum is forgotten whenever a step goes uphill (O'Donoghue and Candes 2015), which is faster
    on strongly convex problems; without, the rate of the paper holds for every number of steps. Not private.
    """
    point, momentum = w, 1.0
    while True:
        moved = problem.prox(point - step * problem.gradient(point), step)
        if restarts and float(((point - moved) * (moved - w)).sum()) > 0.0:
            momentum = 1.0
        following = 0.5 * (1.0 + math.sqrt(1.0 + 4.0 * momentum**2))
        point = moved + (momentum - 1.0) / following * (moved - w)
        w, momentum = moved, following
        yield w


def largest_curvature(problem: BlockwiseProblem) -> float:
    """An upper estimate of the largest eigenvalue of the mean loss's Hessian: 1 / step. Not private."""
    p = problem.columns
    if p <= LARGEST_MATRIX:
        moment = problem.sum(_second_moment) / problem.rows
        value = float(np.linalg.eigvalsh(moment)[-1])
    else:
        vector = np.cos(np.arange(p))  # ones would miss tables whose columns cancel, such as x and -x
        vector /= np.linalg.norm(vector)
        for _ in range(POWER_ITERATIONS):
            product = problem.sum(partial(_product, vector=vector)) / problem.rows
            value = float(np.linalg.norm(product))
            vector = product / (value or 1.0)
    return 1.02 * max(value, 1e-12) * problem.problem.loss.smoothness


def _product(block: ScaledBlock, vector: FloatArray) -> FloatArray:
    return np.asarray(block.X.T @ (block.X @ vector))


def _second_moment(block: ScaledBlock) -> FloatArray:
    product = block.X.T @ block.X
    return np.asarray(product.toarray() if hasattr(product, "toarray") else product, dtype=np.float64)
