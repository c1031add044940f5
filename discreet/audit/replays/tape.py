"""The record of a run, and the same run again on a neighbouring table with everything that was released forced.

A `Tape` without `recorded` records. With it, every release returns what the recorded run told, every random choice that
does not look at rows is the recorded one, and each statistic is compared with the recorded one.

A mechanism that hands out its noise hands out an array that knows its tape (`TapedNoise`): where it is added to a
statistic, wherever that was computed, the sum is the release. Noise that no statistic ever met is an error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from discreet._common.types import FloatArray
from discreet.audit.replays.laws import Law
from discreet.privacy.relation import Relation

ROUNDING = 1e-9  # by which a distance may exceed its claim, relative: sums of doubles round


class DivergedError(RuntimeError):
    """On the second table the run asked for something else than on the first: what is done depends on the rows."""


class UnseenReleaseError(RuntimeError):
    """Noise was drawn for statistics that a replay did not see: about these releases it can say nothing."""


class TapedNoise(np.ndarray[Any, Any]):
    """Noise that a mechanism handed out, or a part of it: added to a statistic, it makes the release of it."""

    tape: Tape | None = None

    def __array_finalize__(self, other: Any) -> None:
        self.tape = getattr(other, "tape", None)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, out: Any = None, **named: Any) -> Any:
        """Whatever else is computed of the noise is a plain array, which no release can be made of."""
        plain = [np.asarray(each) if isinstance(each, TapedNoise) else each for each in inputs]
        if (ufunc, method, out, named) == (np.add, "__call__", None, {}) and self.tape is not None:
            noise, statistic = inputs if isinstance(inputs[0], TapedNoise) else reversed(inputs)
            if not isinstance(statistic, TapedNoise) and np.shape(statistic) == noise.shape:
                return self.tape.met(noise, statistic)
        if out is not None:
            named["out"] = tuple(np.asarray(each) if isinstance(each, TapedNoise) else each for each in out)
        return getattr(ufunc, method)(*plain, **named)


@dataclass(eq=False)
class Release:
    """One thing that was told about the rows.

    Attributes
    ----------
    what : str
        The mechanism and its method.
    statistic : ndarray
        What the noise protects, on the first table.
    claimed : float
        How far it may move between neighbouring tables.
    law : Law
        The noise.
    output : ndarray or int
        What was told.
    distance : float
        How far the statistic moved on the second table.
    loss : float or None
        log P[output | first table] - log P[output | second table].
    other : ndarray or None
        The statistic on the second table.
    """

    what: str
    statistic: FloatArray
    claimed: float
    law: Law
    output: Any
    distance: float = 0.0
    loss: float | None = None
    other: FloatArray | None = None


@dataclass(eq=False)
class NoiseDraw:
    """Noise that a mechanism handed out, to be added by the caller."""

    what: str
    claimed: float
    law: Law
    live: FloatArray
    drawn: FloatArray
    seen: int = 0  # how many of its numbers a statistic has met

    def __str__(self) -> str:
        return f"{self.what}, {self.drawn.size - self.seen} of {self.drawn.size} numbers"


@dataclass(eq=False)
class Tape:
    """What one run released and drew, in order."""

    relation: Relation
    recorded: Tape | None = None
    removed: int | None = None  # which row, of those that are sampled, the second table lacks
    releases: list[Release] = field(default_factory=list)
    noises: list[NoiseDraw] = field(default_factory=list)
    draws: list[tuple[str, tuple[Any, ...], Any]] = field(default_factory=list)
    states: list[dict[str, Any]] = field(default_factory=list)
    largest_difference: float = 0.0  # of states after forced steps of compiled loops, relative
    depth: int = 0
    grids: dict[int, tuple[Any, str, float, Law]] = field(default_factory=dict)  # kept, so that no id is used again
    notes: dict[Any, Any] = field(default_factory=dict)  # what one interception tells another

    @property
    def outside(self) -> bool:
        """Whether the caller is the library itself, and not a mechanism that is intercepted already."""
        return self.depth == 0

    @contextmanager
    def inside(self) -> Iterator[None]:
        self.depth += 1
        try:
            yield
        finally:
            self.depth -= 1

    def release(
        self, what: str, statistic: FloatArray, claimed: float, law: Law, tell: Callable[[], Any]
    ) -> tuple[Any, Release]:
        """Make a release, or force it: (what is told, the entry of the first table)."""
        statistic = np.array(statistic, dtype=np.float64)
        if self.recorded is None:
            with self.inside():
                output = tell()
            self.releases.append(Release(what, statistic, claimed, law, np.copy(output)[()]))
            return output, self.releases[-1]
        entry = self.expected(self.recorded.releases, len(self.releases), what)
        self.releases.append(entry)
        same = (entry.what, entry.claimed, entry.law, entry.statistic.shape)
        if (what, claimed, law, statistic.shape) != same:
            raise DivergedError(
                f"release {len(self.releases)} is {what} with sensitivity {claimed:.6g} and noise {law.scale:.6g}; "
                f"on the first table it was {entry.what} with {entry.claimed:.6g} and {entry.law.scale:.6g}"
            )
        self.compare(entry, statistic)
        return np.copy(entry.output)[()], entry

    def compare(self, entry: Release, statistic: FloatArray) -> None:
        """Measure how far a statistic is from the recorded one."""
        entry.other = statistic
        entry.distance = entry.law.distance(entry.statistic, statistic)
        entry.loss = entry.law.loss(entry.statistic, statistic, entry.output)

    def noise(self, what: str, claimed: float, law: Law, draw: Callable[[], FloatArray]) -> FloatArray:
        """Noise for a statistic that is not seen here; what is added to it, or another interception, will see it."""
        if self.recorded is None:
            with self.inside():
                live = draw()
            self.noises.append(NoiseDraw(what, claimed, law, live, live.copy()))
        else:
            entry = self.expected(self.recorded.noises, len(self.noises), what)
            live = entry.drawn.copy()
            if (what, claimed, law) != (entry.what, entry.claimed, entry.law):
                raise DivergedError(
                    f"{what} asks for noise {law.scale:.6g}; on the first table it was {entry.law.scale:.6g}"
                )
            self.noises.append(NoiseDraw(what, claimed, law, live, entry.drawn))
        taped = live.view(TapedNoise)
        taped.tape = self
        return taped

    def claim(self, noise: FloatArray) -> NoiseDraw | None:
        """The draw that an array, or a part of one, came from; its numbers count as seen."""
        for draw in reversed(self.noises):
            if np.shares_memory(noise, draw.live):
                draw.seen += noise.size
                return draw
        return None

    def met(self, noise: FloatArray, statistic: FloatArray) -> FloatArray:
        """The sum of a statistic and the noise that was handed out for it: a release."""
        plain, draw = np.asarray(noise), self.claim(noise)
        if draw is None:
            return np.asarray(statistic + plain)
        told, _ = self.release(draw.what, statistic, draw.claimed, draw.law, lambda: statistic + plain)
        return np.asarray(told)

    @property
    def unseen(self) -> list[str]:
        """The noise, or parts of it, that no statistic has met."""
        return sorted({str(draw) for draw in self.noises if draw.seen < draw.drawn.size})

    @property
    def used_again(self) -> list[str]:
        """The noise that more than one statistic has met."""
        return sorted({draw.what for draw in self.noises if draw.seen > draw.drawn.size})

    def expected(self, recorded: list[Any], position: int, what: str) -> Any:
        """The entry of the first table at this position."""
        if position >= len(recorded):
            raise DivergedError(
                f"{what} has no counterpart on the first table: how much is released depends on the rows"
            )
        return recorded[position]
