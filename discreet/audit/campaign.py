"""A campaign of replays: every solver, relation and kind of table, with hostile rows, and a wrong distance beside each.

One release is one noisy number, vector or choice that a mechanism told on the first table, and whose statistic was
computed anew on the neighbour, from the same past, and held against the sensitivity that the mechanism was told. All
tables and all noise follow from the numbers of rounds, so that a campaign can be repeated. The size of the noise is
tested at level 1e-6 in each replay.
"""

from __future__ import annotations

import multiprocessing
import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import Any
from zlib import crc32

import numpy as np

from discreet._common.exceptions import DiscreetWarning
from discreet._common.types import FloatArray
from discreet.audit import release_cases
from discreet.audit.faults import with_wrong_distance
from discreet.audit.neighbours import hostile_neighbours
from discreet.audit.places import PLACES, facts_of, placed, why_not_placed
from discreet.audit.release_cases import ReleaseCase
from discreet.audit.replays.replay import Replay, replay
from discreet.audit.solver_cases import solver_case
from discreet.audit.targets import Target
from discreet.data.public import Public
from discreet.data.rows import Data
from discreet.privacy.budget import Budget
from discreet.privacy.random.generator import seeded_generator
from discreet.privacy.relation import Relation
from discreet.problem.constraints import Box, L1Ball
from discreet.problem.losses import Huber, Logistic, Multinomial, SmoothedHinge, Squared
from discreet.problem.penalties import L1, L2
from discreet.problem.problem import Problem
from discreet.solvers import SOLVERS, Plan, Solver

BUDGET = Budget(5.0, 1e-4)
WRONG = (0.5, 0.25)  # of the sensitivity is claimed in a planted fault; the first that is found is told
TRIES = 20  # seeds with which a planted fault is looked for: a sampled row need not take part in a run
PROBLEMS = (
    Problem(Logistic(), L2(0.01)),
    Problem(Squared(), L1(0.01)),
    Problem(Huber(0.7), L2(0.01), fit_intercept=False),
    Problem(SmoothedHinge(0.5), L2(0.01)),
    Problem(Multinomial(3), L2(0.01)),
    Problem(Logistic(), constraint=Box(-2.0, 2.0)),
    Problem(Logistic(), constraint=L1Ball(2.0)),
)
SIZES = {"newton": (200, 2), "exponential": (100, 2)}  # rows and columns of the made-up tables; others: (40, 3)
# Most steps where steps are cheap: with few rows the time of a replay goes into Python.
MANY: Mapping[str, Mapping[str, Any]] = {
    "cd": {"passes": 250},
    "greedy-cd": {"steps": 40},
    "sketched": {"steps": 300},
    "gd": {"steps": 400},
    "accelerated-gd": {"steps": 200},
    "admm": {"rounds": 100},
    "sgd": {"batch_size": 10, "passes": 450},
    "svrg": {"anchors": 40, "inner": 40, "batch_size": 10},
    "dual-cd": {"passes": 500, "batch_size": 10},
    "frank-wolfe": {"steps": 20},
    "mirror-descent": {"steps": 200},
    "newton": {"steps": 30},
}
ROUNDS = {"memory": 6, "sparse": 2, "persons": 2, "stored": 1, "Dask": 1, "tensor": 1}
FEW = {"steps": 30, "rounds": 30, "passes": 10, "anchors": 2}  # on kinds of tables whose passes are slow
CASES: Mapping[str, Callable[[Relation], ReleaseCase]] = {
    "private_certificate": release_cases.counts_case,
    "gradient_distance": release_cases.gradient_case,
    "private_smoothness": release_cases.smoothness_case,
    "PrivateQuantiles": release_cases.quantiles_case,
    "cross_val_score_private": release_cases.cross_validation_case,
    "federated, rows": release_cases.federated_case,
    "federated, clients": release_cases.client_case,
    "graph, tree": release_cases.network_case,
    "graph, gossip": lambda relation: release_cases.network_case(relation, "gossip"),
    "graph, token": lambda relation: release_cases.network_case(relation, "walk"),
    "graph, token of admm": lambda relation: release_cases.network_case(relation, "admm-walk"),
}
CASE_ROUNDS = 10
NOT_PLACED = "a release of its own"  # instead of a kind of table


@dataclass(frozen=True)
class Cell:
    """What is replayed together: a solver or another release under one relation, on one kind of table."""

    name: str
    relation: Relation
    place: str

    def __str__(self) -> str:
        return f"{self.name}, {self.relation}, {self.place}"

    @property
    def seed(self) -> int:
        """A number of its own."""
        return crc32(str(self).encode())


@dataclass(frozen=True)
class Tally:
    """What the replays of a cell showed.

    Attributes
    ----------
    cell : Cell
    replays, releases : int
        How many runs were replayed, and how many releases they made.
    largest : float
        The largest distance of a statistic, over what was claimed.
    violations : tuple of str
        What contradicts a promise.
    wrong : float or None
        The planted fault that was found: which part of the sensitivity was claimed. None: no fault was found.
    """

    cell: Cell
    replays: int
    releases: int
    largest: float
    violations: tuple[str, ...]
    wrong: float | None

    @property
    def passed(self) -> bool:
        return not self.violations and self.wrong is not None


def cells() -> Iterator[Cell]:
    """Every cell that is possible with what is installed."""
    for name, kind in SOLVERS.items():
        for relation in Relation:
            for place in PLACES:
                if why_not_placed(kind(), relation, place) is None:
                    yield Cell(name, relation, place)
    for name, make in CASES.items():
        for relation in Relation:
            if release_cases.refusal(make, relation) is None:
                yield Cell(name, relation, NOT_PLACED)


def audit_cell(cell: Cell) -> Tally:
    """Make all replays of a cell, and look for a wrong distance."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DiscreetWarning)
        results = list(_case_replays(cell) if cell.place == NOT_PLACED else _solver_replays(cell))
        wrong = next((factor for factor in WRONG if _finds(cell, factor)), None)
    violations = tuple(problem for _, found in results for problem in found.problems)
    releases = sum(len(found.releases) for _, found in results)
    return Tally(cell, len(results), releases, max(found.largest_ratio for _, found in results), violations, wrong)


def _case_replays(cell: Cell) -> Iterator[tuple[str, Replay]]:
    case = CASES[cell.name](cell.relation)
    for number in range(CASE_ROUNDS):
        yield "worst case", replay(case.target, case.first, case.second, seeded_generator(cell.seed + number))


def _solver_replays(cell: Cell) -> Iterator[tuple[str, Replay]]:
    """Made-up tables with hostile rows, a problem of another kind in each round."""
    solver = _solver(cell)
    problems = [problem for problem in PROBLEMS if solver.why_incompatible(problem, BUDGET) is None]
    for number in range(ROUNDS[cell.place]):
        rng = np.random.default_rng(cell.seed + number)
        problem = problems[number % len(problems)]
        data, labels = _table(problem, *SIZES.get(cell.name, (40, 3)), rng)
        plan = _plan(solver, problem, data, cell)
        for pair in hostile_neighbours(data, cell.relation, rng, labels):
            found = replay(placed(plan, cell.place), pair.first, pair.second, seeded_generator(cell.seed + number))
            yield pair.change, found


def _solver(cell: Cell) -> Solver[Any, Any]:
    """The solver with many steps, or with few where a pass is slow because of where the rows lie."""
    settings = dict(MANY.get(cell.name, {}))
    if facts_of(cell.place)["stored"]:
        settings |= {name: few for name, few in FEW.items() if name in settings}
    return SOLVERS[cell.name](**settings)


def _table(problem: Problem, rows: int, columns: int, rng: np.random.Generator) -> tuple[Data, FloatArray | None]:
    """Uniform columns and any targets, and the labels that there are."""
    X, loss = rng.uniform(-1.0, 1.0, (rows, columns)), problem.loss
    if not loss.classification:
        return Data(X, rng.uniform(-1.0, 1.0, rows)), None
    labels = np.array([-1.0, 1.0]) if loss.outputs == 1 else np.arange(float(loss.outputs))
    return Data(X, rng.choice(labels, rows)), labels


def _plan(solver: Solver[Any, Any], problem: Problem, data: Data, cell: Cell) -> Plan[Any, Any]:
    declared: dict[str, Any] = {"bounds": (-1.0, 1.0), "public_n": data.rows, **facts_of(cell.place)}
    if not problem.loss.classification:
        declared["y_bounds"] = (-1.0, 1.0)
    return solver.plan(problem, Public.of(data.rows, data.columns, relation=cell.relation, **declared), BUDGET)


def _finds(cell: Cell, factor: float) -> bool:
    """Whether a replay of the worst case finds that so much of the sensitivity is claimed, with one of some seeds."""
    target, first, second = _worst(cell)
    wrong = with_wrong_distance(target, factor)
    replays = (replay(wrong, first, second, seeded_generator(cell.seed + number)) for number in range(TRIES))
    return any("moved by" in problem for found in replays for problem in found.problems)


def _worst(cell: Cell) -> tuple[Target, Data, Data]:
    if cell.place == NOT_PLACED:
        case = CASES[cell.name](cell.relation)
        return case.target, case.first, case.second
    worst = solver_case(cell.name, cell.relation)
    return placed(worst.plan_for(**facts_of(cell.place)), cell.place), worst.first, worst.second


def run_campaign(chosen: Sequence[Cell] | None = None, processes: int | None = None) -> Iterator[Tally]:
    """All cells in their order, in so many processes; what is found does not depend on how many there are."""
    wanted = list(cells()) if chosen is None else list(chosen)
    if processes == 1:
        yield from map(audit_cell, wanted)
        return
    fresh = multiprocessing.get_context("spawn")  # a fork would take half of the threads that there are
    with ProcessPoolExecutor(processes or min(2, os.cpu_count() or 1), fresh) as pool:
        yield from pool.map(audit_cell, wanted)
