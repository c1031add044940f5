"""What a private evaluation states about each notion and group: the bins that it counts, and what noisy counts tell.

The bins: label, group and state of a row, with bins for what was not declared.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from discreet._common.types import IntArray
from discreet.fairness.cells import CellTable
from discreet.fairness.evaluation.record import PrivateStatement
from discreet.fairness.notions import notion_of
from discreet.fairness.quantities import Quantity, favourable_labels, quantities

if TYPE_CHECKING:
    from discreet.fairness.evaluation.noisy_ratios import NoisyCounts

# The states of a row: whether the model is right about it, and whether its noise-free twin may predict otherwise.
RIGHT, RIGHT_IN_DOUBT, WRONG_IN_DOUBT, WRONG = STATES = range(4)
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Bins:
    """Which bins there are: labels x (groups and "other") x states, and one for labels that are not declared."""

    labels: int
    groups: int

    @property
    def size(self) -> int:
        return self.labels * (self.groups + 1) * len(STATES) + 1

    def of(self, labels: IntArray, groups: IntArray, states: IntArray) -> IntArray:
        """The bin of each row; the code of what is not declared is the number of what is."""
        place = (labels * (self.groups + 1) + groups) * len(STATES) + states
        return np.where(labels == self.labels, self.size - 1, place)

    def mask(self, labels: Sequence[int], groups: Sequence[int] | None, states: Sequence[int] = STATES) -> Mask:
        """The bins of these labels, groups (None: all, "other" included) and states."""
        chosen = np.zeros((self.labels, self.groups + 1, len(STATES)), dtype=bool)
        which = range(self.groups + 1) if groups is None else groups
        chosen[np.ix_(list(labels), list(which), list(states))] = True
        return np.append(chosen.ravel(), False)


def states_of(right: Mask, in_doubt: Mask) -> IntArray:
    """The state of each row."""
    return np.where(right, np.where(in_doubt, RIGHT_IN_DOUBT, RIGHT), np.where(in_doubt, WRONG_IN_DOUBT, WRONG))


def declared_groups(groups: Any) -> tuple[Any, ...]:
    """The declared groups: different values that can be told apart, at least one."""
    if isinstance(groups, str) or not np.iterable(groups):
        raise ValueError(f"groups must list the public values of the sensitive column, such as [0, 1]; got {groups!r}.")
    values = tuple(np.asarray(groups).tolist()) if hasattr(groups, "__array__") else tuple(groups)
    try:
        different = len(set(values)) == len(values) > 0 and not any(value != value for value in values)  # noqa: PLR0124
    except TypeError:
        different = False
    if not different:
        raise ValueError(f"groups must be different texts or numbers, at least one; got {groups!r}.")
    return values


@dataclass(frozen=True, eq=False)
class Question:
    """One number that a notion asks about: P(event | part) - P(event | whole), or P(event | whole) without a part.

    Attributes
    ----------
    notion : str
        Its name.
    label, group : object or None
        Which label and group it is about; None where it is about all of them.
    whole, part : masks of bins
        The rows compared with, and those of the group among them; part is None for accuracy.
    event, lost, gained : masks of bins
        Where the event holds, and where the noise-free twin may lose or gain it.
    """

    notion: str
    label: Any
    group: Any
    whole: Mask
    part: Mask | None
    event: Mask
    lost: Mask
    gained: Mask

    @property
    def sides(self) -> int:
        """How many one-sided limits its statement needs."""
        return 4 if self.part is None else 10


def questions_of(classes: Any, groups: tuple[Any, ...], notions: Any, favourable: Any) -> list[Question]:
    """Everything that the named notions ask; classes, groups and notions are public."""
    bins = Bins(len(classes), len(groups))
    names = np.empty(len(groups), dtype=object)
    names[:] = groups
    ones = np.ones((len(classes), len(groups)))
    wanted = quantities(CellTable(np.asarray(classes), names, ones, ones), notions, favourable)
    good = favourable_labels(classes, favourable)
    listed = np.asarray(classes).tolist()
    return [_question(bins, asked, listed, groups, good) for asked in wanted]


def _question(bins: Bins, asked: Quantity, classes: list[Any], groups: tuple[Any, ...], good: list[Any]) -> Question:
    known = notion_of(asked.notion)
    labels = [classes.index(asked.label)] if asked.within_label else range(len(classes))
    whole = bins.mask(labels, None)
    part = None if asked.group is None else bins.mask(labels, [groups.index(asked.group)])
    wrong = [i for i in labels if known.counts_wrong(classes[i], good)]
    right = [i for i in labels if i not in wrong]

    def where(for_right: list[int], for_wrong: list[int]) -> Mask:
        return bins.mask(right, None, for_right) | bins.mask(wrong, None, for_wrong)

    event = where([RIGHT, RIGHT_IN_DOUBT], [WRONG, WRONG_IN_DOUBT])
    lost, gained = where([RIGHT_IN_DOUBT], [WRONG_IN_DOUBT]), where([WRONG_IN_DOUBT], [RIGHT_IN_DOUBT])
    return Question(asked.notion, asked.label, asked.group, whole, part, event, lost, gained)


def statements_of(questions: list[Question], counts: NoisyCounts, failure: float) -> list[PrivateStatement]:
    """The statements, which hold together with probability 1 - failure over the noise of the counts."""
    each = failure / max(sum(question.sides for question in questions), 1)
    return [_answer(question, counts, each) for question in questions]


def _answer(asked: Question, counts: NoisyCounts, failure: float) -> PrivateStatement:
    own = asked.whole if asked.part is None else asked.part
    rows = float(counts.counts[own].sum())
    low, high = (side(asked.event & own, own, failure) for side in (counts.lower, counts.upper))
    value = counts.estimate(asked.event & own, own)
    lost, gained = (counts.upper(mask & own, own, failure) for mask in (asked.lost, asked.gained))
    about = (asked.notion, asked.label, asked.group, rows)
    if (low <= 0.0 and high >= 1.0) or math.isnan(value):
        least = 0.0 if asked.part is None else -1.0
        return PrivateStatement(*about, math.nan, least - 1.0, 1.0 - least, value_low=least)
    if asked.part is None:
        return PrivateStatement(*about, value, -lost, gained, value_low=low, value_high=high)
    rest = asked.whole & ~asked.part
    least, most = (1.0 - side(asked.part, asked.whole, failure) for side in (counts.upper, counts.lower))
    other_low, other_high = (side(asked.event & rest, rest, failure) for side in (counts.lower, counts.upper))
    other_lost, other_gained = (counts.upper(mask & rest, rest, failure) for mask in (asked.lost, asked.gained))
    value -= counts.estimate(asked.event & asked.whole, asked.whole)
    ends = (_least(least, most, low - other_high), -_least(least, most, other_low - high))
    change = (-most * (lost + other_gained), most * (gained + other_lost))
    return PrivateStatement(*about, float(np.clip(value, *ends)), *change, value_low=ends[0], value_high=ends[1])


def _least(least: float, most: float, difference: float) -> float:
    """The least product of a share between two limits and of a difference that is at least the given one."""
    return min(least * difference, most * difference)
