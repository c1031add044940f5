"""What is publicly known about the columns of a table: names, kinds, bounds, categories and the target.

A schema is written by people from public knowledge, never from the rows. It turns a table into numbers:
number columns stay as they are, a category column becomes one column of zeros and ones per category.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from discreet._common.codec import built, written
from discreet._common.json_file import read_json_file
from discreet.data.schema_column import Column, as_text, check_limits
from discreet.privacy.relation import Relation

FORMAT = "discreet schema 1"
Label = str | int | float | bool

NOTES = (
    "Fill this in from public knowledge, not from the rows: what you write here is not protected.",
    'type: "number", "category" (then list every value under categories), "date" (ISO; becomes days) or "ignore".',
    "low, high: limits that every value of a number column obeys; values outside are moved to the limit. "
    "Where one of them is missing the range of the column is learned privately, inside the other one.",
    "categories: compared as text; a value that is not listed counts as none of them, without a message.",
    'missing: what a missing value becomes, a value or "indicator", which adds a column that says where it is missing.',
    'epoch: from which a date counts its days. decimal: "," if numbers are written so.',
    "target: the name of the column to predict; classes for a classification, low and high for a regression.",
    "person: the name of the column with the id of each row's person, if a person may have several rows.",
    'relation: "replace" (a row changes), "zero_out" (a row stops counting) or "add_remove" (a row more or less).',
)


@dataclass(frozen=True)
class Target:
    """The column to predict: `classes` make it a classification, `low` and `high` a regression."""

    name: str | None = None
    classes: tuple[Label, ...] | None = None
    low: Any = None
    high: Any = None

    def __post_init__(self) -> None:
        if self.name is not None and not isinstance(self.name, str):
            raise ValueError(f"the name of the target must be text or null; got {self.name!r}.")
        check_limits("the target", self.low, self.high)
        if self.classes is None:
            return
        if self.low is not None:
            raise ValueError("the target has classes and bounds; a classification has no bounds.")
        if len(set(self.classes)) != len(self.classes) or len(self.classes) < 2:
            raise ValueError(f"the target needs at least two different classes; got {list(self.classes)}.")

    @property
    def task(self) -> str | None:
        """The task that the declarations imply, or None if they leave it open."""
        if self.classes is not None:
            return "classification"
        return None if self.low is None else "regression"

    @property
    def is_text(self) -> bool:
        """Whether its values are compared as text."""
        return self.classes is not None and any(isinstance(label, str) for label in self.classes)

    @property
    def labels(self) -> list[Label] | None:
        """The classes in the form in which the target is read: all text, or all numbers."""
        if self.classes is None:
            return None
        return [as_text(label) for label in self.classes] if self.is_text else list(self.classes)


@dataclass(frozen=True)
class Schema:
    """The columns of a table, its target and the neighbouring relation."""

    columns: tuple[Column, ...]
    target: Target = field(default_factory=Target)
    relation: Relation = Relation.REPLACE
    person: str | None = None  # the column with the id of each row's person, where a person may have several rows

    def __post_init__(self) -> None:
        names = [column.name for column in self.columns]
        if self.person is not None and not (isinstance(self.person, str) and self.person):
            raise ValueError(f"person must be the name of a column or null; got {self.person!r}.")
        if self.person is not None and self.person == self.target.name:
            raise ValueError(f"column {self.person!r} cannot be the target and hold the ids of persons.")
        twice = sorted(name for name, count in Counter(names).items() if count > 1)
        if twice:
            raise ValueError(f"column {twice[0]!r} occurs twice; every column needs a name of its own.")
        features = self.feature_names
        if len(set(features)) != len(features):
            raise ValueError("two columns would get the same name after encoding; rename one of them.")

    @property
    def used(self) -> tuple[Column, ...]:
        """The columns the model is trained on."""
        unused = {self.target.name, self.person}
        return tuple(c for c in self.columns if c.type != "ignore" and c.name not in unused)

    @property
    def feature_names(self) -> list[str]:
        return [feature for column in self.used for feature in column.features]

    @property
    def bounds(self) -> tuple[list[float | None], list[float | None]] | None:
        """Bounds of all features, None on sides that are not declared; None if none is."""
        limits = [pair for column in self.used for pair in column.feature_limits]
        if all(pair == (None, None) for pair in limits):
            return None
        return [low for low, _ in limits], [high for _, high in limits]

    @property
    def partly_bounded(self) -> bool:
        """Whether some sides of number columns have bounds and others do not."""
        sides = [side for column in self.used if column.type != "category" for side in column.limits]
        return None in sides and any(side is not None for side in sides)

    def with_bounds(self, low: float, high: float) -> Schema:
        """The same schema with these bounds for every number column."""
        return replace(
            self,
            columns=tuple(replace(c, low=low, high=high) if c.type == "number" else c for c in self.columns),
        )

    def to_dict(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "notes": list(NOTES),
            "relation": str(self.relation),
            **({} if self.person is None else {"person": self.person}),
            "target": written(self.target),
            "columns": [written(column, "missing", "epoch", "decimal") for column in self.columns],
        }

    @classmethod
    def from_dict(cls, fields: Any) -> Schema:
        """Read what `to_dict` wrote and people edited; every mistake is a ValueError of one line."""
        if not isinstance(fields, Mapping) or not isinstance(fields.get("columns"), list):
            raise ValueError('a schema is an object with a list "columns"; write one with: discreet schema TABLE.')
        if fields.get("format", FORMAT) != FORMAT:
            raise ValueError(f"this version reads the format {FORMAT!r}; got {fields['format']!r}.")
        target = fields.get("target")
        target = {"name": target} if target is None or isinstance(target, str) else target
        own = {name: value for name, value in fields.items() if name not in ("format", "notes")}
        columns = [_read_column(column) for column in fields["columns"]]
        return built(cls, own | {"columns": columns, "target": built(Target, target, "the target")})


def skeleton(kinds: Mapping[str, str]) -> Schema:
    """A schema to fill in, from the names and kinds of the columns alone."""
    return Schema(tuple(Column(name, kind) for name, kind in kinds.items()))


def load_schema(path: str | Path) -> Schema:
    """Read a schema file."""
    return read_json_file(path, Schema.from_dict, f"{path} is not a schema")


def _read_column(content: Any) -> Column:
    listed = isinstance(content, Mapping) and content.get("categories") is not None
    assumed = {"name": ""} | ({"type": "category"} if listed else {})
    column = built(Column, {**assumed, **content} if isinstance(content, Mapping) else content, "a column")
    if listed and column.type in ("number", "date"):
        raise ValueError(f'column {column.name!r} lists categories: its type must be "category".')
    if column.type == "category" and not column.categories:
        raise ValueError(f'column {column.name!r} is a category: list its values, "categories": ["a", "b"].')
    fills = column.type == "category" and column.missing is not None
    return replace(column, missing=as_text(column.missing)) if fills else column
