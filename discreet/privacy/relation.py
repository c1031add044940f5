"""Which two tables count as neighbours: part of every privacy claim."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Literal

Unit = Literal["row", "person"]  # what neighbouring tables differ in: one row, or a person with all of their rows
UNITS: tuple[Unit, ...] = ("row", "person")


def relation_for(relation: Relation | str, unit: str) -> str:
    """The relation, and the unit if it is not the row."""
    return f"{relation}, for whole persons" if unit == "person" else str(relation)


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

    def explanation_for(self, unit: Unit) -> str:
        """The same sentence where neighbours differ in this unit."""
        return _EXPLANATIONS[self] if unit == "row" else _PERSON_EXPLANATIONS[self]


_EXPLANATIONS = {
    Relation.REPLACE: "two tables are neighbours if they have the same number of rows and differ in one row",
    Relation.ZERO_OUT: "two tables are neighbours if one row of one is a null row, which contributes nothing,"
    " in the other",
    Relation.ADD_REMOVE: "two tables are neighbours if one has exactly one row more than the other",
}
_PERSON_EXPLANATIONS = {
    Relation.REPLACE: "two tables are neighbours if they have the same number of persons and differ in one person, that"
    " is in any number of rows that have this person's id",
    Relation.ZERO_OUT: "two tables are neighbours if all rows of one person in one of them are null rows, which"
    " contribute nothing, in the other",
    Relation.ADD_REMOVE: "two tables are neighbours if one has exactly one person more than the other, with all rows of"
    " this person",
}


def unit_from(unit: Any) -> Unit:
    """Return the unit of this name, or a ValueError that lists the names."""
    for known in UNITS:
        if unit == known:
            return known
    raise ValueError(f"unit must be 'row' or 'person'; got {unit!r}.")


def relation_from(relation: Any) -> Relation:
    """Return the relation of this name, or a ValueError that lists the names."""
    try:
        return Relation(relation)
    except ValueError:
        allowed = ", ".join(repr(str(r)) for r in Relation)
        raise ValueError(f"relation must be one of {allowed}; got {relation!r}.") from None
