"""Frank-Wolfe on sparse rows against the plain loop that it replaces.

The plain loop does at every step what the method is written as: margins, slopes and clipped gradient sums from all
stored entries, Gumbel noise on all 2p vertices of the L1 ball, and the largest score. It uses the same compiled
kernels and the same source of noise as the package, both without a grid, so the ratio is due to the algorithm. Both
choose vertices by the same law. Times are processor times of one core, the best of several runs in turns; the set-up
(both orders of the sparse table, first sums, first weights) is told apart from the steps.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from discreet.data.public import Public
from discreet.data.rows import Data
from discreet.kernels import greedy
from discreet.kernels.gradient import UNROUNDED
from discreet.privacy.budget import Budget
from discreet.privacy.mechanisms import clipped_sum
from discreet.privacy.random.generator import RandomGenerator, seeded_generator
from discreet.problem.constraints import L1Ball
from discreet.problem.losses import Logistic
from discreet.problem.problem import Problem
from discreet.problem.scaled_problem import ScaledProblem, scale_problem
from discreet.scaling.learn import learn_scaling
from discreet.solvers import FrankWolfe, Plan
from discreet.solvers.frank_wolfe.vertices import Path, begin

RADIUS = 20.0


@dataclass(frozen=True)
class Setting:
    """One problem in the solver's columns, with the clip and the noise that the plan asks for."""

    scaled: ScaledProblem
    plan: Plan
    clip: float
    scale: float

    @property
    def columns(self) -> int:
        return int(self.scaled.X.shape[1])

    @property
    def steps(self) -> int:
        return int(self.plan.settings.steps)


def prepare(X: Any, y: Any) -> Setting:
    rows, columns = X.shape
    problem = Problem(Logistic(), constraint=L1Ball(RADIUS), fit_intercept=False)
    public = Public(rows, columns, low=np.zeros(columns), high=np.ones(columns), sparse=True)
    solver, data = FrankWolfe(scale_share=0.0), Data(X, y)
    plan = solver.plan(problem, public, Budget(1.0, 1e-6))
    scaling = learn_scaling(plan.scaling_plan, data, public, seeded_generator(0))
    scaled = scale_problem(problem, data, scaling, rows, "F")
    clip = solver.threshold(scaled, plan)
    return Setting(scaled, plan, clip, plan.mechanism.scale(clipped_sum(public.relation) * clip))


class PlainLoop:
    """All entries and all vertices at every step."""

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        self.rows = sp.csr_array(setting.scaled.X)
        self.columns = setting.columns
        self.clip, self.units = np.full(self.columns, setting.clip), np.full(self.columns, UNROUNDED)
        self.w, self.sums = np.zeros(self.columns), np.empty(self.columns)
        self.utilities = np.empty(2 * self.columns)

    def scan(self) -> None:
        scaled, X = self.setting.scaled, self.setting.scaled.X
        slopes = scaled.problem.loss.slope(self.rows @ self.w, scaled.y)
        greedy.sums_sparse(X.indptr, X.indices, X.data, slopes, scaled.kernel_weight, self.clip, self.units, self.sums)

    def choose(self, rng: RandomGenerator) -> tuple[int, float]:
        np.negative(self.sums, out=self.utilities[: self.columns])
        self.utilities[self.columns :] = self.sums
        noise = rng.gumbel(2 * self.columns)
        noise *= self.setting.scale / UNROUNDED
        noise += self.utilities
        best = int(noise.argmax())
        return best % self.columns, 1.0 if best < self.columns else -1.0

    def move(self, chosen: tuple[int, float], share: float) -> None:
        self.w *= 1.0 - share
        self.w[chosen[0]] += share * RADIUS * chosen[1]


def start_fast(setting: Setting) -> Path:
    return begin(setting.scaled, L1Ball(RADIUS), setting.clip, setting.scale, 0.0)


def run_fast(path: Path, steps: int, rng: RandomGenerator) -> list[tuple[int, float]]:
    uniforms, choices = rng.uniform((steps, path.choice.uniforms)), []
    for t in range(steps):
        choices.append(path.choice.draw(uniforms[t]))
        path.move(choices[-1], 2.0 / (t + 2.0), 0.0)
    return choices


def run_plain(loop: PlainLoop, steps: int, rng: RandomGenerator) -> None:
    for t in range(steps):
        loop.scan()
        loop.move(loop.choose(rng), 2.0 / (t + 2.0))


def race(setting: Setting, repeats: int) -> dict[str, float]:
    """The best times in seconds of setting up and of all steps, in turns."""
    forms: dict[str, tuple[Callable[[Setting], Any], Callable[..., Any]]] = {
        "fast": (start_fast, run_fast),
        "plain": (PlainLoop, run_plain),
    }
    best: dict[str, float] = {}
    for repeat in range(repeats + 1):
        for form, (begin_run, run) in forms.items():
            stream = seeded_generator(repeat)
            times = [time.thread_time()]
            state = begin_run(setting)
            times.append(time.thread_time())
            run(state, setting.steps, stream)
            times.append(time.thread_time())
            if repeat > 0:  # the first run compiles
                for part, seconds in ((f"{form} set-up", times[1] - times[0]), (form, times[2] - times[1])):
                    best[part] = min(best.get(part, np.inf), seconds)
    return best


def largest_difference(setting: Setting) -> float:
    """Between the gradient sums of both forms after the same choices."""
    path = start_fast(setting)
    choices = run_fast(path, setting.steps, seeded_generator(1))
    loop = PlainLoop(setting)
    for t, chosen in enumerate(choices):
        loop.move(chosen, 2.0 / (t + 2.0))
    loop.scan()
    return float(np.abs(path.sums - loop.sums).max() * UNROUNDED)


def private_result(setting: Setting, data: Data) -> tuple[Any, float]:
    """Weights at epsilon = 1, and where their objective lies between 2,000 exact steps (0) and the start (1)."""
    problem, public, solver = setting.plan.problem, setting.plan.public, FrankWolfe(steps=2_000, scale_share=0.0)
    exact = solver.plan(problem, public, Budget(np.inf, 0.5))
    best = solver.solve(problem, data, exact, seeded_generator(0)).w
    found = setting.plan.solver.solve(problem, data, setting.plan, seeded_generator(3)).w
    low, value, high = (problem.objective(data.X, data.y, w) for w in (best, found, np.zeros(setting.columns)))
    return found, (value - low) / (high - low)
