"""What is publicly known about the columns of a table: names, kinds, bounds, categories and the target.

A schema is written by people from public knowledge, never from the rows. It turns a table into numbers:
number columns stay as they are, a category column becomes one column of zeros and ones per category. Each column says
what its limits are, and what a missing value becomes.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path
from typing import Annotated, Any

from discreet._common.codec import built, read_json_file, written
from discreet._common.text import one_line
from discreet.privacy.relation import Relation

KINDS = ("number", "category", "date", "ignore")
INDICATOR = "indicator"  # for missing values: a column of its own says where they are
EPOCH = "1970-01-01"  # from which days are counted, unless a schema says otherwise
FORMAT = "discreet schema 2"
EVERY_LEVEL = "discreet schema 1"  # the format of earlier versions, in which no category was a baseline
Label = str | int | float | bool

NOTES = (
    "Fill this in from public knowledge, not from the rows: what you write here is not protected.",
    'type: "number", "category" (then list every value under categories), "date" (ISO; becomes days) or "ignore".',
    "low, high: limits that every value of a number column obeys; values outside are moved to the limit. "
    "Where one of them is missing the range of the column is learned privately, inside the other one.",
    "categories: compared as text; a value that is not listed counts as none of them, without a message.",
    "baseline: the category that gets no column, the first one unless said otherwise; a coefficient of another says "
    "how it differs from it. Values that are not listed count as the baseline. every_level: true gives each a column.",
    'missing: what a missing value becomes, a value or "indicator", which adds a column that says where it is missing.',
    'fill: beside "indicator", the number that stands where one is missing, about the usual value of the column; the '
    "middle of the limits unless said otherwise, which may lie far from the bulk.",
    'epoch: from which a date counts its days. decimal: "," if numbers are written so.',
    "target: the name of the column to predict; classes for a classification, low and high for a regression.",
    "person: the name of the column with the id of each row's person, if a person may have several rows.",
    'relation: "replace" (a row changes), "zero_out" (a row stops counting) or "add_remove" (a row more or less).',
)


NAME = 34  # characters of a name or a category in a sentence, at most
LATER = ("baseline: ", "fill: ")  # notes on what the earlier format has not
SELDOM = ("missing", "epoch", "decimal", "baseline", "every_level", "fill")


def _category(what: str, value: Any) -> str:
    return as_text(value)


@dataclass(frozen=True)
class Column:
    """A column of the table; `type` is "number", "category", "date" or "ignore".

    `missing` says what a missing value becomes: a number, date or listed category, or "indicator", which adds a column
    of zeros and ones. A date becomes days since `epoch`; its limits may be dates. `decimal` is the decimal mark. Of the
    categories the `baseline`, by default the first, has no column, unless `every_level` has one. Beside an indicator
    `fill` is the number that stands where one is missing.
    """

    name: str
    type: str = "number"
    low: Any = None
    high: Any = None
    categories: tuple[Annotated[Any, _category], ...] | None = None
    missing: Any = None
    epoch: str | None = None
    decimal: str | None = None
    baseline: Annotated[Any, _category] | None = None
    every_level: bool = False
    fill: Any = None

    def __post_init__(self) -> None:
        where = f"column {self.name!r}"
        if not isinstance(self.name, str) or not self.name:
            raise ValueError(f"every column needs a name; got {self.name!r}.")
        if self.type not in KINDS:
            raise ValueError(f"{where} has type {self.type!r}; use one of {', '.join(map(repr, KINDS))}.")
        if self.epoch is not None and (self.type != "date" or _day(self.epoch) is None):
            raise ValueError(f"{where}: epoch belongs to dates and is one, such as {EPOCH!r}; got {self.epoch!r}.")
        if self.decimal not in (None, ".", ","):
            raise ValueError(f"{where}: decimal must be '.' or ','; got {self.decimal!r}.")
        check_limits(where, self._number(self.low), self._number(self.high), pair=False)
        if self.categories is not None and len(set(self.categories)) != len(self.categories):
            raise ValueError(f"{where} lists a category twice.")
        if (self.baseline is not None or self.every_level) and self.type != "category":
            raise ValueError(f"{where}: baseline and every_level belong to categories.")
        if self.baseline is not None and (self.every_level or self.baseline not in (self.categories or ())):
            raise ValueError(f"{where}: baseline must be one of its categories, and not with every_level.")
        self._check_missing(where)

    def _check_missing(self, where: str) -> None:
        numeric = self.type in ("number", "date") and self.missing == INDICATOR and _is_finite(self._number(self.fill))
        if self.fill is not None and not numeric:
            raise ValueError(f'{where}: fill is a finite number or a date, beside "missing": "indicator".')
        if self.missing is None or self.missing == INDICATOR or self.type == "ignore":
            return
        if self.type == "category":
            if as_text(self.missing) not in (self.categories or ()):
                raise ValueError(
                    f'{where}: missing must be "indicator" or one of its categories; got {self.missing!r}.'
                )
        elif not _is_finite(self._number(self.missing)):
            kind = "a date or a number of days" if self.type == "date" else "a finite number"
            raise ValueError(f'{where}: missing must be "indicator" or {kind}; got {self.missing!r}.')

    @property
    def has_indicator(self) -> bool:
        """Whether a column of zeros and ones says where values are missing."""
        return self.type != "ignore" and self.missing == INDICATOR

    @property
    def compared_with(self) -> str | None:
        """The category that has no column, so that coefficients of the others are differences from it."""
        if self.every_level or len(self.categories or ()) < 2:
            return None
        return self.baseline if self.baseline is not None else (self.categories or ())[0]

    @property
    def levels(self) -> list[str]:
        """The categories that have a column."""
        return [category for category in self.categories or () if category != self.compared_with]

    @property
    def features(self) -> list[str]:
        """The names of the numeric columns this column becomes."""
        if self.type == "ignore":
            return []
        names = [self.name]
        if self.type == "category":
            names = [f"{self.name}={category}" for category in self.levels]
        return [*names, *([f"{self.name}=missing"] if self.has_indicator else [])]

    @property
    def limits(self) -> tuple[float | None, float | None]:
        """The bounds of its numbers, None on sides that are not declared; dates in days since the epoch."""
        return (0.0, 1.0) if self.type == "category" else (self._number(self.low), self._number(self.high))

    @property
    def feature_limits(self) -> list[tuple[float | None, float | None]]:
        """The bounds of each of its features."""
        own = len(self.features) - self.has_indicator
        return [self.limits] * own + [(0.0, 1.0)] * self.has_indicator

    @property
    def filled(self) -> float | None:
        """What stands in the place of a missing number; None if missing values are refused.

        Beside an indicator the declared `fill`, else the middle of the limits, or what is nearest to 0 where one of
        them is missing.
        """
        if self.missing is None or self.missing != INDICATOR or self.fill is not None:
            filled: float | None = self._number(self.missing if self.fill is None else self.fill)
            return filled
        low, high = self.limits
        if low is not None and high is not None:
            return 0.5 * low + 0.5 * high
        return max(0.0, low) if low is not None else min(0.0, high) if high is not None else 0.0

    @property
    def first_day(self) -> int:
        """The epoch of a date, in days since 1970-01-01."""
        return date.fromisoformat(self.epoch or EPOCH).toordinal() - date.fromisoformat(EPOCH).toordinal()

    def _number(self, value: Any) -> Any:
        """A limit or a filled value as a number; dates as days since the epoch. Anything else stays what it is."""
        if self.type != "date" or not isinstance(value, str):
            return value
        day = _day(value)
        return value if day is None else float(day - self.first_day)


def _day(text: Any) -> int | None:
    """An ISO date in days since 1970-01-01; None if it is none."""
    try:
        return date.fromisoformat(text).toordinal() - date.fromisoformat(EPOCH).toordinal()
    except (TypeError, ValueError):
        return None


def as_text(value: Any) -> str:
    """How a value is compared with a category: whole numbers without a fraction, missing ones as ""."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def check_limits(where: str, low: Any, high: Any, pair: bool = True) -> None:
    """Limits are finite numbers, in order; None on a side says that it is not declared, if they need not be a pair."""
    if pair and (low is None) != (high is None):
        raise ValueError(f"{where} has only one of low and high; give both or neither.")
    for value in (low, high):
        if value is not None and not _is_finite(value):
            raise ValueError(f"the limits of {where} must be finite numbers; got {value!r}.")
    if low is not None and high is not None and low > high:
        raise ValueError(f"{where} has low > high ({low:g} > {high:g}).")


def _is_finite(value: Any) -> bool:
    return not isinstance(value, bool) and isinstance(value, int | float) and math.isfinite(value)


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
    format: str = FORMAT

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
    def contrasts(self) -> dict[str, str]:
        """By category column, the baseline that the coefficients of its other categories are differences from."""
        return {column.name: column.compared_with for column in self.used if column.compared_with is not None}

    def contrasts_told(self) -> str:
        """The same in a sentence; empty where there is none."""
        pairs = ", ".join(
            f"{one_line(name, NAME)} with {one_line(held, NAME)}" for name, held in self.contrasts.items()
        )
        return f"Coefficients of categories are differences from their baseline: {pairs}." if pairs else ""

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
            "format": self.format,
            "notes": [note for note in NOTES if self.format == FORMAT or not note.startswith(LATER)],
            "relation": str(self.relation),
            **({} if self.person is None else {"person": self.person}),
            "target": written(self.target),
            "columns": [written(self._told(column), *SELDOM) for column in self.columns],
        }

    def _told(self, column: Column) -> Column:
        """A column as it is written: every level has a column in the earlier format, which has no word for it."""
        return replace(column, every_level=False) if self.format == EVERY_LEVEL else column

    @classmethod
    def from_dict(cls, fields: Any) -> Schema:
        """Read what `to_dict` wrote and people edited; every mistake is a ValueError of one line."""
        if not isinstance(fields, Mapping) or not isinstance(fields.get("columns"), list):
            raise ValueError('a schema is an object with a list "columns"; write one with: discreet schema TABLE.')
        kind = fields.get("format", FORMAT)
        if kind not in (FORMAT, EVERY_LEVEL):
            raise ValueError(f"this version reads the formats {EVERY_LEVEL!r} and {FORMAT!r}; got {kind!r}.")
        target = fields.get("target")
        target = {"name": target} if target is None or isinstance(target, str) else target
        own = {name: value for name, value in fields.items() if name != "notes"}
        columns = [_read_column(column, kind) for column in fields["columns"]]
        return built(cls, own | {"columns": columns, "target": built(Target, target, "the target")})


def skeleton(kinds: Mapping[str, str]) -> Schema:
    """A schema to fill in, from the names and kinds of the columns alone."""
    return Schema(tuple(Column(name, kind) for name, kind in kinds.items()))


def load_schema(path: str | Path) -> Schema:
    """Read a schema file."""
    return read_json_file(path, Schema.from_dict, f"{path} is not a schema")


def _read_column(content: Any, kind: str) -> Column:
    listed = isinstance(content, Mapping) and content.get("categories") is not None
    assumed = {"name": ""} | ({"type": "category"} if listed else {})
    column = built(Column, {**assumed, **content} if isinstance(content, Mapping) else content, "a column")
    if listed and column.type in ("number", "date"):
        raise ValueError(f'column {column.name!r} lists categories: its type must be "category".')
    if column.type == "category" and not column.categories:
        raise ValueError(f'column {column.name!r} is a category: list its values, "categories": ["a", "b"].')
    if column.type != "category":
        return column
    if kind == EVERY_LEVEL:
        if column.baseline is not None:
            raise ValueError(f'column {column.name!r} has a baseline: that needs "format": "{FORMAT}".')
        column = replace(column, every_level=True)
    return column if column.missing is None else replace(column, missing=as_text(column.missing))
