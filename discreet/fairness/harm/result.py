"""What a plan can do to the fairness of a model, as numbers and as a table to read."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

from discreet._common.codec import plain, written
from discreet._common.text import facts, one_line, table

Mode = Literal["bound", "expected"]
Target = Literal["groups", "aggregate"]


@dataclass(frozen=True)
class GroupChange:
    """How much the noise can change one statement of a notion of fairness.

    Attributes
    ----------
    group : str or None
        The group; None for everybody.
    label : int or None
        The label, where the statement is about one.
    rows : float
        Rows on which this statement is counted.
    change : float
        Most that the value changes, either way; its mean where the mode is "expected".
    low, high : float
        The same for each direction: low <= 0 <= high.
    changed : float
        Expected part of the group's predictions that differ from the noise-free ones.
    visible : float
        Smallest difference that rows of this number tell from chance.
    evaluation_noise : float or None
        The same for the noise of a private evaluation, if one was asked about.
    """

    group: str | None
    label: int | None
    rows: float
    change: float
    low: float
    high: float
    changed: float
    visible: float
    evaluation_noise: float | None = None

    @property
    def name(self) -> str:
        """The group, with its label where there is one."""
        about = "everybody" if self.group is None else self.group
        return about if self.label is None else f"{about}, label {self.label}"


@dataclass(frozen=True)
class Harm:
    """How much unfairness, or error, the noise of a planned model can add.

    Attributes
    ----------
    notion : str
        The notion of fairness.
    mode : {"bound", "expected"}
        Whether changes are bounds with probability 1 - `failure`, for all groups at once, or bounds on their mean.
    failure : float
        The probability left out by a bound.
    epsilon, delta : float
        The budget of the plan.
    rows, columns : int
        The size of the planned table.
    solver : str
        Who would train.
    noise : float or None
        Standard deviation of the noise in a score; None where its law is not Gaussian.
    proved : bool
        Whether a theorem covers the law of the noise; if not, it is predicted.
    groups : tuple of GroupChange
        The change of each statement.
    aggregate : float
        Change of the mean over groups of the absolute values.
    reference : str
        What the private model is compared with.
    assumptions : tuple of str
        What the numbers rest on, and no row was asked about.
    """

    notion: str
    mode: Mode
    failure: float
    epsilon: float
    delta: float
    rows: int
    columns: int
    solver: str
    noise: float | None
    proved: bool
    groups: tuple[GroupChange, ...]
    aggregate: float
    reference: str
    assumptions: tuple[str, ...]

    @property
    def worst(self) -> GroupChange:
        """The statement that changes most."""
        return max(self.groups, key=lambda group: group.change)

    def value(self, of: Target = "groups") -> float:
        """Return the largest change of a group, or the change of the aggregate."""
        return self.worst.change if of == "groups" else self.aggregate

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON values."""
        return written(self)

    def __str__(self) -> str:
        last = f"aggregate change {self.aggregate:.4f}; the largest is that of {self.worst.name}"
        return "\n".join([self._heading(), "", self._table(), last, "", *self._notes()])

    def _heading(self) -> str:
        sure = f"with probability {1.0 - self.failure:g} for all groups at once"
        meaning = f"at most, {sure if self.mode == 'bound' else 'on average over the noise'}"
        told = {
            "plan": f"{self.solver}, {self.rows} rows, {self.columns} columns",
            "budget": f"epsilon {self.epsilon:.4g}, delta {self.delta:.3g}",
            **({} if self.noise is None else {"noise in a score": f"standard deviation {self.noise:.3g}"}),
            "change": meaning,
            "law of the noise": "proved" if self.proved else "predicted, not proved",
        }
        return f"change in {self.notion} that the noise can add\n{facts(told.items())}"

    def _table(self) -> str:
        private = any(group.evaluation_noise is not None for group in self.groups)
        rows = [["group", "rows", "change", "low", "high", "changed", "visible", "evaluation"]]
        for group in self.groups:
            numbers = f"{group.rows:.0f} {group.change:.4f} {group.low:+.4f} {group.high:+.4f} {group.changed:.4f}"
            noise = "" if group.evaluation_noise is None else f"{group.evaluation_noise:.4f}"
            rows.append([group.name, *numbers.split(), f"{group.visible:.4f}", noise])
        return table(rows if private else [row[:-1] for row in rows])

    def _notes(self) -> list[str]:
        return [f"compared with: {self.reference}", *(f"assumed: {one_line(text, 500)}" for text in self.assumptions)]


@dataclass(frozen=True)
class HarmAnswer:
    """The smallest epsilon, or the fewest rows, that keep the harm of the noise below a bound.

    Attributes
    ----------
    at_most : float
        The bound.
    of : {"groups", "aggregate"}
        Whether every group is bounded, or the mean over groups.
    asked : {"epsilon", "rows"}
        What was looked for.
    reachable : bool
        Whether there is an answer within the range that was searched.
    harm : Harm
        The harm at the answer, or at the end of the range if there is none.
    note : str
        What to know about the answer; empty if there is nothing.
    """

    at_most: float
    of: Target
    asked: Literal["epsilon", "rows"]
    reachable: bool
    harm: Harm
    note: str = ""

    @property
    def epsilon(self) -> float:
        """The epsilon of the answer; infinite if no epsilon was found."""
        return math.inf if self.asked == "epsilon" and not self.reachable else self.harm.epsilon

    @property
    def delta(self) -> float:
        """The delta of the answer."""
        return self.harm.delta

    @property
    def rows(self) -> float:
        """The rows of the answer; infinite if no number of rows was found."""
        return math.inf if self.asked == "rows" and not self.reachable else self.harm.rows

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON values; what cannot be reached is "inf"."""
        names = ("at_most", "of", "asked", "reachable", "epsilon", "rows", "delta", "note", "harm")
        return {name: plain(getattr(self, name)) for name in names}

    def __str__(self) -> str:
        asked = "every group" if self.of == "groups" else "the aggregate"
        found = "epsilon" if self.asked == "epsilon" else "number of rows"
        what = f"epsilon {self.epsilon:.4g}" if self.asked == "epsilon" else f"{self.rows} rows"
        first = f"{what}: {self._promise(asked)}" if self.reachable else f"no {found} was found: {self._promise(asked)}"
        note = f"\n{self.note}" if self.note else ""
        return f"{first}{note}\n\n{self.harm}"

    def _promise(self, asked: str) -> str:
        """What is said of the answer, and how surely: readers may look at the first line alone."""
        harm = self.harm
        if not harm.proved:
            return f"predicted, not proved: a mean change of {asked} of at most {self.at_most:g}"
        if harm.mode == "expected":
            return f"a mean change of {asked} of at most {self.at_most:g}; a single fit may change more"
        return f"a change of {asked} of at most {self.at_most:g}, with probability {1.0 - harm.failure:g}"
