"""The bins of a private evaluation: label, group and state of a row, with bins for what was not declared.

Section 1 of docs/guarantees/private-evaluation.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet._common.types import IntArray

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
