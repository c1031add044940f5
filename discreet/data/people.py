"""Several rows of one person: ids, the rows that are used of each person, and their weights.

A person's rows together weigh at most as much as one row, so that every sum over the rows moves by no more than one row
can move it when all rows of a person change. Proof: docs/guarantees/people.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from discreet._common.types import FloatArray, IntArray
from discreet.data.rows import TERM_STEP, Data, block_rows

if TYPE_CHECKING:
    from discreet.privacy.random.generator import RandomGenerator


def person_numbers(groups: Any, rows: int) -> IntArray:
    """The ids of the rows as numbers 0, 1, ...; ids are used for equality alone, and may be of any type.

    The numbers of rows are private where a person may have several, so that no error tells them.
    """
    ids = values_by_row(groups, "groups")
    if ids.shape != (rows,):
        raise ValueError("groups must hold one id per row of X, in the order of the rows.")
    if _missing(ids).any():
        raise ValueError(
            "groups has missing ids, and rows without one may all belong to one person; give every row an id, or leave "
            "out the rows that have none."
        )
    if ids.dtype == object:
        return _numbers_of_objects(ids)
    return np.unique(ids, return_inverse=True)[1].astype(np.int64)


def _numbers_of_objects(ids: Any) -> IntArray:
    """Numbers for Python objects, by equality and hash: an order of their own, as that of sets, need not sort them."""
    numbers: dict[Any, int] = {}
    try:
        numbered = np.array([numbers.setdefault(one, len(numbers)) for one in ids], dtype=np.int64)
    except TypeError:
        raise ValueError(
            "groups has ids that cannot be looked up, such as lists; use numbers, texts or tuples."
        ) from None
    if len({str(one) for one in numbers}) < len(numbers):  # a column read in parts may hold both for one person
        raise ValueError(
            "groups has ids of different types with the same text, as 1 and '1' have, which may be one person or two; "
            "give all ids one type."
        )
    return numbered


def values_by_row(values: Any, name: str) -> Any:
    """One value per row, from NumPy, pandas, Polars, Arrow or a list; a list of several types keeps them."""
    if hasattr(values, "to_pylist"):
        values = values.to_pylist()
    if hasattr(values, "to_numpy"):
        values = array_of(values)
    if isinstance(values, np.ndarray) and values.dtype.kind != "V":
        return values
    if isinstance(values, (str, bytes)) or not hasattr(values, "__len__"):
        what = "id" if name == "groups" else "value"
        raise ValueError(f"{name} must be an array or a list with one {what} per row of X.")
    found = np.empty(len(values), dtype=object)
    for place, one in enumerate(values):  # one by one: an array would make columns of tuples
        found[place] = one.item() if isinstance(one, np.void) else one
    return found


def array_of(column: Any) -> Any:
    """A column of pandas or Polars as an array; of objects where NumPy has no type for it, as for 128 bits.

    One large number gives a column of Polars such a type: it must not be an error.
    """
    try:
        return np.asarray(column.to_numpy())
    except Exception:
        found = np.empty(len(column), dtype=object)
        found[:] = column.to_list()
        return found


def _missing(ids: Any) -> Any:
    """Which ids are None, NaN or NaT, pandas' NA, masked, or have such a part."""
    masked = np.ma.getmaskarray(ids)
    if ids.dtype.kind in "fcmM":
        return masked | (ids != ids)  # noqa: PLR0124
    if ids.dtype != object:
        return masked
    return masked | np.array([is_missing(one) for one in ids], dtype=bool)


def is_missing(one: Any) -> bool:
    """Whether a value is None, NaN, NaT, NA or masked, or has such a part; of these None alone equals itself."""
    if isinstance(one, (tuple, frozenset)):
        return any(map(is_missing, one))
    return one is None or type(one).__name__ == "NAType" or one is np.ma.masked or bool(np.any(one != one))  # noqa: PLR0124


def gather_persons(data: Data, most: int, rng: RandomGenerator) -> Data:
    """At most `most` rows of each person, the rows of a person one after the other, persons in a random order.

    With `most` = 1 the result is a plain table of one row per person. Else the rows of a person are weighted so that
    their weights sum to at most 1, and `persons` says whose they are.

    Guarantee: which rows are drawn, and the order, do not depend on the values of any row.
    """
    if data.persons is None:
        return data
    shuffled = rng.permutation(data.rows)
    places = rng.permutation(data.units)[data.persons[shuffled]]
    order = np.argsort(places, kind="stable")
    chosen, persons = shuffled[order], places[order]
    rank = np.arange(data.rows) - np.searchsorted(persons, persons)  # the number of a row among those of its person
    chosen, persons = chosen[rank < most], persons[rank < most]
    X = data.X.tocsr()[chosen] if data.sparse else data.X[chosen]
    weight = None if data.weight is None else data.weight[chosen]
    if most == 1:
        return Data(X, data.y[chosen], weight, owned=not data.sparse)
    return Data(X, data.y[chosen], person_weights(persons, weight), owned=not data.sparse, persons=persons)


def person_weights(persons: IntArray, weight: FloatArray | None) -> FloatArray:
    """The weight of each row over the number of its person's rows, cut to multiples of `TERM_STEP`.

    Guarantee: the weights of a person are multiples of the step and sum to at most 1, exactly.
    """
    steps = np.floor((np.ones(persons.size) if weight is None else weight) / TERM_STEP).astype(np.int64)
    whole = steps // np.bincount(persons)[persons]  # integers: nothing is rounded up
    return np.asarray(whole, dtype=np.float64) * TERM_STEP


def person_bounds(persons: IntArray) -> IntArray:
    """Where each person's rows begin, and where the last one's end; persons lie one after the other."""
    first = np.flatnonzero(np.diff(persons, prepend=-1))
    return np.append(first, persons.size).astype(np.int64)


def person_slices(persons: IntArray, columns: int) -> list[slice]:
    """Blocks of about `block_rows(columns)` rows none of which divides the rows of a person."""
    ends = person_bounds(persons)
    size, slices, start = block_rows(columns), [], 0
    while start < persons.size:
        stop = int(ends[np.searchsorted(ends, min(start + size, persons.size))])
        slices.append(slice(start, stop))
        start = stop
    return slices
