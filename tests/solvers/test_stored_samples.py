"""Batches of stored rows: every block finds its own members by a key, wherever it begins and whoever reads it."""

from __future__ import annotations

import pickle
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from discreet import IncompatibleSolverError
from discreet.data import rows
from discreet.data.public import Public
from discreet.data.rows import Data
from discreet.privacy.budget import Budget
from discreet.privacy.random.generator import PoissonSample, RandomGenerator, seeded_generator
from discreet.problem import L1, L2, L1Ball, Logistic, Problem
from discreet.problem.column_scaling import identity_scaling
from discreet.problem.scaled_problem import UnscaledProblem, unscaled_problem
from discreet.solvers import SVRG, FrankWolfe
from discreet.solvers import GreedyCoordinateDescent as Greedy
from discreet.solvers import StochasticGradientDescent as Stochastic
from discreet.solvers._shared.batch_steps import DifferenceSum, GradientSum
from discreet.solvers._shared.coordinates import CoordinateSums
from discreet.solvers.greedy_coordinate_descent import moves_to
from tests.catalogue import table
from tests.stored_rows import StoredTable

ROWS = 1_100
BOUNDS = Public.of(ROWS, 4, bounds=(-3.0, 3.0))
BUDGET = Budget(1.0, 1e-6)
SOLVERS = {
    "sgd": (Stochastic(passes=0.5), Problem(Logistic(), L2(1e-3))),
    "svrg": (SVRG(anchors=2, inner=3), Problem(Logistic(), L2(1e-3))),
    "frank-wolfe": (FrankWolfe(steps=6), Problem(Logistic(), constraint=L1Ball(2.0))),
    "greedy-cd": (Greedy(steps=6, least_entry=0.0), Problem(Logistic(), L1(1e-3))),
}


def data_and_public(stored=True):
    X, y = table(Logistic(), rows=ROWS, columns=4)
    data = Data(X, y)
    return (StoredTable(data), replace(BOUNDS, stored=True)) if stored else (data, BOUNDS)


def solved(name, data, public, seed=3):
    solver, problem = SOLVERS[name]
    return solver.solve(problem, data, solver.plan(problem, public, BUDGET), seeded_generator(seed))


@pytest.mark.parametrize("name", SOLVERS)
def test_the_model_does_not_depend_on_where_blocks_begin(name, monkeypatch):
    expected = solved(name, *data_and_public(stored=False)).coef
    for entries in (44, 1_000, 1 << 20):  # blocks of 11 and of 250 rows, and one of all rows
        monkeypatch.setattr(rows, "BLOCK_ENTRIES", entries)
        np.testing.assert_array_equal(solved(name, *data_and_public()).coef, expected)


@pytest.mark.parametrize("name", SOLVERS)
def test_what_travels_to_the_rows_is_small_and_knows_nothing_of_the_run(name, monkeypatch):
    """Each part is pickled on its way, gives the same model, and holds no generator: that one cannot be pickled."""
    monkeypatch.setattr(rows, "BLOCK_ENTRIES", 1_000)
    expected, sizes = solved(name, *data_and_public()).coef, []
    plain = UnscaledProblem.sum

    def travelling(self, part):
        content = pickle.dumps(part)
        sizes.append(len(content))
        return plain(self, pickle.loads(content))

    monkeypatch.setattr(UnscaledProblem, "sum", travelling)
    np.testing.assert_array_equal(solved(name, *data_and_public()).coef, expected)
    assert 0 < max(sizes) < 3_000


@pytest.mark.parametrize("name", SOLVERS)
def test_the_plan_says_how_often_the_file_is_read(name):
    solver, problem = SOLVERS[name]
    stored, public = data_and_public()
    plan = solver.plan(problem, public, BUDGET)
    solver.solve(problem, stored, plan, seeded_generator(0))
    assert stored.passes - plan_of_scales(problem, public) == plan.settings.passes_over_rows
    assert f"{plan.settings.passes_over_rows} by the steps" in str(plan)
    assert "passes over rows" not in str(solver.plan(problem, BOUNDS, BUDGET))
    told = [line for line in plan.warnings() if "every step reads the whole table" in line]
    assert bool(told) == (name in ("sgd", "svrg"))


def plan_of_scales(problem, public):
    """How many passes the scales alone take: those of a run with one step less."""
    passes = []
    for steps in (1, 2):
        stored, _ = data_and_public()
        solver = FrankWolfe(steps=steps)
        ball = replace(problem, constraint=L1Ball(2.0), penalty=SOLVERS["frank-wolfe"][1].penalty)
        solver.solve(ball, stored, solver.plan(ball, public, BUDGET), seeded_generator(0))
        passes.append(stored.passes - solver.plan(ball, public, BUDGET).settings.passes_over_rows)
    assert passes[0] == passes[1]
    return passes[0]


def test_single_rows_of_a_file_are_refused_with_a_reason():
    problem = SOLVERS["sgd"][1]
    with pytest.raises(IncompatibleSolverError, match=r"batches of one row would take a pass.*'newton'"):
        Stochastic(sampler="single").plan(problem, replace(BOUNDS, stored=True), BUDGET)
    plan = Stochastic(sampler="single", passes=0.01).plan(problem, BOUNDS, BUDGET)
    with pytest.raises(IncompatibleSolverError, match="batches of one row"):
        Stochastic(sampler="single", passes=0.01).solve(problem, data_and_public()[0], plan, seeded_generator(0))


def test_general_vertices_give_the_model_up_to_rounding(monkeypatch):
    monkeypatch.setattr(rows, "BLOCK_ENTRIES", 400)
    vertices = ((1.0, 0.0, 0.0, 0.0), (0.0, 1.0, 1.0, 0.0), (0.0, -1.0, 0.0, 2.0))
    monkeypatch.setitem(SOLVERS, "hull", (FrankWolfe(steps=6, vertices=vertices), Problem(Logistic())))
    expected = solved("hull", *data_and_public(stored=False)).coef
    np.testing.assert_allclose(solved("hull", *data_and_public()).coef, expected, rtol=1e-9)
    solver = FrankWolfe(vertices=vertices)
    plan = solver.plan(Problem(Logistic()), replace(BOUNDS, stored=True), Budget(np.inf, 0.1))
    with pytest.raises(IncompatibleSolverError, match="general vertices"):
        solver.solve(Problem(Logistic()), data_and_public()[0], plan, seeded_generator(0))


class Repeated(StoredTable):
    """A planted fault: the rows of one block are counted in two."""

    def blocks(self):
        for number, block in enumerate(super().blocks()):
            yield block
            if number == 1:
                yield block


def batch_sum(kind, sample, step):
    X, y = table(Logistic(), rows=ROWS, columns=4)
    stored = kind(Data(X, y))
    scaled = unscaled_problem(Problem(Logistic(), fit_intercept=False), stored, identity_scaling(4), ROWS)
    return scaled.sum(GradientSum(np.ones(4), 1.0, 2.0**-20, True, sample, step))


def test_a_row_is_counted_once_and_by_its_own_number(monkeypatch):
    sample = PoissonSample(bytes(32), ROWS, 0.3)
    whole = batch_sum(StoredTable, sample, 5)
    monkeypatch.setattr(rows, "BLOCK_ENTRIES", 400)
    np.testing.assert_array_equal(batch_sum(StoredTable, sample, 5), whole)
    assert (batch_sum(Repeated, sample, 5) != whole).all()


def overlap(first, second):
    """How many standard deviations more rows two batches share than independent ones do."""
    both, rate = np.intersect1d(first, second).size, 0.3
    return (both - ROWS * rate**2) / np.sqrt(ROWS * rate**2 * (1 - rate**2))


def test_every_step_has_a_batch_of_its_own(monkeypatch):
    """The overlaps of 39 pairs of batches: false alarm below 1e-4. A sampler that forgets the step is found."""
    X, y = table(Logistic(), rows=ROWS, columns=4)
    seen = []
    plain = PoissonSample.members
    monkeypatch.setattr(
        PoissonSample,
        "members",
        lambda self, *where: seen.append((self.key, *where, plain(self, *where))) or seen[-1][-1],
    )
    problem, solver = SOLVERS["sgd"][1], Stochastic(passes=12, batch_size=330)
    public = replace(BOUNDS, stored=True)
    solver.solve(problem, StoredTable(Data(X, y)), solver.plan(problem, public, BUDGET), seeded_generator(1))
    assert len({(key, step) for key, step, *_ in seen}) == 40
    batches = [chosen for *_, chosen in seen]
    scores = [overlap(one, other) for one, other in pairwise(batches)]
    assert max(map(abs, scores)) < 5.0
    same_step = [plain(PoissonSample(seen[0][0], ROWS, 0.3), 0, 0, ROWS) for _ in range(2)]
    assert overlap(*same_step) > 20.0


def test_two_runs_never_share_a_key(monkeypatch):
    """Every call draws a fresh key from the generator of the run, at the anchors of svrg as well."""
    keys, plain = [], RandomGenerator.poisson_sample

    def recorded(self, *arguments):
        keys.append(plain(self, *arguments))
        return keys[-1]

    monkeypatch.setattr(RandomGenerator, "poisson_sample", recorded)
    for name, seed in (("sgd", 1), ("sgd", 2), ("svrg", 1), ("svrg", 2)):
        solved(name, *data_and_public(), seed=seed)
    assert len(keys) == len({sample.key for sample in keys}) == 8  # two series of steps a run
    assert "key" not in repr(keys[0])


HOSTILE = [np.full(4, 1e308), np.array([1e308, -1e308, 1e-320, 0.0]), np.full(4, -1e90), np.zeros(4)]


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("row", HOSTILE)
def test_a_hostile_row_moves_a_sum_by_no_more_than_it_may(row, compiled):
    """Whatever the row: by 2 C for gradients, by 2 for differences over their limit, by 2 C in a coordinate."""
    X, y = table(Logistic(), rows=60, columns=4)
    w, anchor, step = np.array([1e3, -1.0, 0.5, 0.0]), np.full(4, 0.1), 2.0**-30
    everyone = PoissonSample(bytes(32), 60, 1.0)
    moves = moves_to(w)
    parts = {
        0.5: GradientSum(w, 0.5, step, compiled, everyone, 2),
        1.0: DifferenceSum(w, anchor, 0.5, 0.3, step, compiled, everyone, 2),
        0.7: lambda block: step * CoordinateSums(moves, np.full(4, 0.7), np.full(4, step))(block),
    }
    for bound, part in parts.items():
        sums = []
        for last in (X[-1], row):
            data = Data(np.vstack([X[:-1], last]), y)
            problem = Problem(Logistic(), fit_intercept=False)
            sums.append(unscaled_problem(problem, StoredTable(data), identity_scaling(4), 60).sum(part))
        change = np.abs(sums[0] - sums[1])
        assert np.isfinite(sums[1]).all()
        size = change.max() if bound == 0.7 else np.linalg.norm(change)
        assert size <= 2.0 * bound + 10 * step
