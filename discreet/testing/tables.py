"""What laws are tried on: lines of margins for losses, and small tables, problems and points.

On a straight line of margins a loss is one function of one number, whatever the number of outputs: every law of a loss
is checked on lines, so that losses of one and of several margins share the same checks. Tables are ordinary, degenerate
or hostile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np

from discreet._common.types import FloatArray
from discreet.audit.worst_case import AuditCase
from discreet.data.public import Public
from discreet.data.rows import Data
from discreet.data.validation import array_rows
from discreet.privacy.budget import Budget
from discreet.privacy.random.generator import RandomGenerator, seeded_generator
from discreet.privacy.relation import Relation
from discreet.problem.constraints import Box, L1Ball, L2Ball, Simplex
from discreet.problem.coupled_penalties import TotalVariation
from discreet.problem.losses import ClassWeighted, Huber, Logistic, Loss, Multinomial, Poisson, SmoothedHinge, Squared
from discreet.problem.penalties import L1, L2, ElasticNet
from discreet.problem.problem import Problem
from discreet.solvers import Plan, Solution, Solver

BUDGET = Budget(1.0, 1e-6)
BOUND = 40.0  # declared for columns and targets: ordinary tables lie within it

Rows = tuple[FloatArray, FloatArray]  # a table and its targets
SIZE = 4  # of points: how many coefficients


def table(loss: Loss, rows: int = 120, columns: int = 4, seed: int = 0, scales: FloatArray | None = None) -> Rows:
    """Uneven columns and targets coded as the loss wants them."""
    rng = np.random.default_rng(seed)
    scales = np.geomspace(0.1, 10.0, columns) if scales is None else scales
    X = rng.standard_normal((rows, columns)) * scales + 0.5 * scales
    signal = (X / scales) @ np.linspace(1.0, -1.0, columns)
    if loss.log_link:
        return X, rng.poisson(np.exp(1.0 + 0.3 * signal)).astype(np.float64)
    if not loss.classification:
        return X, signal + 0.3 * rng.standard_normal(rows)
    if loss.outputs == 1:
        return X, np.where(signal + rng.logistic(size=rows) > 0.3, 1.0, -1.0)
    scores = np.ones((rows, loss.outputs))
    scores[:, 0], scores[:, 1] = signal, -signal
    return X, (scores + rng.gumbel(size=scores.shape)).argmax(axis=1).astype(float)


def points() -> list[FloatArray]:
    """Coefficients of many magnitudes, with zeros among them."""
    rng = np.random.default_rng(0)
    found = [np.zeros(SIZE)]
    for scale in (1e-3, 0.1, 1.0, 30.0):
        for _ in range(6):
            found.append(scale * rng.standard_normal(SIZE) * (rng.uniform(size=SIZE) < 0.8))
    return found


def degenerate_tables() -> list[FloatArray]:
    """Tables with nothing, too little or too much in them."""
    rng = np.random.default_rng(0)
    return [
        rng.standard_normal((5, 12)),  # more columns than rows
        rng.standard_normal((40, 1)),
        np.ones((40, 2)),
        np.zeros((40, 2)),
        np.repeat(rng.standard_normal((40, 1)), 3, axis=1),
        np.full((40, 2), 1e300),
        np.zeros((1, 1)),
    ]


def hostile_tables(loss: Loss, rows: int, columns: int, seed: int) -> dict[str, Rows]:
    """Tables of the same size that differ in what they contain: huge, subnormal, constant and empty columns."""
    X, y = table(loss, rows, columns, seed)
    huge, one_huge = np.full_like(X, 1e308), X.copy()
    huge[::2] *= -1.0
    one_huge[0] = 1.7e308
    huge_target = y if loss.classification else np.where(np.arange(rows) % 2, 1e308, -1e308)
    return {
        "rows of 1e308": (huge, huge_target),
        "one row of 1.7e308": (one_huge, y),
        "subnormal rows": (np.full_like(X, 5e-324), y),
        "constant columns": (np.full_like(X, 4.0), y),
        "empty columns": (np.zeros_like(X), y),
    }


def targets(loss: Loss, rows: int, seed: int) -> FloatArray:
    """Random targets that the loss admits, huge ones for regression."""
    rng = np.random.default_rng(seed)
    if not loss.classification:
        return rng.standard_normal(rows) * 10.0 ** rng.integers(-3, 300)
    return rng.choice([-1.0, 1.0], rows) if loss.outputs == 1 else rng.integers(0, loss.outputs, rows).astype(float)


def example_problems() -> list[Problem]:
    """Problems of every kind of loss, penalty and constraint; a solver is tried on those that it takes."""
    return [
        Problem(Logistic(), L2(0.1)),
        Problem(Squared(), L1(0.05)),
        Problem(Huber(0.7), ElasticNet(0.05, 0.5)),
        Problem(SmoothedHinge(0.5), L2(0.1)),
        Problem(Squared(), TotalVariation(0.05)),
        Problem(Multinomial(3), L2(0.1)),
        Problem(Poisson(), L2(0.1)),
        Problem(ClassWeighted(Logistic(), (0.2, 1.0)), L2(0.1)),
        Problem(Logistic(), constraint=Box(-0.1, 0.1)),
        Problem(Squared(), constraint=L1Ball(0.3)),
        Problem(Logistic(), constraint=L2Ball(0.3)),
        Problem(Squared(), constraint=Simplex(1.0)),
    ]


def name_of(problem: Problem) -> str:
    """A problem's loss and its constraint or penalty."""
    return f"{problem.loss.name}-{problem.constraint.name if problem.constraint else problem.penalty.name}"


@dataclass(frozen=True, eq=False)
class SolverCase:
    """A solver with the problems it takes and the size of the tables on which it is tried."""

    solver: Solver[Any, Any]
    problems: Sequence[Problem]
    offered: Sequence[Problem]
    rows: int
    columns: int
    seed: int
    audits: Sequence[AuditCase]

    @property
    def problem(self) -> Problem:
        """The first problem that the solver takes."""
        return self.problems[0]

    def table(self, problem: Problem) -> Rows:
        return table(problem.loss, self.rows, self.columns, self.seed)

    def hostile_tables(self, problem: Problem) -> dict[str, Rows]:
        return hostile_tables(problem.loss, self.rows, self.columns, self.seed)

    @property
    def unscaled(self) -> Solver[Any, Any]:
        """The solver with nothing spent on scales, which makes dense and sparse tables comparable."""
        known = is_dataclass(self.solver) and "scale_share" in {field.name for field in fields(self.solver)}
        return replace(self.solver, scale_share=0.0) if known else self.solver  # type: ignore[type-var]

    def public(
        self, problem: Problem, relation: Relation = Relation.REPLACE, bounded: bool = True, sparse: bool = False
    ) -> Public:
        """Public facts of the tables of this case."""
        limits = (-BOUND, BOUND) if bounded else None
        y_limits = None if problem.loss.classification else limits
        facts: dict[str, Any] = {"relation": relation, "public_n": self.rows, "sparse": sparse}
        return Public.of(self.rows, self.columns, bounds=limits, y_bounds=y_limits, **facts)

    def plan(self, problem: Problem, budget: Budget = BUDGET, **facts: Any) -> Plan[Any, Any]:
        return self.solver.plan(problem, self.public(problem, **facts), budget)

    def run(
        self,
        plan: Plan[Any, Any],
        X: Any,
        y: Any,
        weight: Any = None,
        seed: int | None = None,
        rng: RandomGenerator | None = None,
    ) -> Solution:
        """Run a plan on a table with noise of a known seed, or of a generator."""
        data: Data = array_rows(X, y, weight)
        rng = rng or seeded_generator(self.seed if seed is None else seed)
        return plan.solver.solve(plan.problem, data, plan, rng)


ROUNDS, SPLIT, PIECES = 14, 12, 8  # of the search: intervals split in each round, and into how many pieces
NARROWEST = 1e-7  # interval, relative to where it lies: below it differences are mostly rounding
FAR = np.array([1e8, 1e15, 1e50, 1e150, 1e300])
TARGETS = (0.0, 1.0, -1.0, 1e-3, 0.37, -30.0, 1e3)  # of regression losses, where derivatives are compared
HUGE_TARGETS = (1e8, -1e15, 1e150, -1e300, 1.7e308, 5e-324)
Kernel = Callable[..., Any]


@dataclass(frozen=True, eq=False)
class Line:
    """Margins start + t * direction of one row with one target; the direction has norm 1."""

    loss: Loss
    start: FloatArray
    direction: FloatArray
    target: float

    def margins(self, t: FloatArray) -> FloatArray:
        """The margins at every t, in the shape that the loss wants."""
        points = self.start + np.multiply.outer(t, self.direction)
        return points[:, 0] if self.loss.outputs == 1 else points

    def targets(self, t: FloatArray) -> FloatArray:
        return np.full(t.size, self.target)

    def value(self, t: FloatArray) -> FloatArray:
        return np.asarray(self.loss.value(self.margins(t), self.targets(t)))

    def gradient(self, t: FloatArray) -> FloatArray:
        """The slope in every margin: one row for every t."""
        return np.asarray(self.loss.slope(self.margins(t), self.targets(t))).reshape(t.size, -1)

    def slope(self, t: FloatArray) -> FloatArray:
        """The derivative along the line."""
        return self.gradient(t) @ self.direction

    def curvature(self, t: FloatArray) -> FloatArray:
        """The second derivative along the line; known where the line follows one margin."""
        rows = np.asarray(self.loss.curvature(self.margins(t), self.targets(t))).reshape(t.size, -1)
        return rows @ self.direction**2

    @property
    def follows_one_margin(self) -> bool:
        return np.count_nonzero(self.direction) == 1

    def at(self, t: float) -> str:
        """Where a law was broken, for messages."""
        margin = self.margins(np.array([t]))[0]
        return f"at margin {np.array2string(np.asarray(margin), precision=17)} and target {self.target:.12g}"


def lines_of(loss: Loss, targets: Sequence[float] | None = None) -> list[Line]:
    """Lines on which a loss shows what it can do: through every target, along and between its margins."""
    if loss.outputs > 1:
        return [Line(loss, start, way, float(label)) for label, start, way in _several(loss.outputs)]
    one = np.ones(1)
    if loss.classification:
        return [Line(loss, np.zeros(1), one, label) for label in (-1.0, 1.0)]
    chosen = TARGETS if targets is None else targets
    return [Line(loss, np.full(1, start), one, float(y)) for y in chosen for start in sorted({0.0, float(y)})]


def huge_lines_of(loss: Loss, targets: Sequence[float] | None = None) -> list[Line]:
    """Lines of targets so large that only bounds can be checked."""
    if loss.classification or targets is not None:
        return []
    return [Line(loss, np.full(1, start), np.ones(1), y) for y in HUGE_TARGETS for start in (0.0, y)]


def _several(outputs: int) -> Iterator[tuple[int, FloatArray, FloatArray]]:
    """Labels, starts and directions: single margins, ties of two, away from the label, and random ones."""
    rng = np.random.default_rng(0)
    units = np.eye(outputs)
    tied = np.full(outputs, -1e3)
    tied[:2] = 0.0
    for label in (0, outputs - 1):
        away = np.ones(outputs) - 2.0 * units[label]
        directions = [*units[:3], units[0] - units[1], away, rng.standard_normal(outputs)]
        for start in (np.zeros(outputs), tied, rng.standard_normal(outputs)):
            for way in directions:
                yield label, start, way / np.linalg.norm(way)


def grid_of(line: Line) -> FloatArray:
    """Points of all magnitudes, close together where the slope changes most: a search for the steepest places."""
    sizes = np.geomspace(1e-6, 1e6, 97)
    t = np.unique(np.concatenate([-sizes, [0.0], sizes, np.linspace(-10.0, 10.0, 201)]))
    for _ in range(ROUNDS):
        rise, width = np.abs(np.diff(line.slope(t))), np.diff(t)
        open_ = width > NARROWEST * np.maximum(1.0, np.abs(t[1:]))
        most = np.argsort(np.where(open_, rise, -1.0))[-SPLIT:]
        steepest = np.argsort(np.where(open_, rise / width, -1.0))[-SPLIT:]
        chosen = np.unique(np.concatenate([most, steepest]))
        chosen = chosen[open_[chosen]]
        if chosen.size == 0:
            break
        inner = t[chosen, None] + width[chosen, None] * np.linspace(0.0, 1.0, PIECES + 1)[1:-1]
        t = np.unique(np.concatenate([t, inner.ravel()]))
    return t


@dataclass(frozen=True, eq=False)
class LossCase:
    """A loss with the lines of margins on which it is looked at."""

    loss: Loss
    kernel: Kernel | Literal["auto"] | None = "auto"
    targets: Sequence[float] | None = None

    @cached_property
    def lines(self) -> list[tuple[Line, FloatArray]]:
        """Every line, with points that lie close together where the slope changes most."""
        return [(line, grid_of(line)) for line in lines_of(self.loss, self.targets)]

    @cached_property
    def far_lines(self) -> list[tuple[Line, FloatArray]]:
        """The lines with points far out as well, and lines of huge targets: for bounds, which hold everywhere."""
        far = np.concatenate([-FAR[::-1], FAR])
        return [(line, np.concatenate([t, far])) for line, t in self.lines] + [
            (line, np.concatenate([grid_of(line)[::10], far])) for line in huge_lines_of(self.loss, self.targets)
        ]
