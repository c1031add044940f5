"""What is known about slopes and curvatures before the first step, from the problem alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from discreet.solvers._shared.clipping import planned_slope

if TYPE_CHECKING:
    from discreet.problem.losses import Loss
    from discreet.problem.penalties import PenaltyTerms
    from discreet.problem.problem import Problem

# Where these come from: docs/defaults.md.
MEDIAN_RESIDUAL = 0.6745  # of normal residuals, in standard deviations
CAUTION = 2.0  # steps are so much shorter than usual curvatures allow, since curvatures grow along with a fit


def first_curvature(loss: Loss) -> float:
    """That of the model before any is learned: its bound, or less where that is far from usual."""
    return min(loss.smoothness, CAUTION * loss.usual_curvature)


def is_free(terms: PenaltyTerms) -> bool:
    """Whether no weight has bounds."""
    return bool((np.isneginf(terms.low) & np.isposinf(terms.high)).all())


def first_slope(problem: Problem) -> float:
    """The median of the slopes at the start, in units of a usual one: those of labels at margin 0, or residuals."""
    loss = problem.loss
    if not loss.classification:
        return MEDIAN_RESIDUAL
    labels = np.array([-1.0, 1.0]) if loss.outputs == 1 else np.arange(loss.outputs, dtype=np.float64)
    margins = np.zeros(2) if loss.outputs == 1 else np.zeros((labels.size, loss.outputs))
    slopes = np.reshape(loss.slope(margins, labels), (labels.size, -1))
    return float(np.linalg.norm(slopes, axis=1).max()) / planned_slope(problem)


def least_shrinkage(problem: Problem) -> float:
    """By how much the threshold may fall halfway.

    Residuals shrink; slopes of labels grow where labels are rare, and these few rows, which may be too few to be seen
    in the counts, must not be clipped.
    """
    return 1.0 if problem.loss.classification else 0.5
