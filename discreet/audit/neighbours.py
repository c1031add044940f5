"""Neighbouring tables: which rows to change, so that an audit looks at the worst case and not at a usual one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from discreet._common.types import BoolArray, FloatArray, IntArray
from discreet.data.rows import Data
from discreet.privacy.relation import Relation

HUGE, TINY = 1e308, 5e-324


def neighbours(
    relation: Relation, X: FloatArray, y: FloatArray, weight: FloatArray, row: FloatArray, at: int
) -> tuple[Data, Data]:
    """Two neighbouring tables: one row replaced by `row`, turned into a null row (weight 0), or left out.

    A row that is replaced takes the target and the weight of the row before it.
    """
    first = Data(X, y, weight)
    if relation is Relation.REPLACE:
        other_X, other_y, other_weight = X.copy(), y.copy(), weight.copy()
        other_X[at], other_y[at], other_weight[at] = row, y[at - 1], weight[at - 1]
        return first, Data(other_X, other_y, other_weight)
    return first, without_row(first, relation, at)


def without_row(data: Data, relation: Relation, at: int) -> Data:
    """The table with one row turned into a null row (zero_out) or left out (add_remove)."""
    weight = np.ones(data.rows) if data.weight is None else data.weight
    if relation is Relation.ZERO_OUT:
        zeroed = weight.copy()
        zeroed[at] = 0.0
        return Data(data.X, data.y, zeroed)
    keep = np.arange(data.rows) != at
    return Data(data.X[keep], data.y[keep], weight[keep])


def flipped_row(
    relation: Relation, *, row: ArrayLike = (1.0,), rest: ArrayLike = (0.0,), rows: int = 3, target: float = 1.0
) -> tuple[Data, Data]:
    """The usual worst case for a gradient: the first row turns around, becomes null or is left out.

    Parameters
    ----------
    relation : Relation
    row, rest : array-like
        Entries of the row that changes, and of each other row.
    rows : int
        How many rows there are.
    target : float
        The target of every row.
    """
    X = np.tile(np.asarray(rest, dtype=np.float64), (rows, 1))
    X[0] = row
    return neighbours(relation, X, np.full(rows, target), np.ones(rows), -X[0], 0)


def flipped_person(relation: Relation, *, rows: int = 10, persons: int = 3) -> tuple[Data, Data]:
    """The same for persons: the first has so many rows x = 1, all of which turn around, become null or are left out.

    Every other person has one row x = 0; all targets are 1.
    """
    numbers = np.concatenate([np.zeros(rows, dtype=np.int64), np.arange(1, persons)])
    X = (numbers == 0).astype(np.float64)[:, None]
    first = Data(X, np.ones(numbers.size), np.ones(numbers.size), persons=numbers)
    if relation is Relation.REPLACE:
        return first, replace(first, X=-X)
    if relation is Relation.ZERO_OUT:
        return first, replace(first, weight=np.where(numbers == 0, 0.0, 1.0))
    return first, Data(X[rows:], first.y[rows:], np.ones(persons - 1), persons=numbers[rows:] - 1)


def flipped_target(relation: Relation, target: float, *, rows: int = 2) -> tuple[Data, Data]:
    """A row x = 1 among rows of zeros, whose target changes from `target` to its opposite, or which vanishes."""
    X = np.zeros((rows, 1))
    X[0] = 1.0
    first = Data(X, np.full(rows, target), np.ones(rows))
    if relation is not Relation.REPLACE:
        return first, without_row(first, relation, 0)
    return first, Data(X, _with_row(first.y, 0, -target), np.ones(rows))


@dataclass(frozen=True, eq=False)
class NeighbourPair:
    """A table and a neighbour of it, with the name of what was done to the row."""

    change: str
    first: Data
    second: Data


def hostile_neighbours(
    data: Data, relation: Relation, rng: np.random.Generator, labels: FloatArray | None = None
) -> Iterator[NeighbourPair]:
    """Neighbours of a table in which a random row is hostile: turned around, huge, tiny, zero, or at a corner.

    Parameters
    ----------
    data : Data
        Any table in memory with dense rows.
    relation : Relation
        Under `replace` the row becomes each of the hostile rows; otherwise each of them vanishes in turn.
    rng : numpy Generator
        Chooses the row and the corner.
    labels : ndarray, optional
        The labels that a classification allows; the row takes another one. By default targets are numbers, and the
        row's becomes huge.
    """
    X, y = np.asarray(data.X, dtype=np.float64), np.asarray(data.y, dtype=np.float64)
    weight = np.ones(data.rows) if data.weight is None else data.weight
    signs = rng.choice([-1.0, 1.0], data.columns)
    at = int(rng.integers(data.rows))
    largest = np.abs(X).max(axis=0)
    changes = {
        "turned around": -X[at],
        "corner of the range": signs * largest,
        "huge": signs * HUGE,
        "tiny": signs * TINY,
        "zeros": np.zeros(data.columns),
    }
    for change, row in changes.items():
        target = _other_target(y[at], change, labels, rng)
        hostile = Data(_with_row(X, at, row), _with_row(y, at, target), weight)
        if relation is Relation.REPLACE:
            yield NeighbourPair(change, Data(X, y, weight), hostile)
        else:
            yield NeighbourPair(change, hostile, without_row(hostile, relation, at))


def removed_row(first: Data, second: Data) -> int:
    """The number of the row that the second table lacks."""
    if first.rows == second.rows + 1:
        places = np.arange(second.rows)
        differs = np.append(_differs(first, second, places, places), True)
        at = int(differs.argmax())
        if not _differs(first, second, places[at:] + 1, places[at:]).any():
            return at
    raise ValueError("under add_remove the neighbour must be the table without one of its rows.")


def removed_person(first: Data, second: Data) -> int:
    """The number of the person whom the second table lacks; all others keep their order and that of their rows."""
    persons = np.zeros(first.rows, dtype=np.int64) if first.persons is None else first.persons
    for person in range(first.units if second.persons is not None else 0):
        kept = np.flatnonzero(persons != person)
        if (
            np.array_equal(persons[kept] - (persons[kept] > person), np.asarray(second.persons))
            and not _differs(first, second, kept, np.arange(second.rows)).any()
        ):
            return person
    raise ValueError("under add_remove the neighbour must be the table without all rows of one of its persons.")


def _differs(first: Data, second: Data, of_first: IntArray, of_second: IntArray) -> BoolArray:
    """Which of these pairs of rows differ in an entry, the target or the weight."""
    found = first.y[of_first] != second.y[of_second]
    if first.weight is not None and second.weight is not None:
        found = found | (first.weight[of_first] != second.weight[of_second])
    if not first.sparse:
        return np.asarray(found | (first.X[of_first] != second.X[of_second]).any(axis=1))
    unequal = (first.X.tocsr()[of_first] != second.X.tocsr()[of_second]).tocoo()
    found = found.copy()
    found[unequal.coords[0][unequal.data]] = True
    return found


def _other_target(target: float, change: str, labels: FloatArray | None, rng: np.random.Generator) -> float:
    if labels is None:
        return HUGE if change == "huge" else -target
    others = labels[labels != target]
    return float(rng.choice(others)) if others.size else target


def _with_row(values: FloatArray, at: int, row: FloatArray | float) -> FloatArray:
    changed = values.copy()
    changed[at] = row
    return changed
