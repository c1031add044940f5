"""Without noise every solver reaches the optimum by its own steps, not by those of the accelerated minimiser.

`until_optimal` finishes with accelerated steps what a solver's own steps leave. Here that minimiser is taken away, so
that a solver whose kernel is wrong has nobody to hide behind; the second half of the file plants such faults.
"""

from __future__ import annotations

import numpy as np
import pytest

from discreet import NotPrivateWarning, solve
from discreet.kernels import coordinate, greedy, stochastic
from discreet.privacy.budget import Budget
from discreet.problem.constraints import L1Ball
from discreet.problem.losses import Logistic, Squared
from discreet.problem.penalties import L2
from discreet.problem.problem import Problem
from discreet.solvers._shared import descents, minimisers
from discreet.solvers._shared.full_batch import NoisyGradient
from discreet.solvers._shared.minimisers import QuadraticModel
from discreet.solvers.admm import HiddenDuals
from discreet.solvers.exponential import Energy
from discreet.solvers.ftrl import solver as ftrl_solver
from discreet.solvers.newton.descent import Descent
from tests.catalogue import SIZES, SOLVER_NAMES, name_of, problems, suits, table

NO_BUDGET = Budget(np.inf, 0.5)
# The excess over the optimum, relative to it, that own steps alone reach. Methods with a linear rate get to the
# certificate. The error of Frank-Wolfe, mirror descent and FTRL falls as the inverse of the number of steps at worst,
# that of the exponential mechanism as the square of the width of its cells.
SLOW = {"frank-wolfe": 1e-5, "mirror-descent": 1e-6, "ftrl": 1e-5, "exponential": 2e-2}
# Output and objective perturbation release what a certified minimiser returns: its steps, which are Newton's and
# accelerated ones, are their own and stay.
PAIRS = [(solver, problem) for solver in SOLVER_NAMES for problem in problems() if suits(solver, problem)]


class NotItsOwnStepError(Exception):
    """The shared minimiser was asked to finish from the point `w`."""


def refuse(problem, w, *args, **kwargs):
    raise NotItsOwnStepError(problem, w)


@pytest.fixture
def only_own_steps(monkeypatch):
    """Take away the accelerated steps that would finish the work of others."""
    monkeypatch.setattr(descents, "accelerated_steps", refuse)


def excess(problem, solver):
    """How far own steps alone end above the optimum, relative to it, and whether a certificate ended them."""
    rows, columns = SIZES.get(solver, (120, 4))
    X, y = table(problem.loss, rows, columns, scales=np.ones(columns))
    best = problem.optimum(X, y).value
    try:
        with pytest.warns(NotPrivateWarning):
            solution = solve(problem, X, y, solver, NO_BUDGET)
    except NotItsOwnStepError as cut:
        scaled, w = cut.args
        return (scaled.value(w) - best) / best, False
    return (problem.objective(X, y, solution.w, solution.intercept) - best) / best, True


@pytest.mark.parametrize(("solver", "problem"), PAIRS, ids=lambda x: x if isinstance(x, str) else name_of(x))
def test_own_steps_alone_reach_the_optimum(problem, solver, only_own_steps):
    found, certified = excess(problem, solver)
    advice = f"own steps end {found:.2g} above the optimum; a method with a slower than linear rate gets a row in SLOW"
    assert certified or solver in SLOW, advice
    assert found <= SLOW.get(solver, 1e-8), advice


def scaled_result(factor, function):
    """The function, whose result (a gradient) is multiplied by a factor."""
    return lambda *args, **kwargs: factor * function(*args, **kwargs)


def scaled_argument(factor, function, places):
    """The function with some positional arguments (what sums of gradients are divided by) multiplied by factors."""

    def faulty(*args):
        changed = list(args)
        for place, power in places.items():
            changed[place] = changed[place] * factor**power
        return function(*changed)

    return faulty


def scaled_sums(factor, function):
    """The function, whose last argument (sums of gradients that it fills) is then multiplied by a factor."""

    def faulty(*args):
        function(*args)
        args[-1][:] *= factor

    return faulty


def plant(monkeypatch, owner, name, make, factor, *more):
    monkeypatch.setattr(owner, name, make(factor, getattr(owner, name), *more))


def plain_steps(factor, _):
    """Gradient steps in the place of accelerated ones."""

    def steps(problem, w, step, restarts=True):
        while True:
            w = problem.prox(w - step * factor * problem.gradient(w), step)
            yield w

    return steps


def fault_in_minimiser(monkeypatch, factor):
    monkeypatch.setattr(minimisers, "_quick_guess", lambda scaled, decrement: scaled.start())
    plant(monkeypatch, minimisers, "accelerated_steps", plain_steps, factor)


def fault_in_the_fit(monkeypatch, factor):
    """In the steps of whichever solver `auto` takes for the chosen columns."""
    for solver in ("cd", "gd", "newton"):
        FAULTS[solver](monkeypatch, factor)


def fault_in_noisy_gradient(monkeypatch, factor):
    plant(monkeypatch, NoisyGradient, "__call__", scaled_result, factor)


# Where the gradients of each family of solvers come from: planting a factor there must be noticed. Those that are not
# named take the gradient of `gd`.
OWN_FAULTS = {
    "admm": lambda m, f: plant(m, HiddenDuals, "__call__", scaled_result, f),
    "newton": lambda m, f: plant(m, Descent, "_noisy_gradient", scaled_result, f),
    "sufficient-statistics": lambda m, f: plant(m, QuadraticModel, "minimise", scaled_argument, f, {1: 1}),
    "cd": lambda m, f: plant(m, coordinate, "sweep_dense", scaled_argument, f, {14: -1}),
    "sketched": lambda m, f: plant(m, coordinate, "sets_dense", scaled_argument, f, {15: -1}),
    "greedy-cd": lambda m, f: plant(m, greedy, "sums_dense", scaled_sums, f),
    "frank-wolfe": lambda m, f: plant(m, greedy, "sums_dense", scaled_sums, f),
    "sgd": lambda m, f: plant(m, stochastic, "steps", scaled_argument, f, {12: -1}),
    "bolt-on": lambda m, f: plant(m, stochastic, "steps", scaled_argument, f, {12: -1}),
    "svrg": lambda m, f: plant(m, stochastic, "inner_steps", scaled_argument, f, {12: 1, 16: -1}),
    "dual-cd": lambda m, f: plant(m, stochastic, "dual_steps", scaled_argument, f, {13: -1}),
    "ftrl": lambda m, f: plant(m, ftrl_solver, "leaf_gradient", scaled_result, f),
    "exponential": lambda m, f: plant(m, Energy, "values", scaled_result, f),
    "screened": fault_in_the_fit,
    "output-perturbation": fault_in_minimiser,
    "objective-perturbation": fault_in_minimiser,
}
FAULTS = {name: OWN_FAULTS.get(name, fault_in_noisy_gradient) for name in SOLVER_NAMES}
SCALE_FREE = ("frank-wolfe", "exponential")  # a factor on all scores changes no choice, so it is no fault there


def problem_with_fault(solver):
    """A problem whose optimum moves if its gradients are halved: one with a penalty where the solver takes any."""
    forms = [{"penalty": L2(0.1)}, {"penalty": L2(0.1), "constraint": L1Ball(0.3)}, {"constraint": L1Ball(0.3)}]
    candidates = [Problem(loss, **form) for loss in (Logistic(), Squared()) for form in forms]
    return next(problem for problem in candidates if suits(solver, problem))


@pytest.mark.parametrize("factor", [-1.0, 0.5])
@pytest.mark.parametrize("solver", FAULTS)
def test_a_wrong_sign_and_a_halved_gradient_are_noticed(solver, factor, only_own_steps, monkeypatch):
    if factor > 0.0 and solver in SCALE_FREE:
        pytest.skip("half the scores choose the same")
    problem = problem_with_fault(solver)
    assert excess(problem, solver)[0] <= SLOW.get(solver, 1e-8)
    FAULTS[solver](monkeypatch, factor)
    assert excess(problem, solver)[0] > 2.0 * SLOW.get(solver, 1e-8)
