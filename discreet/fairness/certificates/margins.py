"""Margins of the predictions of a linear classifier, and how fast they move with its parameters.

Theorems: docs/guarantees/fairness.md, 1 and 2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet._common.types import BoolArray, FloatArray, IndexArray

if TYPE_CHECKING:
    from discreet.fairness.certificates.classifier import LinearClassifier
    from discreet.theory.distance import DistanceLaw

ROUNDING = 2.0**-50  # of a sum of products, relative to the product of the norms and the number of terms


@dataclass(frozen=True, eq=False)
class Margins:
    """How far each row's prediction is from changing.

    Attributes
    ----------
    gaps : array of shape (rows, rivals)
        The score of the row's label minus the score of each other class (for two classes y * score, y = +-1).
    correct : array of shape (rows,)
        Whether the row's label is predicted.
    lipschitz : array of shape (rows,)
        How far the gaps can move per unit of distance between parameters.
    rounding : float
        A distance that covers the rounding errors of the margins.
    """

    gaps: FloatArray
    correct: BoolArray
    lipschitz: FloatArray
    rounding: float = 0.0

    @cached_property
    def margin(self) -> FloatArray:
        """The least gap: positive only if the prediction is correct, negative only if it is wrong."""
        return self.gaps.min(axis=1)

    @property
    def rivals(self) -> int:
        return self.gaps.shape[1]

    @cached_property
    def needed(self) -> FloatArray:
        """The distance that parameters must move before the correctness of a row can change; inf if it never can."""
        return self._distances(np.abs(self.margin))

    def _distances(self, gaps: FloatArray) -> FloatArray:
        speed = self.lipschitz if gaps.ndim == 1 else self.lipschitz[:, None]
        moved = np.divide(
            gaps, speed, out=np.full(gaps.shape, math.inf), where=np.broadcast_to(speed > 0.0, gaps.shape)
        )
        return np.where(moved < 0.0, moved, np.maximum(moved - self.rounding, 0.0))

    def flip_probabilities(self, deviation: float, error: float = 0.0) -> FloatArray:
        """At most how probably Gaussian noise changes the correctness of each row, for margins without that noise.

        `deviation` and `error` are those of a `GaussianDistance`.
        """
        # A correct row becomes wrong if any rival wins.
        needed = np.where(self.correct[:, None], self._distances(self.gaps), math.inf)
        needed[~self.correct, 0] = self.needed[~self.correct]  # a wrong one becomes correct only past its best rival
        return np.minimum(normal_above(needed - error, deviation).sum(axis=1), 1.0)


def normal_above(level: FloatArray, deviation: float) -> FloatArray:
    """The probability that a centred normal variable is at least the level."""
    from scipy.special import ndtr

    if deviation == 0.0:
        return (level <= 0.0).astype(np.float64)
    return np.asarray(ndtr(-level / deviation))


def gaps_of(scores: FloatArray, label: IndexArray) -> tuple[FloatArray, BoolArray]:
    """The gaps of scores (rows, outputs), and whether the label, an index among the classes, is predicted."""
    if scores.shape[1] == 1:
        positive = label == 1
        return np.where(positive[:, None], scores, -scores), (scores[:, 0] > 0.0) == positive
    rows = np.arange(label.size)
    others = np.ones(scores.shape, dtype=bool)
    others[rows, label] = False
    rivals = scores[others].reshape(label.size, -1)
    return scores[rows, label][:, None] - rivals, scores.argmax(axis=1) == label


def margins_of(classifier: LinearClassifier, law: DistanceLaw, table: Any, label: IndexArray) -> Margins:
    """The margins of all rows, by the indices of their labels; `table` is what `LinearClassifier.features` returned."""
    weights = classifier.weights
    if law.weights.size != weights.shape[1] or law.outputs != weights.shape[0]:
        raise ValueError(
            f"the distance law is about {law.outputs} x {law.weights.size} parameters, the model has "
            f"{weights.shape[0]} x {weights.shape[1]}."
        )
    speed = 1.0 if weights.shape[0] == 1 else math.sqrt(2.0)
    gaps, correct, lipschitz = [], [], []
    for part in classifier.blocks(table):
        rows = classifier.rows(table[part])
        gap, right = gaps_of(rows @ weights.T, label[part])
        gaps.append(gap)
        correct.append(right)
        lipschitz.append(speed * law.row_norms(rows))
    norm = math.sqrt(float((np.square(weights) * law.weights).sum()))
    rounding = ROUNDING * weights.shape[1] * norm
    return Margins(np.concatenate(gaps), np.concatenate(correct), np.concatenate(lipschitz), rounding)
