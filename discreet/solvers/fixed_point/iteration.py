"""The noisy fixed-point iteration with blocks; theorem and proof: docs/guarantees/fixed-point.md.

Which blocks move in which step is decided without the rows, by a rule and a generator. What is asked of the rows is
usually a sum over them, each of them clipped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, Protocol

import numpy as np

from discreet._common.checks import LARGEST_THRESHOLD, SMALLEST_THRESHOLD, number_in, one_of, whole
from discreet._common.digest import digest_of
from discreet._common.types import FloatArray, IntArray
from discreet.data.public import Public
from discreet.privacy import accounting, mechanisms
from discreet.privacy.budget import Budget
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.mechanisms.additive import NoisyGrid
from discreet.privacy.random.generator import RandomGenerator, generator_from
from discreet.privacy.relation import Relation, relation_from
from discreet.privacy.release import PlannedRelease, ReleasePlan, planned_releases, with_shares
from discreet.theory.fixed_point import NoisyContraction

RULES = ("all", "cyclic", "uniform", "independent")


@dataclass(frozen=True)
class Activation:
    """A rule for the active blocks of each step.

    Parameters
    ----------
    rule : {"all", "cyclic", "uniform", "independent"}
        All blocks; one after the other; one drawn uniformly; each with the probability, independently.
    probability : float or None
        For "independent" only.
    blocks : int
        How many blocks there are.
    """

    rule: str
    probability: float | None
    blocks: int

    def __post_init__(self) -> None:
        one_of("activation", self.rule, RULES)
        if (self.rule == "independent") != (self.probability is not None):
            raise ValueError(f"probability goes with activation='independent', got activation={self.rule!r}.")
        if self.probability is not None:
            number_in("probability", self.probability, 0.0, 1.0, above=True)

    @property
    def is_random(self) -> bool:
        return self.rule in ("uniform", "independent")

    @property
    def at_once(self) -> int:
        """For how many steps blocks and noise are drawn together: a pass over the blocks, where one moves a step."""
        return self.blocks if self.rule in ("cyclic", "uniform") else 1

    @property
    def frequency(self) -> float | None:
        """The probability with which a block moves in a step, whatever happened before; None if there is none."""
        chances = {"all": 1.0, "uniform": 1.0 / self.blocks, "independent": self.probability}
        return chances.get(self.rule)

    def draw(self, rng: RandomGenerator, first: int, steps: int) -> list[IntArray]:
        """The active blocks of some steps from `first` on, in increasing order."""
        every = np.arange(self.blocks, dtype=np.int64)
        if self.rule == "all":
            return [every] * steps
        if self.rule == "cyclic":
            return list(((first + np.arange(steps, dtype=np.int64)) % self.blocks)[:, None])
        if self.rule == "uniform":
            return list(rng.integers(self.blocks, steps)[:, None])
        return [np.flatnonzero(rng.uniform(self.blocks) < (self.probability or 0.0)) for _ in range(steps)]

    def releases(self, steps: int, schedule: tuple[IntArray, ...] | None, one_block_per_row: bool) -> int:
        """How many releases can concern one row: those of all its blocks, in all steps.

        Without a schedule the number must be the same for every draw.
        """
        if schedule is None:
            passes = 1 if self.rule == "all" else self.blocks  # steps until every block has moved once
            return -(-steps // passes) if one_block_per_row else steps * self.blocks // passes
        moves = np.bincount(np.concatenate([*schedule, np.empty(0, np.int64)]), minlength=self.blocks)
        return int(moves.max() if one_block_per_row else moves.sum())


Terms = Callable[[FloatArray, IntArray], FloatArray]


class Query(Protocol):
    """The part of an operator that reads the rows.

    It may keep a memory of each row, such as the dual variables of ADMM, if the memory of a row is a function of that
    row and of the iterates alone.
    """

    def __call__(self, u: FloatArray, entries: IntArray, step: float) -> FloatArray:
        """Return the exact answer for some entries of the state, in their order.

        Parameters
        ----------
        u : ndarray of shape (size,)
            The current iterate, which has been released.
        entries : ndarray of int
            The entries of the active blocks, block after block.
        step : float
            The answer is released as a multiple of this number. A sum over rows is exact in any order if each row's
            term is rounded to a multiple first; 0: no noise, and nothing is rounded.
        """
        ...


def clipped_rows(terms: Terms, clip: float) -> Query:
    """Return the query that sums the terms of the rows, each clipped to a Euclidean norm and rounded to the grid.

    Parameters
    ----------
    terms : callable
        terms(u, entries) returns an array of shape (rows, number of entries), the term of each row. A row's term must
        depend on that row and on u alone.
    clip : float
        The norm; an iteration that declares a smaller `contribution` refuses the query.

    Guarantee: a row adds a vector of norm at most `clip`, before it is rounded, whatever its term is; one that is not
    finite adds nothing.

    Examples
    --------
    >>> import numpy as np
    >>> from discreet.solvers.fixed_point import clipped_rows
    >>> X = np.array([[3.0, 4.0], [0.3, 0.4]])
    >>> query = clipped_rows(lambda u, entries: X[:, entries], clip=1.0)
    >>> query(np.zeros(2), np.array([0, 1]), 0.0).round(2).tolist()
    [0.9, 1.2]
    """
    return ClippedRows(terms, number_in("clip", clip, SMALLEST_THRESHOLD, LARGEST_THRESHOLD))


@dataclass(frozen=True)
class ClippedRows:
    """The query that `clipped_rows` returns."""

    terms: Terms
    clip: float

    def __call__(self, u: FloatArray, entries: IntArray, step: float) -> FloatArray:
        each, clip = np.array(self.terms(u, entries), dtype=np.float64), self.clip
        if each.ndim != 2 or each.shape[1] != entries.size:
            raise ValueError(f"terms must return one row of {entries.size} numbers per row, got shape {each.shape}.")
        each[~np.isfinite(each).all(axis=1)] = 0.0
        largest = np.abs(each).max(axis=1, initial=0.0)  # squares of tiny or huge numbers would leave the range
        each *= (np.minimum(largest, clip) / np.where(largest > 0.0, largest, 1.0))[:, None]
        each *= (clip / np.fmax(np.linalg.norm(each, axis=1), clip))[:, None]
        return (np.rint(each / step) * step if step > 0.0 else each).sum(axis=0)


def releases_of(plan: ReleasePlan) -> list[PlannedRelease]:
    """What will be told about the rows, in words; empty without noise."""
    if plan.budget.is_infinite:
        return []
    known = planned_releases("answers for one block", plan.event, plan.public.relation, plan.iteration.sensitivity)
    return with_shares(known, plan.budget)


def grid_of(plan: ReleasePlan) -> NoisyGrid:
    """Where the answers of one block are released, and their noise."""
    iteration = plan.iteration
    grid: NoisyGrid = plan.mechanism.grid(iteration.sensitivity, iteration.largest_block, iteration.rows)
    return grid


def noise_of(plan: ReleasePlan) -> float:
    """The expected squared norm of the noise on R(u), if all blocks are active."""
    sensitivity, scale = plan.iteration.sensitivity, grid_of(plan).scale  # the grid's is a little larger than planned
    if scale == 0.0:
        return 0.0
    deviation = plan.mechanism.deviation(sensitivity) * scale / plan.mechanism.scale(sensitivity)
    return float((plan.iteration.scale_of_entries**2).sum() * deviation**2)


def contraction_of(plan: ReleasePlan, lipschitz: float, error: float = 0.0) -> NoisyContraction:
    """Return the calculator of error bounds for a run of this plan, if R has the Lipschitz constant `lipschitz` < 1.

    Parameters
    ----------
    plan : ReleasePlan
        Made by `FixedPoint.plan`.
    lipschitz : float
        Of the operator R itself, clipping included; a public assumption that nothing here checks.
    error : float
        Root of a bound on the mean squared norm of the error with which R is evaluated.
    """
    sizes, frequency = plan.iteration.step_sizes, plan.iteration.active.frequency
    if frequency is None:
        raise ValueError("the bounds need activation='all', 'uniform' or 'independent'; blocks in turn have none.")
    if np.ptp(sizes) > 0.0:
        raise ValueError("the bounds are for one step size in all steps; use NoisyContraction step by step.")
    return NoisyContraction(lipschitz, noise_of(plan), float(sizes[0]), frequency, error)


@dataclass(frozen=True, eq=False)
class FixedPointResult:
    """What a run returns.

    Attributes
    ----------
    last : ndarray of shape (size,)
        The last iterate.
    iterates : ndarray of shape (steps + 1, size) or None
        All iterates, the start first, if they were asked for.
    plan : ReleasePlan
        What was decided before the rows were read.
    seeded : bool
        Whether the noise came from a seed or from a NumPy generator; the guarantee then names this as a leak.

    Guarantee: `last` and `iterates` together are differentially private as `guarantee` states.
    """

    last: FloatArray
    iterates: FloatArray | None
    plan: ReleasePlan
    seeded: bool

    @property
    def guarantee(self) -> Guarantee:
        """What is promised about this result."""
        return self.plan.guarantee.with_seed() if self.seeded else self.plan.guarantee


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
        one, relation, schedule = self.row_blocks == "one", Relation(self.relation), None
        if self.active.rule == "independent" or (one and self.active.is_random):
            schedule = tuple(self.active.draw(generator_from(random_state), 0, self.steps))
        count = max(1, self.active.releases(self.steps, schedule, one))
        kind: type[mechanisms.Additive] = mechanisms.Laplace if budget.kind == "pure" else mechanisms.Gaussian
        mechanism = kind(accounting.calibrate(lambda z: kind(z, count).event, budget, relation), count)
        public_n = self.rows if relation is Relation.ADD_REMOVE else None
        public = Public.of(self.rows, self.size, relation=relation, public_n=public_n)
        settings = {"iteration": self, "schedule": schedule}  # the active blocks, where the cost depends on them
        cost = accounting.non_private_event() if budget.is_infinite else None
        return ReleasePlan("fixed point", public, budget, {"mechanism": mechanism}, settings, cost)

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
