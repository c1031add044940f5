"""All events of a data set so far, in a form that stays small however many there were.

Plain Gaussian releases are merged into one, exactly: their mu^2 add up (Dong, Roth and Su 2022, corollary 3.3). Other
releases are counted, each distinct one once. Only the accounting of selections gains from knowing the order, so where
there are selections the events stay in order until they are too many for it. For a promise with delta = 0 the sum of
the pure epsilons is all that counts.

Events are handled as the dictionaries that the ledger stores; rounding is upwards in cost.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

from discreet._common.checks import whole

# A DpEvent; the package it comes from is imported by the accounting alone.
Event = Any
Fields = dict[str, Any]
Run = tuple[str, int]  # an event as JSON text, and how often it happened

_ROUNDING = sys.float_info.epsilon
_SELECTION, _GAUSSIAN, _NOTHING, _PURE = "BoundedRangeDpEvent", "GaussianDpEvent", "NoOpDpEvent", "PureDpEvent"


@dataclass(frozen=True)
class Total:
    """The composition of all events of a data set.

    Attributes
    ----------
    entries : int
        How many events were added.
    runs : tuple of (str, int)
        Events as JSON text, each with how often it happened.
    in_order : bool
        Whether `runs` are in the order executed, as far as the accounting can use it.
    """

    entries: int = 0
    runs: tuple[Run, ...] = ()
    in_order: bool = True

    @property
    def only_gaussian(self) -> bool:
        """Whether all releases had plain Gaussian noise."""
        return all(json.loads(text)["type"] == _GAUSSIAN for text, _ in self.runs)

    def plus(self, event: str) -> Total:
        """Return the total with one more event."""
        runs = [*self.runs, (event, 1)]
        if len(runs) > 1 and runs[-2][0] == event:
            runs[-2:] = [(event, runs[-2][1] + 1)]
        if self.in_order and _has_selection(runs):
            from discreet.privacy.accounting.events import LONGEST_ORDER

            if _length(runs) <= LONGEST_ORDER:
                return Total(self.entries + 1, tuple(runs))
        in_order = self.in_order and not _has_selection(runs)
        return Total(self.entries + 1, _counted(runs), in_order)

    def plus_pure(self, epsilon: float) -> Total:
        """Return the total with one more event of which only its pure epsilon is kept, added up and rounded up."""
        spent = json.loads(self.runs[0][0])["epsilon"] if self.runs else 0.0
        together = spent + epsilon
        if Fraction(together) < Fraction(spent) + Fraction(epsilon):
            together = math.nextafter(together, math.inf)
        runs = ((fields_text({"type": _PURE, "epsilon": together}), 1),) if together else ()
        return Total(self.entries + 1, runs)

    def event(self) -> Event:
        """Return everything as one event for the accounting."""
        from discreet.privacy.accounting import compose, event_from_dict

        return compose([event_from_dict(_repeated(json.loads(text), count)) for text, count in self.runs])

    def to_dict(self) -> Fields:
        """Return the total as JSON values."""
        runs = [[json.loads(text), count] for text, count in self.runs]
        return {"entries": self.entries, "runs": runs, "in_order": self.in_order}

    @classmethod
    def from_dict(cls, fields: Fields) -> Total:
        """Return what `to_dict` wrote; refuse what it never writes."""
        from discreet.privacy.accounting import event_from_dict

        if not isinstance(fields["in_order"], bool):
            raise ValueError(f"in_order must be true or false, got {fields['in_order']!r}")
        runs = tuple((fields_text(event), whole("count", count, least=1)) for event, count in fields["runs"])
        for event, _ in fields["runs"]:
            event_from_dict(event)
        return cls(whole("entries", fields["entries"], least=0), runs, fields["in_order"])


def event_text(event: Event) -> str:
    """Write an event as JSON, the form in which the ledger keeps it."""
    from discreet.privacy.accounting import event_to_dict

    return fields_text(event_to_dict(event))


def fields_text(event: Fields) -> str:
    """Write the fields of an event as JSON, always in the same way."""
    return json.dumps(event, sort_keys=True)


def _counted(runs: Sequence[Run]) -> tuple[Run, ...]:
    """Count each distinct release once, with all Gaussians in one."""
    counts: dict[str, int] = {}
    gaussians: dict[float, int] = {}
    for text, times in runs:
        for leaf, count in _leaves(json.loads(text), times):
            if leaf["type"] == _GAUSSIAN and leaf["noise_multiplier"] not in (0, "inf"):
                multiplier = float(leaf["noise_multiplier"])
                if not multiplier > 0.0:
                    raise ValueError(f"a noise multiplier must be at least 0, got {multiplier}")
                gaussians[multiplier] = gaussians.get(multiplier, 0) + count
            else:
                name = fields_text(leaf)
                counts[name] = counts.get(name, 0) + count
    return (*_merged(gaussians), *counts.items())


def _merged(gaussians: dict[float, int]) -> tuple[Run, ...]:
    """Return one Gaussian release that costs at least as much as all together, and at most 1e-14 more, relatively."""
    if len(gaussians) <= 1:
        return tuple((_gaussian(multiplier), count) for multiplier, count in gaussians.items())
    squares = math.fsum(max(count / multiplier / multiplier, 5e-324) for multiplier, count in gaussians.items())
    multiplier = (1.0 - 8.0 * _ROUNDING) / math.sqrt(squares * (1.0 + 8.0 * _ROUNDING))
    return ((_gaussian(multiplier), 1),)


def _gaussian(multiplier: float) -> str:
    return fields_text({"type": _GAUSSIAN, "noise_multiplier": multiplier})


def _leaves(event: Fields, times: int) -> Iterator[tuple[Fields, int]]:
    """List the elementary events of a tree with how often each happens, without those that never do."""
    if event["type"] == "ComposedDpEvent":
        for part in event["events"]:
            yield from _leaves(part, times)
    elif event["type"] == "SelfComposedDpEvent":
        if event["count"] < 0:
            raise ValueError(f"an event cannot happen {event['count']} times")
        yield from _leaves(event["event"], times * event["count"])
    elif event["type"] != _NOTHING and times:
        yield event, times


def _has_selection(runs: Sequence[Run]) -> bool:
    return any(f'"{_SELECTION}"' in text for text, _ in runs)


def _length(runs: Sequence[Run]) -> int:
    """Return the number of changes between releases, at most."""
    inside = ((_length_of(text), count) for text, count in runs)
    return sum(length if length <= 1 else length * count for length, count in inside)


@lru_cache(maxsize=4096)
def _length_of(text: str) -> int:
    from discreet.privacy.accounting import event_from_dict
    from discreet.privacy.accounting.events import length

    return length(event_from_dict(json.loads(text)))


def _repeated(event: Fields, count: int) -> Fields:
    return event if count == 1 else {"type": "SelfComposedDpEvent", "event": event, "count": count}
