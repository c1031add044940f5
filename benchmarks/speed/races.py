"""Ours against the plain C++ loops, and the random stream against NumPy's, in the same process."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from framework.timing import Row, alternate, milliseconds
from reference import Reference, build

from discreet import Budget, Problem
from discreet.data.public import Public
from discreet.data.validation import array_rows
from discreet.privacy.random.generator import secure_generator
from discreet.problem.losses import Logistic
from discreet.problem.penalties import L2
from discreet.solvers import CoordinateDescent, Plan, Solver, StochasticGradientDescent

RIDGE = 1e-3
PASSES = 50
CLIP = 1.0
ROW_STEP = 0.02  # of the batches of one row, in units of 1/beta: small enough for the agreement check
AGREEMENT = 0.05  # without noise both must reach the same objective, up to the order of the steps
DRAWS = 1_000_000
RACES = LONG, SQUARE, SINGLE = ("cd on many rows", "cd on many columns", "sgd, batches of one row")
LAWS = ("normal", "Laplace", "uniform")


def table(rows: int, columns: int) -> tuple[Any, Any]:
    """Entries in [-1, 1], labels from a logistic model."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, (rows, columns))
    chance = 1.0 / (1.0 + np.exp(-X @ rng.standard_normal(columns)))
    return X, np.where(rng.random(rows) < chance, 1.0, -1.0)


class Race:
    """One solver and its C++ counterpart on one table, with equal steps, thresholds and noise."""

    def __init__(self, solver: Solver, rows: int, columns: int) -> None:
        self.solver, self.rows, self.columns = solver, rows, columns
        self.problem = Problem(Logistic(), L2(RIDGE), None, fit_intercept=False)
        # Declared bounds of -1 and 1 make the solver's columns those of the table.
        self.public = Public(rows, columns, low=np.full(columns, -1.0), high=np.ones(columns))
        self.X, self.y = table(rows, columns)
        self.data = array_rows(self.X, self.y)
        self.rng = secure_generator()
        self.plan = self._plan(Budget(1.0, 1.0 / rows**2))

    def _plan(self, budget: Budget) -> Plan:
        return self.solver.plan(self.problem, self.public, budget)

    def ours(self, plan: Plan | None = None) -> Any:
        return self.solver.solve(self.problem, self.data, plan or self.plan, self.rng).w

    def theirs(self, reference: Reference, multiplier: float | None = None) -> Any:
        """A row is replaced, so the noise is the multiplier times twice the threshold."""
        noise = 2.0 * (self.plan.mechanism.multiplier if multiplier is None else multiplier)
        steps = self.plan.settings.steps
        smoothness = 0.25 * self.columns
        if isinstance(self.solver, StochasticGradientDescent):
            call: Callable[..., Any] = reference.stochastic_gradient
            return call(self.X, self.y, steps, CLIP, ROW_STEP / smoothness, noise, RIDGE, 1)
        clip, step = np.full(self.columns, CLIP / np.sqrt(self.columns)), np.full(self.columns, 4.0)
        return reference.coordinate_descent(self.X, self.y, steps, clip, step, noise, RIDGE, 1)

    def disagreement(self, reference: Reference) -> float:
        """Relative difference of the objectives that both reach without noise."""
        silent = self._plan(Budget(float("inf"), 0.5))
        values = [
            self.problem.objective(self.X, self.y, w, 0.0) for w in (self.ours(silent), self.theirs(reference, 0.0))
        ]
        return abs(values[0] - values[1]) / values[1]


def race_rows(name: str) -> list[Row]:
    """One of the races; without a compiler our own time only."""
    descent = CoordinateDescent(PASSES, CLIP, sampling="uniform", average=False, outer=1, scale_share=0.0)
    single = StochasticGradientDescent(
        PASSES, sampler="single", clip=CLIP, step=ROW_STEP, average=False, scale_share=0.0
    )
    races = {
        LONG: (descent, 45_312, 8, 6.0),
        SQUARE: (descent, 1_000, 1_000, 4.0),
        SINGLE: (single, 45_312, 8, 3.0),
    }
    solver, rows, columns, target = races[name]
    return [_race(Race(solver, rows, columns), build(), target)]


def _race(race: Race, reference: Reference | None, target: float) -> Row:
    kind = "batches of one row, " if race.solver.name == "sgd" else ""
    what = f"`{race.solver.name}`, {kind}{race.rows:,} x {race.columns:,}, {PASSES} passes"
    if reference is None:
        times = alternate({"ours": race.ours})
        return Row(what, milliseconds(times["ours"]), "no C++ compiler found", "")
    gap = race.disagreement(reference)
    if gap > AGREEMENT:
        raise RuntimeError(f"{what}: without noise the objectives differ by {gap:.1%}; the race compares nothing.")
    times = alternate({"ours": race.ours, "theirs": partial(race.theirs, reference)})
    ratio = times["theirs"] / times["ours"]
    ours, theirs = milliseconds(times["ours"]), milliseconds(times["theirs"])
    return Row(what, ours, f"C++ {theirs}", f"{ratio:.1f} times faster", f"at least {target:g}", ratio >= target)


def draw_rows(name: str) -> list[Row]:
    """Nanoseconds for one draw, in arrays of a million."""
    stream, numpys = secure_generator(), np.random.default_rng()
    pairs: dict[str, tuple[Callable[[int], Any], Callable[[int], Any]]] = {
        "normal": (stream.normal, numpys.standard_normal),
        "Laplace": (stream.laplace, lambda size: numpys.laplace(size=size)),
        "uniform": (stream.uniform, numpys.random),
    }
    ours, theirs = pairs[name]
    times = alternate({"ours": partial(ours, DRAWS), "theirs": partial(theirs, DRAWS)})
    mine, other = 1e9 * times["ours"] / DRAWS, 1e9 * times["theirs"] / DRAWS
    ratio = f"{other / mine:.1f} times faster"
    return [Row(f"one {name} draw, cryptographic", f"{mine:.2f} ns", f"NumPy PCG64 {other:.2f} ns", ratio)]
