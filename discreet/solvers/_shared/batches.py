"""Sizes of batches, and the rows of each: chosen without looking at any row."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from discreet._common.types import IndexArray
from discreet.privacy.relation import Relation

if TYPE_CHECKING:
    from discreet.privacy.budget import Budget
    from discreet.privacy.random.generator import RandomGenerator


BATCHES_OF_A_FILE = (
    "every step reads the whole table, which is stored, and uses {rate:.2g} of its rows; gd uses all rows of a pass"
)


def sampling_lowers_cost(budget: Budget) -> bool:
    """Whether a random sample of the rows costs less than all of them, in the definition of the budget.

    In mu-GDP and rho-zCDP it does not: docs/guarantees/sgd.md, Theorem 4.
    """
    return budget.kind not in ("gdp", "zcdp") or budget.is_infinite


def batch_rows(asked: int | None, default: float, rows: int, budget: Budget) -> int:
    """The expected size of a Poisson batch: as asked, or the default, or all rows where a sample costs as much."""
    if asked is None and not sampling_lowers_cost(budget):
        return rows
    return min(rows, int(asked if asked is not None else default))


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
