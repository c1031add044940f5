"""One trial of a search, and the rows that it is fitted and scored on."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing

from discreet._common.types import FloatArray, IndexArray
from discreet.privacy.random.generator import RandomGenerator
from discreet.privacy.relation import Relation
from discreet.privacy.release import ReleasePlan


@dataclass(frozen=True, eq=False)
class Trial:
    """What a trial would release: its settings, its model and its noisy score; and what it warned of."""

    settings: dict[str, Any]
    model: Any
    score: float
    warnings: tuple[warnings.WarningMessage, ...] = ()


@dataclass(frozen=True, eq=False)
class Parts:
    """The rows to fit on and those held out, with their weights."""

    X_fit: Any
    y_fit: Any
    weight_fit: FloatArray
    X_out: Any
    y_out: Any
    weight_out: FloatArray


@dataclass(frozen=True, eq=False)
class Split:
    """Positions of the rows to fit on and of those held out, the same for all trials."""

    fit: IndexArray
    out: IndexArray

    @classmethod
    def draw(cls, plan: ReleasePlan, rows: int, relation: Relation, rng: RandomGenerator) -> Split:
        """Positions that no row decides about; under add/remove each row has a coin of its own.

        A fixed number of rows held out would change the place of other rows when one is added.
        """
        if relation is Relation.ADD_REMOVE:
            held_out = rng.integers(plan.rows, rows) < plan.held_out
        else:
            held_out = np.zeros(rows, dtype=bool)
            held_out[rng.permutation(rows)[: plan.held_out]] = True
        return cls(np.flatnonzero(~held_out), np.flatnonzero(held_out))

    def parts(self, X: Any, y: Any, weight: FloatArray) -> Parts:
        """The rows at these positions."""
        X_fit, y_fit, X_out, y_out = (_safe_indexing(a, at) for at in (self.fit, self.out) for a in (X, y))
        return Parts(X_fit, y_fit, weight[self.fit], X_out, y_out, weight[self.out])
