"""Rows read in blocks from where they are stored: the same model, to the last bit, as with all rows in memory."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from discreet import IncompatibleSolverError
from discreet.data import rows
from discreet.data.public import Public
from discreet.data.rows import Data
from discreet.privacy.budget import Budget
from discreet.privacy.random.generator import seeded_generator
from discreet.problem import (
    L1,
    L2,
    Box,
    Huber,
    L1Ball,
    L2Ball,
    Logistic,
    Multinomial,
    Problem,
    Simplex,
    SmoothedHinge,
    Squared,
)
from discreet.solvers import (
    ADMM,
    SOLVERS,
    SVRG,
    FrankWolfe,
    GradientDescent,
    MirrorDescent,
    Newton,
    SufficientStatistics,
)
from discreet.solvers import GreedyCoordinateDescent as Greedy
from discreet.solvers import StochasticGradientDescent as Stochastic
from tests.catalogue import problem_for, table
from tests.stored_rows import StoredTable


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """About thirty blocks."""
    monkeypatch.setattr(rows, "BLOCK_ENTRIES", 400)


def solved(solver, problem, data, public, budget):
    plan = solver.plan(problem, public, budget)
    return solver.solve(problem, data, plan, seeded_generator(7))


CASES = {
    "newton-logistic": (Newton(), Problem(Logistic(), L2(1e-3))),
    "newton-squared": (Newton(), Problem(Squared(), L2(1e-3))),
    "newton-multinomial": (Newton(), Problem(Multinomial(3), L2(1e-3))),
    "newton-given-thresholds": (Newton(steps=3, clip=2.0, radius=3.0), Problem(Logistic())),
    "gd-logistic": (GradientDescent(steps=20), Problem(Logistic(), L2(1e-3))),
    "gd-ball": (GradientDescent(steps=20), Problem(Squared(), constraint=L2Ball(1.0))),
    "admm-logistic": (ADMM(rounds=20), Problem(Logistic(), L2(1e-3))),
    "admm-noisy-duals": (ADMM(rounds=3, form="noisy-duals"), Problem(Squared(), L2(1e-3))),
    "gd-multinomial": (GradientDescent(steps=10), Problem(Multinomial(3))),
    "mirror-descent": (MirrorDescent(steps=10), Problem(Squared(), constraint=Simplex(1.0))),
    "sgd-logistic": (Stochastic(passes=2), Problem(Logistic(), L2(1e-3))),
    "sgd-small-batches": (Stochastic(passes=0.3, batch_size=20), Problem(Squared(), L2(1e-3))),
    "sgd-hinge-box": (Stochastic(passes=1, average=False), Problem(SmoothedHinge(), constraint=Box(-0.3, 0.3))),
    "sgd-huber-l1": (Stochastic(passes=1), Problem(Huber(), L1(1e-3), fit_intercept=False)),
    "sgd-ball": (Stochastic(passes=1), Problem(Logistic(), constraint=L2Ball(1.0))),
    "sgd-multinomial": (Stochastic(passes=1), Problem(Multinomial(3), L2(1e-3))),
    "sgd-all-rows": (Stochastic(passes=5, batch_size=3_000), Problem(Logistic())),
    "svrg-logistic": (SVRG(anchors=3, inner=4), Problem(Logistic(), L2(1e-3))),
    "svrg-huber": (SVRG(anchors=2, inner=4), Problem(Huber(), L1(1e-3), fit_intercept=False)),
    "svrg-ball": (SVRG(anchors=2, inner=3), Problem(Squared(), constraint=L2Ball(1.0))),
    "svrg-multinomial": (SVRG(anchors=2, inner=3), Problem(Multinomial(3))),
    "frank-wolfe-l1-ball": (FrankWolfe(steps=10), Problem(Logistic(), constraint=L1Ball(2.0))),
    "frank-wolfe-simplex": (FrankWolfe(steps=10), Problem(Squared(), constraint=Simplex(1.0), fit_intercept=False)),
    "greedy-cd-logistic": (Greedy(steps=8, least_entry=0.0), Problem(Logistic(), L1(1e-3))),
    "greedy-cd-gs-q": (Greedy(steps=8, rule="gs-q", selection="laplace"), Problem(Squared(), L2(1e-3))),
    "sufficient-statistics": (SufficientStatistics(), Problem(Squared(), L2(1e-3))),
}
TRIED = {solver.name for solver, _ in CASES.values()}
CASES |= {  # every other one as it comes
    name: (kind(), problem_for(name))
    for name, kind in SOLVERS.items()
    if kind().capabilities.stored and name not in TRIED
}


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("budget", [Budget(1.0, 1e-6), Budget(0.1, 1e-6)], ids=str)
@pytest.mark.parametrize("case", CASES)
def test_stored_rows_give_the_same_model_to_the_last_bit(case, budget, weighted):
    solver, problem = CASES[case]
    X, y = table(problem.loss, rows=3_000, columns=4)
    data = Data(X, y, np.random.default_rng(2).random(3_000) if weighted else None)
    public = Public(3_000, 4)
    stored = StoredTable(data)
    expected = solved(solver, problem, data, public, budget)
    found = solved(solver, problem, stored, replace(public, stored=True), budget)
    np.testing.assert_array_equal(found.coef, expected.coef)
    np.testing.assert_array_equal(found.intercept, expected.intercept)
    assert stored.passes > 1


@pytest.mark.parametrize("epsilon", [np.inf])
@pytest.mark.parametrize(
    "case",
    [
        *("newton-logistic", "newton-multinomial", "gd-logistic", "admm-logistic", "sufficient-statistics"),
        *("sgd-logistic", "svrg-multinomial", "frank-wolfe-l1-ball", "greedy-cd-logistic"),
    ],
)
def test_without_noise_stored_rows_reach_the_same_optimum(case, epsilon):
    solver, problem = CASES[case]
    X, y = table(problem.loss, rows=500, columns=4)
    found = solved(type(solver)(), problem, StoredTable(Data(X, y)), Public(500, 4, stored=True), Budget(epsilon, 0.1))
    best = problem.optimum(X, y)
    assert problem.objective(X, y, found.coef, found.intercept) <= best.value + 1e-7


def test_solvers_that_need_all_rows_say_so_before_anything_is_read():
    X, y = table(Logistic(), rows=300)
    problem, stored = Problem(Logistic(), L2(1e-3)), StoredTable(Data(X, y))
    for kind in SOLVERS.values():
        solver = kind()
        if solver.capabilities.stored or solver.why_incompatible(problem, Budget(1.0, 1e-6)) is not None:
            continue
        with pytest.raises(IncompatibleSolverError, match=r"needs all rows in memory.*'newton'"):
            solver.plan(problem, Public(300, 4, stored=True), Budget(1.0, 1e-6))
    solver = SOLVERS["cd"]()
    plan = solver.plan(problem, Public(300, 4), Budget(1.0, 1e-6))
    with pytest.raises(IncompatibleSolverError, match="needs all rows"):
        solver.solve(problem, stored, plan, seeded_generator(0))
    assert stored.passes == 0


class Shuffled(StoredTable):
    """A table that comes in another order, or with a row less, from some pass on."""

    def __init__(self, data, order, first):
        super().__init__(data)
        self.order, self.first = order, first

    def blocks(self):
        known = self.data
        if self.passes >= self.first:
            self.data = Data(known.X[self.order], known.y[self.order])
        yield from super().blocks()
        self.data = known


@pytest.mark.parametrize("order", [np.arange(500)[::-1], np.roll(np.arange(500), 100), np.arange(300)], ids=len)
@pytest.mark.parametrize("form", ["hidden-duals", "noisy-duals"])
def test_a_row_never_gets_the_memory_of_another(order, form):
    """ADMM remembers a number of every row, by its place: rows that change places are refused."""
    problem, public = Problem(Logistic(), L2(1e-3)), Public.of(500, 4, bounds=(-1.0, 1.0), stored=True)
    X, y = table(Logistic(), rows=500, columns=4)
    solver = ADMM(rounds=5, form=form, scale_share=0.0)
    plan = solver.plan(problem, public, Budget(1.0, 1e-6))
    same = np.arange(500)
    assert solver.solve(problem, Shuffled(Data(X, y), same, 3), plan, seeded_generator(0)).coef.shape == (4,)
    with pytest.raises(ValueError, match="another order"):
        solver.solve(problem, Shuffled(Data(X, y), order, 3), plan, seeded_generator(0))
