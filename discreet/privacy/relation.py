"""Which two tables count as neighbours: the first half of every privacy claim."""

from __future__ import annotations

from enum import StrEnum
from typing import Any


class Relation(StrEnum):
    """A neighbouring relation between tables.

    REPLACE     same number of rows, one row changed arbitrarily; n is public.
    ZERO_OUT    same number of rows, one row turned into a null row that contributes nothing; n is public.
    ADD_REMOVE  one row more or less; n is private, the caller supplies a public row count to divide by.
    """

    REPLACE = "replace"
    ZERO_OUT = "zero_out"
    ADD_REMOVE = "add_remove"

    @property
    def factor(self) -> int:
        """How far a sum of vectors of norm at most 1 can move: 2 when a row is replaced, else 1."""
        return 2 if self is Relation.REPLACE else 1

    @property
    def explanation(self) -> str:
        """One sentence for people who read privacy statements."""
        return _EXPLANATIONS[self]


_EXPLANATIONS = {
    Relation.REPLACE: "two tables are neighbours if they have the same number of rows and differ in one row",
    Relation.ZERO_OUT: "two tables are neighbours if one row of one is a null row, which contributes nothing,"
    " in the other",
    Relation.ADD_REMOVE: "two tables are neighbours if one has exactly one row more than the other",
}


def relation_from(relation: Any) -> Relation:
    try:
        return Relation(relation)
    except ValueError:
        allowed = ", ".join(repr(str(r)) for r in Relation)
        raise ValueError(f"relation must be one of {allowed}; got {relation!r}.") from None
