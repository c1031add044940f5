"""One column of a schema: what it is, its limits, its categories, and what a missing value becomes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import date
from typing import Annotated, Any

KINDS = ("number", "category", "date", "ignore")
INDICATOR = "indicator"  # for missing values: a column of its own says where they are
EPOCH = "1970-01-01"  # from which days are counted, unless a schema says otherwise


def _category(what: str, value: Any) -> str:
    return as_text(value)


@dataclass(frozen=True)
class Column:
    """A column of the table; `type` is "number", "category", "date" or "ignore".

    `missing` says what a missing value becomes: a number, date or listed category, or "indicator", which adds a column
    of zeros and ones. A date becomes days since `epoch`; its limits may be dates. `decimal` is the decimal mark.
    """

    name: str
    type: str = "number"
    low: Any = None
    high: Any = None
    categories: tuple[Annotated[Any, _category], ...] | None = None
    missing: Any = None
    epoch: str | None = None
    decimal: str | None = None

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
        self._check_missing(where)

    def _check_missing(self, where: str) -> None:
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
    def features(self) -> list[str]:
        """The names of the numeric columns this column becomes."""
        if self.type == "ignore":
            return []
        names = [self.name]
        if self.type == "category":
            names = [f"{self.name}={category}" for category in self.categories or ()]
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
    def fill(self) -> float | None:
        """What stands in the place of a missing number; None if missing values are refused.

        Beside an indicator the middle of the limits, or what is nearest to 0 where one of them is missing.
        """
        if self.missing is None or self.missing != INDICATOR:
            filled: float | None = self._number(self.missing)
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
