"""Group fairness notions, each declared once; what they ask, print and need follows from the declarations.

Formulas and proofs: docs/guarantees/fairness.md, Theorem 4.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True)
class Notion:
    """How often an event holds among the rows of a group, less how often it holds among those of all groups.

    Attributes
    ----------
    name : str
    labels : {"each", "favourable", "together"}
        Which rows are compared with each other: those with the same label, for each label or for the favourable ones,
        or all rows together.
    event : {"correct", "favourable"}
        The event: that the prediction is correct, or that it is the one favourable label of two.
    groups : bool
        Whether groups are compared; if not, it is one number about all rows.
    spellings : tuple of str
        Other names that are taken.
    """

    name: str
    labels: Literal["each", "favourable", "together"]
    event: Literal["correct", "favourable"] = "correct"
    groups: bool = True
    spellings: tuple[str, ...] = ()

    @property
    def compares_predictions(self) -> bool:
        """Whether it compares predictions for people who are alike: all of them, or those of one label."""
        return self.event == "favourable" or self.labels != "together"

    def counts_wrong(self, label: Any, favourable: Sequence[Any]) -> bool:
        """Whether the event holds where the prediction for a row of this label is wrong: there are two labels."""
        return self.event == "favourable" and label not in favourable

    def why_not(self, labels: int, favourable: Sequence[Any]) -> str | None:
        """Why so many labels, some of them favourable, do not allow it; None if they do."""
        if self.event == "favourable" and labels != 2:
            return "is a function of correct predictions for two labels only"
        if self.event == "favourable" and len(favourable) != 1:
            return "needs exactly one favourable label"
        if self.labels == "favourable" and not favourable:
            return "needs favourable=..., the label or labels that are a good outcome"
        return None


NOTIONS = {
    notion.name: notion
    for notion in (
        Notion("equalised odds", labels="each", spellings=("equalized odds",)),
        Notion("equality of opportunity", labels="favourable"),
        Notion("demographic parity", labels="together", event="favourable"),
        Notion("accuracy parity", labels="together"),
        Notion("accuracy", labels="together", groups=False),
    )
}


def notion_of(name: str, among: Iterable[str] = NOTIONS, what: str = "notions must be among") -> Notion:
    """The notion of this name; one that is not among the names is refused."""
    names = list(among)
    for notion in map(NOTIONS.__getitem__, names):
        if name in (notion.name, *notion.spellings):
            return notion
    raise ValueError(f"{what} {', '.join(map(repr, names))}; got {name!r}.")
