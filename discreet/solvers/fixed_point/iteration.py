"""The noisy fixed-point iteration with blocks; theorem and proof: docs/guarantees/fixed-point.md."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from discreet._common.checks import LARGEST_THRESHOLD, SMALLEST_THRESHOLD, number_in, one_of, whole
from discreet._common.digest import digest_of
from discreet._common.types import FloatArray, IntArray
from discreet.privacy import accounting, mechanisms
from discreet.privacy.budget import Budget
from discreet.privacy.random.generator import RandomGenerator, generator_from
from discreet.privacy.relation import Relation, relation_from
from discreet.privacy.release import ReleasePlan
from discreet.solvers.fixed_point.activation import Activation
from discreet.solvers.fixed_point.plan import FixedPointResult, grid_of, plan_iteration
from discreet.solvers.fixed_point.queries import ClippedRows, Query

Map = Callable[[FloatArray], FloatArray]
BlockMap = Callable[[FloatArray, IntArray], FloatArray]


@dataclass(frozen=True, eq=False, kw_only=True)
class FixedPoint:
    """u_b <- P_b(u_b + lam (R_b(u) + noise - u_b)) for the active blocks b, with R(u) = public(u) + scale * query(u).

    The query reads the rows; everything else is public. `gd`, `cd` and `admm` are instances.

    Guarantee: all iterates of `run` together cost exactly `plan.event`, if every row's contribution is as declared.

    Parameters
    ----------
    size : int
        Number of entries of the state u.
    steps : int
        Number of steps; it is not changed by what is found in the rows.
    contribution : float
        The largest Euclidean norm of what one row adds to the answer of one block. The caller declares it, and
        `clipped_rows` makes it true.
    rows : int
        The public number of rows.
    scale : float or sequence of float
        What answers are multiplied by, one number or one per block.
    relation : {"replace", "zero_out", "add_remove"}, default="replace"
        Which tables count as neighbours.
    public_part : callable, optional
        public(u), a vector of the same size; None: u itself, so that R is a step along the answer.
    after : callable, optional
        after(u, entries) returns P(u) at the entries that have just moved, such as the proximal map of a penalty;
        None: no such map. It must not read rows.
    blocks : sequence of int, optional
        The block of every entry, numbered from 0; None: one block.
    activation : {"all", "cyclic", "uniform", "independent"}, default="all"
        Which blocks move in a step: all; one after the other; one drawn uniformly; each with the probability.
    probability : float, optional
        Of a block in a step, for activation="independent".
    step_size : float or sequence of float, default=1
        lam in (0, 1], for all steps or for each.
    row_blocks : {"all", "one"}, default="all"
        Whether a row can move the answers of all blocks, or those of a single block, the same one in every step.

    Examples
    --------
    The mean of two columns, by ten noisy steps:

    >>> import numpy as np
    >>> from discreet import Budget
    >>> from discreet.solvers import FixedPoint
    >>> from discreet.solvers.fixed_point import clipped_rows
    >>> X = np.random.default_rng(0).uniform(0.0, 0.5, (10_000, 2))
    >>> mean = FixedPoint(size=2, steps=10, contribution=1.0, rows=10_000, scale=0.5 / 10_000)
    >>> plan = mean.plan(Budget(1.0, 1e-6))
    >>> query = clipped_rows(lambda u, entries: (X - u)[:, entries], clip=1.0)
    >>> result = mean.run(query, plan)
    >>> bool(np.abs(result.last - 0.25).max() < 0.05)
    True
    >>> result.guarantee.epsilon
    1.0
    """

    size: int
    steps: int
    contribution: float
    rows: int
    scale: float | Sequence[float] | FloatArray
    relation: Relation | str = Relation.REPLACE
    public_part: Map | None = None
    after: BlockMap | None = None
    blocks: Sequence[int] | IntArray | None = None
    activation: str = "all"
    probability: float | None = None
    step_size: float | Sequence[float] | FloatArray = 1.0
    row_blocks: Literal["all", "one"] = "all"

    def __post_init__(self) -> None:
        for name in ("size", "steps", "rows"):
            whole(name, getattr(self, name), least=1)
        number_in("contribution", self.contribution, SMALLEST_THRESHOLD, LARGEST_THRESHOLD)
        object.__setattr__(self, "relation", relation_from(self.relation))
        one_of("row_blocks", self.row_blocks, ("all", "one"))
        sizes = self.step_sizes
        if not ((sizes > 0.0) & (sizes <= 1.0)).all():
            raise ValueError("step_size must lie above 0 and be at most 1.")
        _ = self.active, self.scale_of_entries  # refuse what is wrong at once

    @cached_property
    def step_sizes(self) -> FloatArray:
        """lam of every step."""
        return _spread("step_size", self.step_size, self.steps)

    @cached_property
    def entries(self) -> list[IntArray]:
        """The entries of every block."""
        labels = np.zeros(self.size, np.int64) if self.blocks is None else np.asarray(self.blocks)
        count = int(labels.max(initial=0)) + 1 if labels.dtype.kind in "iu" else 0
        if labels.shape != (self.size,) or set(np.unique(labels).tolist()) != set(range(count)):
            raise ValueError(f"blocks must hold {self.size} whole numbers, and all of 0, 1, ... up to the largest.")
        return np.split(np.argsort(labels, kind="stable"), np.cumsum(np.bincount(labels))[:-1])

    @cached_property
    def active(self) -> Activation:
        """The rule by which blocks move."""
        return Activation(self.activation, self.probability, len(self.entries))

    @property
    def largest_block(self) -> int:
        return max(block.size for block in self.entries)

    @cached_property
    def scale_of_entries(self) -> FloatArray:
        """The scale of the block of every entry."""
        scale, out = _spread("scale", self.scale, len(self.entries)), np.empty(self.size)
        for entries, value in zip(self.entries, scale, strict=True):
            out[entries] = value
        return out

    @property
    def sensitivity(self) -> mechanisms.Sensitivity:
        """How far one row can move the answer of one block."""
        return mechanisms.clipped_sum(Relation(self.relation), self.largest_block) * self.contribution

    def plan(self, budget: Budget, random_state: Any = None) -> ReleasePlan:
        """Fix the noise, and the random activations that the cost depends on, from public facts: rows are no argument.

        Parameters
        ----------
        budget : Budget
            The privacy budget of the whole run; Laplace noise for a pure one.
        random_state : int or RandomGenerator, optional
            For the active blocks of activation="independent", and of "uniform" where a row has one block. They are
            public.
        """
        one = self.row_blocks == "one"
        schedule = None
        if self.active.rule == "independent" or (one and self.active.is_random):
            schedule = tuple(self.active.draw(generator_from(random_state), 0, self.steps))
        count = max(1, self.active.releases(self.steps, schedule, one))
        kind: type[mechanisms.Additive] = mechanisms.Laplace if budget.kind == "pure" else mechanisms.Gaussian
        relation = Relation(self.relation)
        multiplier = accounting.calibrate(lambda z: kind(z, count).event, budget, relation)
        return plan_iteration(self, budget, kind(multiplier, count), schedule)

    def run(
        self, query: Query, plan: ReleasePlan, start: Any = None, random_state: Any = None, keep: bool = False
    ) -> FixedPointResult:
        """Make all planned steps.

        Guarantee: the result costs exactly `plan.event`, if every row's contribution is as declared.

        Parameters
        ----------
        query : callable
            query(u, entries, step) answers from the rows; `Query` says how.
        plan : ReleasePlan
            Made by this object.
        start : array of shape (size,), optional
            Where to begin, chosen without the rows; zeros by default.
        random_state : int or RandomGenerator, optional
            None draws secure noise; a seed makes it reproducible, hence removable, and is named in the guarantee. Two
            queries, or two functions of one name, that are run with one seed get the same noise.
        keep : bool, default=False
            Keep all iterates.
        """
        rng = generator_from(random_state)
        last = np.zeros(self.size) if start is None else np.array(start, dtype=np.float64)
        if not rng.secure:
            key = digest_of("fixed point", self, plan.budget, plan.mechanism, plan.schedule)
            rng.rekey(digest_of(key, last))
        kept = [last] if keep else []
        for u in self.iterates(query, plan, rng, last):
            last = u
            if keep:
                kept.append(u)
        return FixedPointResult(last, np.array(kept) if keep else None, plan, seeded=not rng.secure)

    def iterates(
        self, query: Query, plan: ReleasePlan, rng: RandomGenerator, start: FloatArray
    ) -> Iterator[FloatArray]:
        """The iterates after each planned step; `run` is for users, and keys seeded noise by the plan first.

        Guarantee: all of them together cost `plan.event`; a second loop over them would cost it again.
        """
        if plan.iteration is not self:
            raise ValueError("plan was made by another iteration; plan again.")
        if isinstance(query, ClippedRows) and query.clip > self.contribution:
            raise ValueError(
                f"query clips the terms to {query.clip:g}, but the iteration declares a contribution of "
                f"{self.contribution:g}."
            )
        u = np.array(start, dtype=np.float64)
        if u.shape != (self.size,) or not np.isfinite(u).all():
            raise ValueError(f"start must hold {self.size} finite numbers.")
        grid = grid_of(plan)
        for first in range(0, self.steps, self.active.at_once):
            steps = min(self.active.at_once, self.steps - first)
            known = plan.schedule
            moving = self.active.draw(rng, first, steps) if known is None else known[first : first + steps]
            where = [self._entries_of(blocks) for blocks in moving]
            ends = np.cumsum([entries.size for entries in where])
            noise = np.split(grid.noise(rng, int(ends[-1])), ends[:-1])
            for lam, entries, drawn in zip(self.step_sizes[first : first + steps], where, noise, strict=True):
                if entries.size:
                    u = self._moved(u, entries, grid.nearest(_answer(query, u, entries, grid.step)) + drawn, lam)
                yield u

    def _entries_of(self, blocks: IntArray) -> IntArray:
        return np.concatenate([np.empty(0, np.int64), *(self.entries[block] for block in blocks)])

    def _moved(self, u: FloatArray, entries: IntArray, answer: FloatArray, lam: float) -> FloatArray:
        """The next iterate, from a released answer: nothing here reads rows."""
        public = u if self.public_part is None else _of_size("public_part", self.public_part(u.copy()), self.size)
        operator = public[entries] + self.scale_of_entries[entries] * answer
        new = u.copy()
        new[entries] = operator if lam == 1.0 else u[entries] + lam * (operator - u[entries])
        if self.after is not None:
            new[entries] = _of_size("after", self.after(new.copy(), entries), entries.size)
        return new


def _answer(query: Query, u: FloatArray, entries: IntArray, step: float) -> FloatArray:
    answer = np.asarray(query(u.copy(), entries.copy(), step), dtype=np.float64)
    if answer.shape != entries.shape:
        raise ValueError(f"query must return {entries.size} numbers for {entries.size} entries, got {answer.shape}.")
    if not np.isfinite(answer).all():
        raise ValueError("query returned numbers that are not finite; clip what each row adds, as clipped_rows does.")
    return answer


def _of_size(name: str, values: Any, size: int) -> FloatArray:
    found = np.asarray(values, dtype=np.float64)
    if found.shape != (size,):
        raise ValueError(f"{name} must return {size} numbers, got shape {found.shape}.")
    return found


def _spread(name: str, value: Any, count: int) -> FloatArray:
    """One number for all, or one for each."""
    values = np.asarray(value, dtype=np.float64)
    if values.shape not in ((), (count,)) or not np.isfinite(values).all():
        raise ValueError(f"{name} must be a finite number, or {count} of them.")
    return np.broadcast_to(values, (count,))
