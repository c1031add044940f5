"""What the printed noise really costs, where it is too small: the certified epsilon beside the claimed one."""

from __future__ import annotations

import math
import warnings

from framework import Cell, Experiment
from framework.markdown import number, table
from framework.paper_noise import certified_epsilon, tree_noise, with_calibration

from discreet import Budget, Problem
from discreet.data.public import Public
from discreet.privacy import accounting
from discreet.problem.constraints import L1Ball
from discreet.problem.losses import Logistic, Squared
from discreet.problem.penalties import L1, L2
from discreet.solvers import FrankWolfe, GreedyCoordinateDescent, OutputPerturbation, StochasticGradientDescent

NAME = "claims"
CASES = {
    "output perturbation, Theorem 3.2.1 of the thesis": [{"rows": 1_000, "delta": d} for d in (1e-5, 1e-10)],
    "DP-GCD, equation B.1.1 of the thesis": [{"rows": 1_000, "steps": t, "delta": 1e-6} for t in (10, 20, 100)],
    "DP-SGD with single rows, DP-CD paper and thesis": [
        {"rows": n, "passes": p, "delta": 1.0 / n**2} for n, p in ((1_000, 1), (20_640, 20), (45_312, 50))
    ],
    "Frank-Wolfe, Algorithm 6 of the book chapter": [{"rows": 1_000, "steps": 49, "delta": 1e-6}],
    "tree of DP-FTRL, Theorem 6.14 of the book chapter": [{"rows": n, "delta": 1e-5} for n in (1, 2, 4, 1_024)],
}


def cells(quick):
    for what, settings in CASES.items():
        for setting in settings[:1] if quick else settings:
            yield Cell(NAME, "", what, setting)


def measure(cell):
    setting, budget = cell.setting, Budget(1.0, cell.setting["delta"])
    if cell.method.startswith("tree"):
        multiplier = tree_noise(setting["rows"], 1.0, budget.delta)
        nodes = math.floor(math.log2(setting["rows"])) + 1
        if multiplier == 0.0:
            return {"certified": None, "multiplier": 0.0}
        event = accounting.gaussian_event(multiplier, nodes)
        return {"certified": accounting.epsilon_of(event, budget.delta, "zero_out"), "multiplier": multiplier}
    solver, problem, relation = solver_for(cell.method, setting)
    public = Public.of(setting["rows"], 8, bounds=(-1.0, 1.0), y_bounds=(-1.0, 1.0), relation=relation)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plan = with_calibration(solver.plan(problem, public, budget), "paper")
    return {"certified": certified_epsilon(plan), "multiplier": plan.mechanism.multiplier}


def solver_for(what, setting):
    """The solver, a problem that it takes, and the relation of its paper."""
    logistic = Problem(Logistic(), L2(0.01), fit_intercept=False)
    if what.startswith("output"):
        return OutputPerturbation(scale_share=0.0), logistic, "replace"
    if what.startswith("DP-GCD"):
        known = {"clip": 1.0, "smoothness": (1.0,) * 8, "selection": "laplace"}
        problem = Problem(Squared(), L1(0.1), fit_intercept=False)
        return GreedyCoordinateDescent(steps=setting["steps"], **known), problem, "replace"
    if what.startswith("DP-SGD"):
        single = StochasticGradientDescent(passes=setting["passes"], sampler="single", clip=1.0, scale_share=0.0)
        return single, logistic, "replace"
    ball = Problem(Squared(), constraint=L1Ball(1.0), fit_intercept=False)
    return FrankWolfe(steps=setting["steps"], clip=2.0, scale_share=0.0), ball, "zero_out"


def page(results, folder):
    rows = []
    for cell, numbers in results.select():
        about = ", ".join(f"{name} {_short(value)}" for name, value in cell.setting.items())
        found = numbers["certified"]
        rows.append([cell.method, about, "1", "infinite" if found is None else number(found)])
    return table(["printed noise", "setting", "claimed epsilon", "certified epsilon"], rows)


def _short(value):
    return f"{value:,}" if isinstance(value, int) else f"{value:.3g}"


claims = Experiment(
    NAME,
    "papers",
    "what the printed noise really costs, where it is too small",
    cells,
    measure,
    page,
    file="papers.md",
    order=0,
    version=2,
)
