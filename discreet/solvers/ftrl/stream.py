"""Learning from rows that come in chunks: follow the leader through a stream that is never held in memory.

The whole stream is planned and booked when it begins; later chunks are part of that one release and cost nothing
more. What is kept is a handful of vectors per level of the tree. Theorem and proof: docs/guarantees/ftrl.md.
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from discreet._common.codec import Count, UsualArray, checked
from discreet._common.digest import digest_of
from discreet._common.types import FloatArray
from discreet.data.rows import Data
from discreet.privacy.mechanisms.aggregation import TreeSums
from discreet.privacy.random.generator import RandomGenerator, generator_from, seeded_generator
from discreet.privacy.relation import Relation
from discreet.privacy.release import booked
from discreet.problem.scaled_problem import scale_problem
from discreet.scaling.learn import learn_scaling
from discreet.solvers import Plan, Solution
from discreet.solvers.ftrl.solver import FTRL, LeafLoop

if TYPE_CHECKING:
    from discreet.data.public import Public
    from discreet.privacy.budget import Budget
    from discreet.privacy.guarantee import ReleaseRecord
    from discreet.privacy.ledger import Ledger
    from discreet.problem.problem import Problem
    from discreet.problem.scaled_problem import ScaledProblem


CAPPED_LEAVES, OPEN_LEAVES = 512, 128  # updates of the one tree, and of each tree of an endless stream
MOST_TREES = 40  # each twice as large as the last, so that nobody has the rows for more
FIRST_ROWS = 2_048  # rows of the first tree where nobody said how long the stream will be


def begin_stream(
    plan: Plan,
    capped: bool,
    first: Data,
    random_state: Any = None,
    ledger: Ledger | str | None = None,
    dataset: str | None = None,
    note: str = "",
) -> Stream:
    """Book the whole stream in the ledger and return it open; nothing is booked for a `first` chunk that does not fit.

    Guarantee: whatever the stream shows until it ends costs exactly `plan.event`, which is booked here. Of the first
    chunk only its shape and its coding of labels were looked at.
    """
    stream = Stream(plan, capped, random_state)
    stream.check(first)
    with booked(plan, stream.source, ledger, dataset, note, capped) as booking:
        stream.booked = None if ledger is None else (ledger, dataset)
    stream.release = booking.record
    return stream


def plan_stream(problem: Problem, public: Public, budget: Budget, solver: FTRL, capped: bool) -> Plan:
    """The plan of a stream of `public.rows` rows (or of its first tree): a tree, one pass, declared bounds."""
    refuse_shifting(public.relation)
    leaves = solver.leaves or (CAPPED_LEAVES if capped else OPEN_LEAVES)
    solver = replace(solver, leaves=leaves, aggregation="tree", epochs=1, shuffle=False, scale_share=0.0)
    return solver.plan(problem, public, budget)


def refuse_shifting(relation: Relation) -> None:
    """The place of a row in a stream decides its leaf, so one row less must not move the others."""
    if relation is Relation.ADD_REMOVE:
        raise ValueError(
            'a stream needs relation="replace" or "zero_out": under "add_remove" one row less would shift the place '
            "of every row after it."
        )


class Stream:
    """The state of a stream: the leader, the open leaf, and how many rows have come.

    `capped` says that the plan's number of rows is the most that may ever come. Otherwise trees follow each other,
    each with leaves twice as large as the last, so that the noise of an update fades while the stream goes on.
    Threads may share a stream: they take turns.

    Guarantee: `solution` is a function of public numbers and of tree nodes with noise; see docs/guarantees/ftrl.md.
    """

    def __init__(self, plan: Plan, capped: bool, random_state: Any = None) -> None:
        if not isinstance(plan.solver, FTRL):
            raise TypeError(f"a stream is planned by FTRL, not by {plan.solver.name!r}.")
        if plan.scaling_plan.method != "declared" or plan.scaling_plan.learns_target:
            raise ValueError("a stream needs declared bounds of columns and target; plan with scale_share=0.")
        self.plan, self.solver, self.capped = plan, plan.solver, capped
        self.source = LeafNoise(random_state, digest_of("stream", plan.digest, capped))
        self.seeded = not self.source.secure  # whether any noise came from a seed, before a pause too
        nothing = Data(np.zeros((0, plan.public.columns)), np.zeros(0))
        self.scaling = learn_scaling(
            plan.scaling_plan, nothing, plan.public, generator_from(None)
        )  # declared: nothing is drawn
        self.scaled = self._scale(nothing)
        self.loop = LeafLoop(plan.solver, plan, self.scaled, self.source.of_leaf)
        self.position = 0  # rows that have come
        self.in_leaf = 0  # of them, in the open leaf
        self.closed = ""  # why no more rows are taken
        self.booked: tuple[Any, str | None] | None = None  # ledger and data set that count it
        self.release: ReleaseRecord | None = None
        self.process = os.getpid()
        self._turn = threading.RLock()
        self._start_tree(0)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Have the open stream to oneself, against other threads."""
        self._check_open()  # before the wait: in a forked process the lock may belong to a thread that is not there
        with self._turn:
            self._check_open()  # after it: another thread may have closed the stream
            yield

    def read(self, data: Data, show: Callable[[Solution], None] | None = None) -> None:
        """Follow the leader through one more chunk of rows, then `show` the model.

        A chunk that is refused leaves no trace. Once its first row has been used, any failure, also of `show`, closes
        the stream: who feeds the chunk again would use its rows twice.
        """
        with self.alone():
            self.check(data)
            scaled = self._scale(data)
            try:
                for _ in self.loop.read(scaled, self._pieces(data.rows)):
                    pass
                if show is not None:
                    show(self.solution())
            except BaseException:
                self.close("reading a chunk was interrupted; begin a new stream with a clone of the estimator")
                raise

    def _pieces(self, rows: int) -> Iterator[tuple[slice, bool]]:
        """The parts of a chunk that belong to one leaf each, and whether they end it."""
        done = 0
        while done < rows:
            left = self._rows_left_in_leaf()
            count = min(rows - done, left)
            yield slice(done, done + count), count == left
            done += count
            self.position += count
            self.in_leaf += count
            if count == left:
                self._end_leaf()

    def solution(self) -> Solution:
        """The model after the last whole leaf."""
        with self.alone():
            leader, average = self.loop.leader, self.loop.leader.average
            coef, intercept = self.scaled.to_user(average.mean() if self.solver.average else leader.w)
            count, scaling = average.count, self.scaled.scaling
            return Solution(coef, intercept, count, self.plan, scaling, seeded=self.seeded, release=self.release)

    def close(self, reason: str) -> None:
        """Take no further rows, and show nothing more."""
        self.closed = reason

    def state(self) -> dict[str, Any]:
        """Everything needed to go on, as JSON values.

        Not private: it holds exact sums. Keep it as safe as the rows.
        """
        with self.alone():
            leader, leaf, sums = self.loop.leader, self.loop.leaf, self.sums
            vectors = {name: getattr(leader, name).tolist() for name in _LEADER_VECTORS}
            average = {"older": leader.average.older.tolist(), "newer": leader.average.newer.tolist()}
            return {
                **{
                    "position": self.position,
                    "in_leaf": self.in_leaf,
                    "leaf": leaf.tolist(),
                    "tree": self.tree,
                    "seeded": self.seeded,
                },
                **{"leaves": leader.average.count, "leaves_in_tree": sums.done},
                **{"exact": sums.exact.tolist(), "open": sums.open.tolist()},
                **{"leader": vectors, "average": average},
            }

    def restore(self, state: dict[str, Any]) -> None:
        """Take over a saved state; the noise to come is drawn afresh."""
        state = checked(_STATE, tuple(_STATE), state, "the saved state")
        counts = {name: state[name] for name in _COUNTS}
        if counts["tree"] > MOST_TREES:
            raise ValueError("the saved state does not fit the model.")
        self.seeded = self.seeded or state["seeded"]
        self._start_tree(counts["tree"])
        self._check_counts(**counts)
        for name in _LEADER_VECTORS:
            setattr(self.loop.leader, name, _fitting(state["leader"][name], self.scaled.shape))
        average = self.loop.leader.average
        average.count = counts["leaves"]
        average.older, average.newer = (_fitting(state["average"][n], self.scaled.shape) for n in ("older", "newer"))
        self.sums.done = counts["leaves_in_tree"]
        self.sums.exact = _fitting(state["exact"], self.sums.exact.shape)
        self.sums.open = _fitting(state["open"], self.sums.open.shape)
        self.loop.leaf = _fitting(state["leaf"], self.scaled.shape)
        self.position, self.in_leaf = counts["position"], counts["in_leaf"]

    def _check_counts(self, position: int, in_leaf: int, tree: int, leaves: int, leaves_in_tree: int) -> None:
        """Refuse counts that do not belong together: a wrong place would let rows come that no noise covers."""
        planned = self.plan.settings
        before = planned.leaves * planned.leaf_rows * (2**tree - 1) + leaves_in_tree * self.loop.leaf_rows
        if self.capped:
            before = min(before, self.plan.public.rows)  # the last leaf may be smaller
        fits = position == before + in_leaf and leaves == tree * planned.leaves + leaves_in_tree
        inside = leaves_in_tree <= planned.leaves and in_leaf < self.loop.leaf_rows and not (self.capped and tree)
        if not (fits and inside):
            raise ValueError("the saved state does not fit the model.")

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError(
            "an open stream cannot be copied or pickled: two copies would spend the budget twice; "
            "use discreet.pause_stream, or save_model for the model alone."
        )

    def _start_tree(self, tree: int) -> None:
        """Begin tree number `tree`: grid, threshold and size of its leaves."""
        self.tree = tree
        self.sums = TreeSums(self.plan.settings.leaves, self.scaled.shape)
        self.loop.start_tree(self.sums, tree)

    def _end_leaf(self) -> None:
        """The leader has followed a leaf: another one begins, and where the tree is full another tree."""
        self.in_leaf = 0
        if self.sums.done == self.sums.leaves and not self.capped:
            self._start_tree(self.tree + 1)

    def _rows_left_in_leaf(self) -> int:
        left = self.loop.leaf_rows - self.in_leaf
        return min(left, self.plan.public.rows - self.position) if self.capped else left

    def _scale(self, data: Data) -> ScaledProblem:
        return scale_problem(
            self.plan.problem, data, self.scaling, self.plan.public.rows, self.solver.capabilities.order
        )

    def _check_open(self) -> None:
        if os.getpid() != self.process:
            raise ValueError("this stream is open in another process; going on here as well would spend twice.")
        if self.closed:
            raise ValueError(f"this stream is closed: {self.closed}.")

    def check(self, data: Data) -> None:
        """Refuse a chunk that does not fit the plan; only its shape and its coding of labels are looked at."""
        public = self.plan.public
        self.plan.problem.check_labels(data.y)
        if data.X.shape[1] != public.columns or data.sparse != public.sparse:
            raise ValueError("all chunks of a stream must have the same columns, and all be dense or all sparse.")
        if self.capped and self.position + data.rows > public.rows:
            raise ValueError(
                f"the stream was declared to have at most {public.rows} rows (public_n) and has {self.position}; "
                f"{data.rows} more would not be covered by its noise."
            )


_COUNTS = ("position", "in_leaf", "tree", "leaves", "leaves_in_tree")
_LEADER_VECTORS = ("w", "base", "latest")
_STATE: dict[str, Any] = {
    **dict.fromkeys(_COUNTS, Count),
    "seeded": bool,
    **dict.fromkeys(("leaf", "exact", "open"), UsualArray),
    **dict.fromkeys(("leader", "average"), Mapping[str, UsualArray]),
}


class LeafNoise:
    """Where the noise of each leaf comes from: one secure generator, or a seed and the number of the leaf.

    Whatever was seeded (an integer, a NumPy generator, a seeded generator) gives one seed, drawn here; `context` is the
    digest of the stream's plan, so that another plan gives another seed. Numbering the leaves makes a resumed run equal
    to an uninterrupted one, and keeps it from drawing the noise of the first leaves again.
    """

    def __init__(self, random_state: Any, context: bytes) -> None:
        self._generator = generator_from(random_state)
        self._generator.rekey(context)
        self._seed = None if self._generator.secure else self._generator.bytes(32)

    @property
    def secure(self) -> bool:
        return self._seed is None

    def of_leaf(self, number: int) -> RandomGenerator:
        if self._seed is None:
            return self._generator
        words = hashlib.sha256(b"discreet leaf %d of seed " % number + self._seed).digest()
        return seeded_generator(int.from_bytes(words, "little"))


def _fitting(values: FloatArray, shape: tuple[int, ...]) -> FloatArray:
    if values.shape != shape:
        raise ValueError("the saved state does not fit the model.")
    return values
