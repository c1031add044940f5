"""gd, cd and admm are noisy fixed-point iterations: the same plan and the same draws give the same iterates."""

from __future__ import annotations

import numpy as np
import pytest

from discreet.data.public import public_facts
from discreet.data.validation import array_rows
from discreet.privacy.budget import Budget
from discreet.privacy.random.generator import seeded_generator
from discreet.problem.constraints import Box, L1Ball, L2Ball
from discreet.problem.losses import Logistic, Multinomial, Squared
from discreet.problem.penalties import L1, L2, ElasticNet, Zero
from discreet.problem.problem import Problem
from discreet.problem.scaled_problem import scale_problem
from discreet.solvers import ADMM, CoordinateDescent, FixedPoint, GradientDescent
from discreet.solvers._shared.coordinates import smoothness_bounds, thresholds
from discreet.solvers._shared.descents import curvature_bound
from discreet.solvers._shared.full_batch import NoisyGradient
from discreet.solvers.admm import NoisyDuals
from discreet.solvers.base import Run, scaling_of
from discreet.solvers.fixed_point import (
    NonExpansive,
    ProximalStep,
    Reflection,
    Relaxation,
    clipped_rows,
    douglas_rachford,
)
from tests.catalogue import table

pytestmark = pytest.mark.filterwarnings("ignore::discreet.InsecureRandomnessWarning")

ROWS, COLUMNS = 80, 3
BUDGET = Budget(3.0, 1e-5)
NO_BUDGET = Budget(np.inf, 0.5)
CLOSE = {"rtol": 1e-12, "atol": 1e-12}


class Recorder(Run):
    """Keeps the weights whenever a solver reports them."""

    def __init__(self, seed):
        super().__init__(seeded_generator(seed), None, False)
        self.weights = []

    def report(self, done, total, scaled, w):
        self.weights.append(np.array(w))


def prepared(solver, problem, budget=BUDGET, relation="replace"):
    """The plan of a solver for a small table with declared bounds, and the table in scaled columns."""
    X, y = table(problem.loss, ROWS, COLUMNS, scales=np.ones(COLUMNS))
    target = None if problem.loss.classification else (-5.0, 5.0)
    data, count = array_rows(X, y), ROWS if relation == "add_remove" else None
    public = public_facts(data, relation=relation, bounds=(-3.0, 3.0), y_bounds=target, public_n=count)
    plan = solver.plan(problem, public, budget)
    scaling = scaling_of(plan, data, seeded_generator(0))
    return plan, scale_problem(problem, data, scaling, ROWS, solver.capabilities.order)


def solver_path(solver, scaled, plan, seed=7):
    run = Recorder(seed)
    solver._descend(scaled, plan, run)
    return np.array([w.ravel() for w in run.weights])


def own_path(iteration, query, plan, start, seed=7):
    """The iterates by the noisy fixed-point iteration, which plans its own noise: it must be the solver's."""
    own = iteration.plan(plan.budget)
    assert own.mechanism == plan.mechanism
    return np.array(list(iteration.iterates(query, own, seeded_generator(seed), start.ravel())))


def row_gradients(scaled, w):
    """The gradient of every row at w, as vectors."""
    slopes = scaled.slopes(w).reshape(ROWS, -1)
    return (slopes[:, :, None] * scaled.X[:, None, :]).reshape(ROWS, -1)


def gradient_descent(solver, scaled, plan):
    """gd as a fixed-point iteration: one block, R(u) = u - length * mean gradient, then the proximal map."""
    length, clip = solver.step / curvature_bound(scaled), NoisyGradient(scaled, plan, solver.clip).clip
    shape = scaled.shape
    iteration = FixedPoint(
        size=int(np.prod(shape)),
        steps=plan.settings.steps,
        contribution=clip,
        rows=ROWS,
        relation=plan.public.relation,
        scale=-length / ROWS,
        after=lambda u, entries: scaled.prox(u.reshape(shape), length).ravel()[entries],
    )
    return iteration, clipped_rows(lambda u, entries: row_gradients(scaled, u.reshape(shape))[:, entries], clip)


GD = [
    (Problem(Squared(), L1(0.05)), BUDGET, "replace"),
    (Problem(Logistic(), ElasticNet(0.05, 0.5)), Budget.gdp(1.0), "add_remove"),
    (Problem(Logistic(), constraint=L2Ball(0.3)), BUDGET, "replace"),
    (Problem(Squared(), constraint=L1Ball(0.3)), Budget.zcdp(0.3), "zero_out"),
    (Problem(Logistic(), constraint=Box(-0.1, 0.1)), Budget.pure(2.0), "replace"),
    (Problem(Multinomial(3), L2(0.1)), BUDGET, "replace"),
]


@pytest.mark.parametrize(("problem", "budget", "relation"), GD, ids=str)
def test_gd_is_an_instance(problem, budget, relation):
    solver = GradientDescent(steps=12, average=False, scale_share=0.0)
    plan, scaled = prepared(solver, problem, budget, relation)
    theirs = solver_path(solver, scaled, plan)
    ours = own_path(*gradient_descent(solver, scaled, plan), plan, scaled.start())
    np.testing.assert_allclose(ours, theirs, **CLOSE)
    assert np.abs(np.diff(theirs, axis=0)).max() > 1e-3  # it does move


def coordinate_descent(solver, scaled, plan):
    """cd: a block for each column, of one number per output; R_j(u) = u_j - step_j * mean gradient of coordinate j."""
    bound, relation = smoothness_bounds(None, scaled), plan.public.relation
    unit = FixedPoint(size=1, steps=1, contribution=1.0, rows=ROWS, scale=1.0, relation=relation).sensitivity
    clip = thresholds(None, plan.mechanism.deviation(unit) / ROWS, scaled, plan, bound)
    step, shape = solver.step / bound, scaled.shape
    column = np.arange(int(np.prod(shape))) % scaled.columns
    iteration = FixedPoint(
        size=column.size,
        steps=plan.settings.steps,
        contribution=1.0,  # in thresholds
        rows=ROWS,
        relation=relation,
        scale=-step * clip / ROWS,
        blocks=column,
        activation=solver.sampling,
        after=lambda u, entries: scaled.prox(u.reshape(shape), step).ravel()[entries],
    )

    def terms(u, entries):
        return row_gradients(scaled, u.reshape(shape))[:, entries] / clip[column[entries]]

    return iteration, clipped_rows(terms, 1.0)


CD = [
    (Problem(Squared(), L1(0.05)), BUDGET),
    (Problem(Logistic(), ElasticNet(0.05, 0.5)), Budget.pure(2.0)),
    (Problem(Logistic(), constraint=Box(-0.1, 0.1)), BUDGET),
    (Problem(Multinomial(3), L2(0.1)), BUDGET),
]


@pytest.mark.parametrize("sampling", ["cyclic", "uniform"])
@pytest.mark.parametrize(("problem", "budget"), CD, ids=str)
def test_cd_is_an_instance(problem, budget, sampling):
    solver = CoordinateDescent(passes=4.5, sampling=sampling, average=False, outer=1, scale_share=0.0)
    plan, scaled = prepared(solver, problem, budget)
    theirs = solver_path(solver, scaled, plan)  # told after every pass, and at the end
    ours = own_path(*coordinate_descent(solver, scaled, plan), plan, scaled.start())
    ends = [*range(scaled.columns, len(ours), scaled.columns), len(ours)]
    np.testing.assert_allclose(ours[np.array(ends) - 1], theirs, **CLOSE)
    assert np.abs(np.diff(theirs, axis=0)).max() > 1e-3


def test_another_order_of_the_coordinates_gives_other_iterates():
    """The comparisons can fail: the same draws for blocks in turn are not those for random blocks."""
    solver = CoordinateDescent(passes=4, sampling="uniform", average=False, outer=1, scale_share=0.0)
    plan, scaled = prepared(solver, CD[0][0])
    cyclic = CoordinateDescent(passes=4, average=False, outer=1, scale_share=0.0)
    ours = own_path(*coordinate_descent(cyclic, scaled, plan), plan, scaled.start())
    assert np.abs(ours[-1] - solver_path(solver, scaled, plan)[-1]).max() > 1e-3


def proximal_gradient(scaled, u, weight):
    """g_i = (v_i - prox_{weight f_i}(v_i)) / weight for the squared loss of every row, as an n x p array."""
    X, norms = scaled.X, (scaled.X**2).sum(axis=1)
    return ((X * u).sum(axis=1) - scaled.y)[:, None] / (1.0 + weight * norms)[:, None] * X


def noisy_duals(solver, scaled, plan):
    """The papers' admm: an n x p state, a block per row; R = (reflection of the rows) (reflection of the consensus)."""
    gamma = solver.gamma / curvature_bound(scaled)
    clip = NoisyDuals(scaled, plan, solver.clip, gamma, solver.relaxation).clip

    def consensus(u):
        return scaled.prox(u.reshape(ROWS, -1).mean(axis=0), gamma)

    iteration = FixedPoint(
        size=ROWS * scaled.columns,
        steps=plan.settings.steps,
        contribution=clip,
        rows=ROWS,
        scale=-2.0 * gamma,
        public_part=lambda u: (2.0 * consensus(u) - u.reshape(ROWS, -1)).ravel(),
        blocks=np.repeat(np.arange(ROWS), scaled.columns),
        row_blocks="one",
        step_size=solver.relaxation,
    )

    def query(u, entries, step):
        g = proximal_gradient(scaled, 2.0 * consensus(u) - u.reshape(ROWS, -1), gamma)
        return (g * np.minimum(1.0, clip / np.linalg.norm(g, axis=1))[:, None]).ravel()[entries]

    return iteration, query, consensus


def hidden_duals(solver, scaled, plan):
    """The trusted-server admm: the state is the mean of the duals; the query keeps one exact dual vector per row."""
    gamma, lam = solver.gamma / curvature_bound(scaled), solver.relaxation
    clip = NoisyGradient(scaled, plan, solver.clip).clip
    duals = np.tile(scaled.start(), (ROWS, 1))
    iteration = FixedPoint(
        size=scaled.columns,
        steps=plan.settings.steps,
        contribution=clip,
        rows=ROWS,
        scale=-2.0 * gamma / ROWS,
        public_part=lambda u: 2.0 * scaled.prox(u, gamma) - u,
        step_size=lam,
    )

    def terms(u, entries):
        z = scaled.prox(u, gamma)
        g = proximal_gradient(scaled, 2.0 * z - duals, gamma)
        g *= np.minimum(1.0, clip / np.linalg.norm(g, axis=1))[:, None]
        duals[:] = (1.0 - 2.0 * lam) * duals + 2.0 * lam * (z - gamma * g)
        return g[:, entries]

    return iteration, clipped_rows(terms, clip), lambda u: scaled.prox(u, gamma)


ADMM_PROBLEMS = [Problem(Squared(), L1(0.05)), Problem(Squared(), constraint=L2Ball(0.3)), Problem(Squared(), Zero())]


@pytest.mark.parametrize("relaxation", [0.5, 0.3, 0.8])
@pytest.mark.parametrize("problem", ADMM_PROBLEMS, ids=str)
@pytest.mark.parametrize("form", [hidden_duals, noisy_duals])
def test_admm_is_an_instance(form, problem, relaxation):
    name = form.__name__.replace("_", "-")
    solver = ADMM(rounds=10, relaxation=relaxation, form=name, average=False, scale_share=0.0)
    plan, scaled = prepared(solver, problem)
    theirs = solver_path(solver, scaled, plan)
    iteration, query, consensus = form(solver, scaled, plan)
    start = np.tile(scaled.start(), iteration.size // scaled.columns)
    ours = own_path(iteration, query, plan, start)
    np.testing.assert_allclose([consensus(u) for u in ours], theirs, **CLOSE)
    assert np.abs(np.diff(theirs, axis=0)).max() > 1e-3


@pytest.mark.filterwarnings("ignore::discreet.NotPrivateWarning")
def test_admm_without_noise_is_the_douglas_rachford_operator():
    """From the operators alone: proximal steps of all rows, after the consensus of all rows."""
    solver = ADMM(rounds=10, relaxation=0.3, clip=1e6, form="noisy-duals", average=False, scale_share=0.0)
    plan, scaled = prepared(solver, ADMM_PROBLEMS[0], NO_BUDGET)
    iteration, query, consensus = noisy_duals(solver, scaled, plan)
    gamma = solver.gamma / curvature_bound(scaled)

    def rows_step(u, length):
        v = u.reshape(ROWS, -1)
        return (v - length * proximal_gradient(scaled, v, length)).ravel()

    first = ProximalStep(lambda u, length: np.tile(consensus(u), ROWS), gamma)
    operator = douglas_rachford(ProximalStep(rows_step, gamma), first)
    assert operator.averaged == 0.5
    u, relaxed = np.zeros(iteration.size), Relaxation(operator, 0.6)
    for theirs in iteration.iterates(query, iteration.plan(NO_BUDGET), seeded_generator(0), u):
        u = relaxed(u)
        np.testing.assert_allclose(theirs, u, rtol=1e-10, atol=1e-10)
    both = NonExpansive(lambda u: 2.0 * operator(u) - u, 1.0)  # the R of the iteration
    np.testing.assert_allclose(both(u), (Reflection(ProximalStep(rows_step, gamma)) @ Reflection(first))(u), **CLOSE)
