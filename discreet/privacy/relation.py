"""Which two tables count as neighbours: part of every privacy claim."""

from __future__ import annotations

from enum import StrEnum
from typing import Any


class Relation(StrEnum):
    """A neighbouring relation between tables.

    Attributes
    ----------
    REPLACE
        Same number of rows, one row changed arbitrarily; the number of rows is public.
    ZERO_OUT
        Same number of rows, one row turned into a null row that contributes nothing; the number of rows is public.
    ADD_REMOVE
        One row more or less; the number of rows is private, and the caller supplies a public one to divide by.

    Examples
    --------
    >>> from discreet import Relation
    >>> Relation("replace").factor, Relation("zero_out").factor
    (2, 1)
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
    """Return the relation of this name, or a ValueError that lists the names."""
    try:
        return Relation(relation)
    except ValueError:
        allowed = ", ".join(repr(str(r)) for r in Relation)
        raise ValueError(f"relation must be one of {allowed}; got {relation!r}.") from None
