"""Every row in one part, chosen without looking at any row."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from discreet._common.types import IndexArray
from discreet.privacy.relation import Relation

if TYPE_CHECKING:
    from discreet.privacy.random.generator import RandomGenerator


def assign_rows(
    relation: Relation, rows: int, parts: int, part_rows: int, rng: RandomGenerator, shuffle: bool = True
) -> list[IndexArray]:
    """The rows of each part: at most `part_rows`, or any number where the number of rows is private."""
    if relation is Relation.ADD_REMOVE:
        # Each row draws its own part: one row more or less leaves the others where they are.
        part = rng.integers(parts, rows)
        ends = np.cumsum(np.bincount(part, minlength=parts))
        return np.split(np.argsort(part, kind="stable"), ends[:-1])
    order = rng.permutation(rows) if shuffle else np.arange(rows, dtype=np.int64)
    return [order[start : start + part_rows] for start in range(0, rows, part_rows)]
