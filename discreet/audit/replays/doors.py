"""Interception of everything that draws: mechanisms, and the random choices that do not look at rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet._common.types import IntArray
from discreet.audit.neighbours import removed_person
from discreet.audit.replays.laws import LAWS, DensityLaw, Law, SelectionLaw, claim_of, selection_of
from discreet.audit.replays.tape import DivergedError, Tape, UnseenReleaseError
from discreet.data.rows import Data
from discreet.preprocessing.quantiles import Runs
from discreet.privacy import mechanisms
from discreet.privacy.mechanisms import AdditiveMechanism
from discreet.privacy.mechanisms.additive import NoisyGrid
from discreet.privacy.random.generator import PoissonSample, RandomGenerator
from discreet.privacy.relation import Relation
from discreet.solvers import base as solver_base

# Draws that no privacy rests on by themselves: orders, coordinates, batches, uniform numbers.
CHOICES = ("uniform", "integers", "permutation", "choice", "poisson_batches", "poisson_sample", "bernoulli_indices")
PLAIN_NOISE = ("normal", "laplace", "rounded_draws", "gumbel")
SELECTIONS = ("gumbel_argmax",)
KEYS = ("bytes", "spawn", "rekey")  # of other generators, whose own draws are intercepted
UNKNOWN = NoisyGrid.__name__  # instead of the mechanism, where the grid was made before the run
CHOOSERS = (mechanisms.GumbelGreedy, mechanisms.LaplaceGreedy, mechanisms.TopSelections)

Patch = tuple[Any, str, Callable[[Any, Tape], Any]]  # owner, name, (original, tape) -> replacement


@contextmanager
def intercepted(tape: Tape, patches: list[Patch]) -> Iterator[Tape]:
    """Replace methods while a run goes on. One run at a time: the methods are those of everybody.

    A method that is not there is left out: noise that then nobody sees is reported as such.
    """
    patches = [patch for patch in patches if patch[1] in patch[0].__dict__]
    saved = [(owner, name, owner.__dict__[name]) for owner, name, _ in patches]
    try:
        for (owner, name, original), (_, _, make) in zip(saved, patches, strict=True):
            setattr(owner, name, make(original, tape))
        yield tape
    finally:
        for owner, name, original in saved:
            setattr(owner, name, original)


def door_patches() -> list[Patch]:
    """The methods of all mechanisms that exist, those of other packages included, and of the generator."""
    patches: list[Patch] = [(kind, "grid", _grid) for kind in grid_makers()]
    grids = [NoisyGrid, *_subclasses(NoisyGrid)]
    patches += [(kind, name, make) for kind in grids for name, make in (("release", _release), ("noise", _noise))]
    patches += [(kind, "choose", _choose) for kind in CHOOSERS]
    patches += [(mechanisms.QuantileSelection, "choose", _choose_place), (Runs, "around", _runs)]
    patches += [(mechanisms.PointSelection, "draw", _draw_point)]
    patches += [(RandomGenerator, name, _choice) for name in CHOICES]
    patches += [(solver_base, "gather_persons", _gather)]
    patches += [(RandomGenerator, name, _plain_selection) for name in SELECTIONS]
    return patches + [(RandomGenerator, name, _plain_noise) for name in PLAIN_NOISE]


def grid_makers() -> list[type]:
    """The mechanisms whose noise is added on a grid."""
    return [*_subclasses(AdditiveMechanism), mechanisms.PoissonGaussian, mechanisms.FixedSizeGaussian]


def _subclasses(kind: type) -> list[type]:
    found: list[type] = []
    children: list[type] = kind.__subclasses__()
    for direct in children:
        found += [direct, *_subclasses(direct)]
    return list(dict.fromkeys(found))


class _RecordedOrders:
    """A generator of orders that keeps what it drew."""

    def __init__(self, rng: RandomGenerator) -> None:
        self.rng, self.drawn = rng, list[IntArray]()

    def permutation(self, n: int) -> IntArray:
        self.drawn.append(self.rng.permutation(n))
        return self.drawn[-1]


class _ForcedOrders:
    """A generator that draws these orders, one after the other."""

    def __init__(self, orders: tuple[IntArray, ...]) -> None:
        self.orders = iter(orders)

    def permutation(self, n: int) -> IntArray:
        return next(self.orders)


def _gather(original: Any, tape: Tape) -> Any:
    """Which row of a person is drawn does not depend on other persons: all others get the row and the place they had.

    The order of persons of whom all rows are used is not compared: no sum depends on it.
    """

    def gather(data: Data, most: int, rng: RandomGenerator) -> Data:
        if data.persons is None:
            return original(data, most, rng)
        with tape.inside():
            if most > 1:
                return original(data, most, rng)
            if tape.recorded is None:
                orders = _RecordedOrders(rng)
                gathered = original(data, most, orders)
                tape.notes["persons"] = (data, *orders.drawn)
                return gathered
            first, shuffled, places = tape.recorded.notes["persons"]
            lacks = removed_person(first, data) if tape.relation is Relation.ADD_REMOVE else None
            if lacks is not None:
                tape.removed = int(places[lacks])
            forced = _orders_without(first.persons, shuffled, places, data.persons, lacks)
            return original(data, most, _ForcedOrders(forced))

    return gather


def _orders_without(
    persons: IntArray, shuffled: IntArray, places: IntArray, others: IntArray, lacks: int | None
) -> tuple[IntArray, IntArray]:
    """The orders of the rows and of the persons of the second table, in which everybody who is in both keeps theirs."""
    if lacks is not None:
        others = others + (others >= lacks)  # as they are numbered in the first table
        places = np.delete(places, lacks) - (np.delete(places, lacks) > places[lacks])
    rank = np.empty(shuffled.size, dtype=np.int64)
    rank[shuffled] = np.arange(shuffled.size)
    known = {key: rank[row] for row, key in enumerate(_numbered(persons))}
    order = [known.get(key, shuffled.size + row) for row, key in enumerate(_numbered(others))]
    return np.argsort(order, kind="stable"), places


def _numbered(persons: IntArray) -> list[tuple[int, int]]:
    """Each row as its person and its number among the rows of this person."""
    seen: dict[int, int] = {}
    found = []
    for person in persons.tolist():
        found.append((person, seen.get(person, 0)))
        seen[person] = found[-1][1] + 1
    return found


def _grid(original: Any, tape: Tape) -> Any:
    """Note who has made a grid, and for which sensitivity: the grid itself knows neither."""

    def grid(self: Any, *args: Any, **named: Any) -> Any:
        made = original(self, *args, **named)
        claimed, law = (np.inf, Law(0.0)) if made.is_exact else claim_of(self, made, tape.relation)
        tape.grids[id(made)] = (made, type(self).__name__, claimed, law)
        return made

    return grid


def _release(original: Any, tape: Tape) -> Any:
    def release(self: Any, rng: Any, value: Any) -> Any:
        name, claimed, law = _known(self, tape)
        if not tape.outside or (self.is_exact and name == UNKNOWN):
            return original(self, rng, value)
        told, _ = tape.release(f"{name}.release", value, claimed, law, lambda: original(self, rng, value))
        return told

    return release


def _noise(original: Any, tape: Tape) -> Any:
    def noise(self: Any, rng: Any, size: Any) -> Any:
        if not tape.outside or self.is_exact:
            return original(self, rng, size)
        name, claimed, law = _known(self, tape)
        return tape.noise(f"{name}.noise", claimed, law, lambda: original(self, rng, size))

    return noise


def _known(grid: NoisyGrid, tape: Tape) -> tuple[str, float, Law]:
    """Who made a grid, in this run or the recorded one, and for what; one that a plan had before says so itself."""
    for known in (tape, tape.recorded):
        if known is not None and id(grid) in known.grids:
            return known.grids[id(grid)][1:]
    return UNKNOWN, grid.sensitivity, LAWS[grid.law](grid.scale)


def _choose(original: Any, tape: Tape) -> Any:
    def choose(self: Any, rng: Any, scores: Any, sensitivity: Any) -> int:
        if not tape.outside:
            return int(original(self, rng, scores, sensitivity))
        claimed, law = selection_of(self, sensitivity)
        what = f"{type(self).__name__}.choose"
        told, _ = tape.release(what, scores, claimed, law, lambda: original(self, rng, scores, sensitivity))
        return int(told)

    return choose


def _runs(original: Any, tape: Tape) -> Any:
    def around(cls: Any, places: IntArray, weight: Any) -> Any:
        tape.notes["runs"] = original.__func__(cls, places, weight)
        return tape.notes["runs"]

    return classmethod(around)


def _choose_place(original: Any, tape: Tape) -> Any:
    """The runs of two tables differ; what they mean for the points is compared, and the point itself is forced."""

    def choose(self: Any, rng: Any, error: Any, places: IntArray, sensitivity: Any) -> tuple[int, int]:
        runs, law = tape.notes.get("runs"), SelectionLaw(self.multiplier * sensitivity.l1)
        if runs is None or runs.points is not places:  # candidates that are the same on every table
            choices = lambda: original(self, rng, error, places, sensitivity)[0]  # noqa: E731
            chosen, _ = tape.release("QuantileSelection.choose", -error, sensitivity.l1, law, choices)
            return int(chosen), 0
        if tape.recorded is None:
            with tape.inside():
                run, place = original(self, rng, error, places, sensitivity)
            point = int(runs.first[run]) + place
            tape.release("QuantileSelection.choose", np.zeros(0), sensitivity.l1, law, lambda: point)
            tape.notes[len(tape.releases)] = (runs, error)
            return run, place
        entry = tape.expected(tape.recorded.releases, len(tape.releases), "QuantileSelection.choose")
        tape.releases.append(entry)
        other_runs, other_error = tape.recorded.notes[len(tape.releases)]
        point = int(entry.output)
        here = _errors_at(runs, error, np.array([point]))[0]
        there = _errors_at(other_runs, other_error, np.array([point]))[0]
        points = np.concatenate([runs.first[runs.points > 0], other_runs.first[other_runs.points > 0]])
        moved = _errors_at(runs, error, points) - _errors_at(other_runs, other_error, points)
        entry.distance = float(np.abs(moved).max())
        entry.loss = (here - there) / law.scale + _log_mass(runs, error, law) - _log_mass(other_runs, other_error, law)
        run = _run_of(runs, np.array([point]))[0]
        return int(run), point - int(runs.first[run])

    return choose


def _run_of(runs: Any, points: IntArray) -> IntArray:
    filled = np.flatnonzero(runs.points > 0)
    order = filled[np.argsort(runs.first[filled], kind="stable")]
    return order[np.searchsorted(runs.first[order], points, side="right") - 1]


def _errors_at(runs: Any, error: Any, points: IntArray) -> Any:
    return error[_run_of(runs, points)]


def _log_mass(runs: Any, error: Any, law: Law) -> float:
    from scipy.special import logsumexp

    filled = runs.points > 0
    return float(logsumexp(-error[filled] / law.scale, b=runs.points[filled]))


def _draw_point(original: Any, tape: Tape) -> Any:
    """The density is compared at the centres and corners of the cells, and at the point that was drawn."""

    def draw(self: Any, rng: Any, sampler_at: Any, sensitivity: Any) -> Any:
        if not tape.outside:
            return original(self, rng, sampler_at, sensitivity)
        sampler = sampler_at(self.rate(sensitivity))
        if tape.recorded is None:
            with tape.inside():
                point = original(self, rng, lambda rate: sampler, sensitivity)
            centres, halves = sampler.cells.centres, sampler.cells.halves
            points = np.vstack([centres - halves, centres, centres + halves])
            tape.notes[len(tape.releases)] = points = np.vstack([points[sampler.inside(points)], point])
        else:
            points = tape.recorded.notes[len(tape.releases)]
            point = points[-1]
        energies = sampler.energy.values(points)
        told, _ = tape.release("PointSelection.draw", energies, 1.0 / self.multiplier, DensityLaw(1.0), lambda: point)
        return told

    return draw


def _choice(original: Any, tape: Tape) -> Any:
    name = original.__name__

    def choice(self: Any, *args: Any, **named: Any) -> Any:
        if not tape.outside:
            return original(self, *args, **named)
        if tape.recorded is None:
            with tape.inside():
                drawn = original(self, *args, **named)
            tape.draws.append((name, args, _copied(drawn)))
            return drawn
        before, earlier, drawn = tape.expected(tape.recorded.draws, len(tape.draws), f"a draw by {name}")
        tape.draws.append((before, earlier, drawn))
        if before == name and _equal(args, earlier):
            return _copied(drawn)
        if before == name and tape.removed is not None:
            return _without_row(name, drawn, tape.removed)
        raise DivergedError(f"{name}{args} was {before}{earlier} on the first table: random choices depend on the rows")

    return choice


def _plain_noise(original: Any, tape: Tape) -> Any:
    """Noise that no mechanism draws: nobody states its cost."""
    name = original.__name__

    def noise(self: Any, *args: Any, **named: Any) -> Any:
        if not tape.outside:
            return original(self, *args, **named)
        drawn = tape.noise(f"generator.{name}", np.nan, Law(1.0), lambda: original(self, *args, **named))
        return np.asarray(drawn)  # whatever it is added to has no claim

    return noise


def _plain_selection(original: Any, tape: Tape) -> Any:
    """A selection that no mechanism makes: nobody states its cost."""

    def select(self: Any, scores: Any) -> Any:
        if tape.outside:
            raise UnseenReleaseError("generator.gumbel_argmax was called by no mechanism that a replay knows.")
        return original(self, scores)

    return select


def _equal(first: tuple[Any, ...], second: tuple[Any, ...]) -> bool:
    return len(first) == len(second) and all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))


def _copied(drawn: Any) -> Any:
    if isinstance(drawn, PoissonSample):
        return drawn
    return tuple(part.copy() for part in drawn) if isinstance(drawn, tuple) else np.copy(drawn)


def _without_row(name: str, drawn: Any, removed: int) -> Any:
    """What the draw is for the other rows, whose chances do not depend on the row that is missing."""
    if name == "poisson_batches":
        indptr, indices = drawn
        kept = indices != removed
        ends = np.concatenate([[0], np.cumsum(kept)])[indptr]
        return ends.astype(np.int64), indices[kept] - (indices[kept] > removed)
    if name == "poisson_sample":
        return SampleOfTheOthers(drawn.key, drawn.rows - 1, drawn.rate, removed)
    if name == "permutation":
        kept = drawn[drawn != removed]
        return kept - (kept > removed)
    if name in ("integers", "uniform"):  # one number for each row
        return np.delete(drawn, removed)
    raise DivergedError(f"a draw by {name} depends on the number of rows")


@dataclass(frozen=True)
class SampleOfTheOthers(PoissonSample):
    """A sample of the rows that are left, with the members that it would have if the missing row were there."""

    removed: int = 0

    def members(self, step: int, start: int, stop: int) -> IntArray:
        whole = PoissonSample(self.key, self.rows + 1, self.rate)
        found = whole.members(step, start + (start >= self.removed), stop + (stop > self.removed))
        kept = found[found != self.removed]
        return kept - (kept > self.removed)
