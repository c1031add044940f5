"""Replays on every kind of table, in two arms: the worst case of a solver passes, a wrong distance is found.

Tensors lie on a CUDA device where there is one, in the memory of the host else. A replay tests the size of the noise at
level 1e-6: a right library fails in fewer than 1 of 3,000 runs of this file.
"""

from __future__ import annotations

import pickle
from dataclasses import replace
from functools import partial
from itertools import pairwise

import numpy as np
import pytest

from discreet.audit import replay
from discreet.audit.faults import with_wrong_distance
from discreet.audit.neighbours import HUGE, TINY, hostile_neighbours, removed_person, removed_row, without_row
from discreet.audit.places import PLACES, facts_of, placed, why_not_placed
from discreet.audit.replays.doors import SampleOfTheOthers
from discreet.audit.solver_cases import solver_case
from discreet.data.public import Public
from discreet.data.rows import Data
from discreet.estimators import LogisticRegression
from discreet.privacy.budget import Budget
from discreet.privacy.mechanisms import clipped_sum
from discreet.privacy.random.generator import PoissonSample, RandomGenerator, seeded_generator
from discreet.privacy.relation import Relation
from discreet.problem.losses import Logistic
from discreet.problem.penalties import L2
from discreet.problem.problem import Problem
from discreet.solvers import SOLVERS, SVRG, GradientDescent, StochasticGradientDescent
from discreet.solvers._shared import batch_steps

SEEDS = 10  # a sampled row need not take part in a run; here it misses them all with probability below 1e-6


def combinations():
    """Every place but memory with every solver and relation that it takes; what is not installed is skipped."""
    for place in PLACES:
        for name, kind in SOLVERS.items():
            for relation in Relation:
                why = why_not_placed(kind(), relation, place)
                if place != "memory" and (why is None or "installed" in why):
                    skipped = pytest.mark.skipif(why is not None, reason=str(why))
                    yield pytest.param(place, name, relation, id=f"{place}-{name}-{relation}", marks=skipped)


@pytest.mark.parametrize(("place", "name", "relation"), list(combinations()))
def test_the_worst_case_passes_and_a_wrong_distance_is_found(place, name, relation):
    case = solver_case(name, relation, runs=1)
    target, tables = placed(case.plan_for(**facts_of(place)), place), (case.first, case.second)
    found = replay(target, *tables)
    assert found.passed, str(found)
    factor = 0.4 if (name, relation) == ("bolt-on", Relation.ADD_REMOVE) else 0.6  # where no row is displaced
    wrong = with_wrong_distance(target, factor)
    problems = (replay(wrong, *tables, seeded_generator(seed)).problems for seed in range(SEEDS))
    assert any("moved by" in problem for texts in problems for problem in texts)


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize("place", [place for place in PLACES if place != "memory"])
@pytest.mark.parametrize("solver", [StochasticGradientDescent(batch_size=10, passes=3), SVRG(anchors=2, batch_size=10)])
def test_sampled_batches_pass_with_hostile_rows(solver, place, relation):
    why = why_not_placed(solver, relation, place)
    if why is not None:
        pytest.skip(why)
    rng = np.random.default_rng(5)
    data = Data(rng.uniform(-1.0, 1.0, (40, 3)), rng.choice([-1.0, 1.0], 40))
    public = Public.of(40, 3, relation=relation, bounds=(-1.0, 1.0), public_n=40, **facts_of(place))
    target = placed(solver.plan(Problem(Logistic(), L2(0.1)), public, Budget(5.0, 1e-4)), place)
    for pair in hostile_neighbours(data, relation, rng, np.array([-1.0, 1.0])):
        found = replay(target, pair.first, pair.second)
        assert found.passed, (pair.change, str(found))


# --- stored batches --------------------------------------------------------------------------------------------


def stored_target(solver, relation=Relation.REPLACE):
    public = Public.of(8, 1, relation=relation, bounds=(-1.0, 1.0), public_n=8, stored=True)
    plan = solver.plan(Problem(Logistic(), fit_intercept=False), public, Budget(1.0, 0.1))
    return placed(plan, "stored")


def flipped():
    case = solver_case("sgd", Relation.REPLACE, runs=1)
    return case.first, case.second


@pytest.mark.parametrize("kind", ["sgd", "svrg"])
def test_stored_rows_that_are_not_clipped_are_found(kind, monkeypatch):
    """The sums are right in memory and forget the clip where rows are stored: seen by the distance alone."""
    solver = {
        "sgd": StochasticGradientDescent(batch_size=8, passes=3, clip=0.1, scale_share=0.0),
        "svrg": SVRG(anchors=2, inner=2, batch_size=8, clip=0.1, scale_share=0.0),
    }[kind]
    assert replay(stored_target(solver), *flipped()).passed
    right = batch_steps.GradientSum.__call__

    def unclipped(self, block):
        return right(replace(self, clip=2.0 * self.clip), block)

    monkeypatch.setattr(batch_steps.GradientSum, "__call__", unclipped)
    assert "moved by 0.4, but 0.2" in replay(stored_target(solver), *flipped()).problems[0]


def test_a_sample_of_the_others_is_that_of_all_without_the_one():
    whole = PoissonSample(b"k" * 32, 1000, 0.3)
    for removed in (0, 1, 499, 998, 999):
        others = pickle.loads(pickle.dumps(SampleOfTheOthers(whole.key, 999, 0.3, removed)))
        for step in (0, 7):
            members = whole.members(step, 0, 1000)
            kept = members[members != removed]
            expected = kept - (kept > removed)
            cuts = [0, 1, 300, 498, 499, 500, 999]
            parts = [others.members(step, low, high) for low, high in pairwise(cuts)]
            np.testing.assert_array_equal(np.concatenate(parts), expected)


# --- rows and persons that are missing -------------------------------------------------------------------------


@pytest.mark.parametrize("make", [lambda data: data, PLACES["sparse"]], ids=["dense", "sparse"])
def test_the_missing_row_is_known_and_any_other_table_is_refused(make):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (30, 2)).astype(float)  # many rows are equal
    X[3], X[4] = (HUGE, -HUGE), (TINY, 0.0)
    data = Data(X, rng.integers(0, 2, 30).astype(float))
    for row in (0, 3, 4, 17, 29):
        second = without_row(data, Relation.ADD_REMOVE, row)
        at = removed_row(make(replace(data, weight=np.ones(30))), make(second))
        np.testing.assert_array_equal(np.delete(X, at, axis=0), second.X)
    changed = second.X.copy()
    changed[20] += 1.0
    for other in (replace(second, X=changed), data, without_row(second, Relation.ADD_REMOVE, 0)):
        with pytest.raises(ValueError, match="without one of its rows"):
            removed_row(make(data), make(other))


def panel(counts, seed=0):
    rng = np.random.default_rng(seed)
    persons = rng.permutation(np.repeat(np.arange(len(counts)), counts))
    return Data(rng.uniform(-1.0, 1.0, (persons.size, 2)), rng.choice([-1.0, 1.0], persons.size), persons=persons)


def without_person(data, person):
    kept = data.persons != person
    numbers = data.persons[kept]
    return Data(data.X[kept], data.y[kept], persons=numbers - (numbers > person))


def test_the_missing_person_is_known_and_any_other_table_is_refused():
    data = panel([3, 1, 2, 5])
    for person in range(4):
        assert removed_person(data, without_person(data, person)) == person
    for other in (data, replace(without_person(data, 1), persons=None), panel([3, 1, 2], seed=1)):
        with pytest.raises(ValueError, match="all rows of one of its persons"):
            removed_person(data, other)


def person_neighbours(data, relation, rows):
    """Person 7 becomes one with so many huge rows, all null, or is left out."""
    if relation is Relation.REPLACE:
        kept = data.persons != 7
        X = np.vstack([data.X[kept], np.full((rows, 2), 1e308)])
        return data, Data(X, np.append(data.y[kept], -np.ones(rows)), persons=np.append(data.persons[kept], [7] * rows))
    if relation is Relation.ZERO_OUT:
        return data, replace(data, weight=np.where(data.persons == 7, 0.0, 1.0))
    return data, without_person(data, 7)


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize("name", ["cd", "sgd", "dual-cd", "ftrl", "admm"])
def test_persons_with_drawn_rows_pass_whatever_their_numbers_of_rows_are(name, relation):
    """No false alarm: everybody else has the row and the place that they had."""
    rng = np.random.default_rng(1)
    data = panel(rng.integers(1, 6, 40))
    facts = {"relation": relation, "bounds": (-1.0, 1.0), "public_n": 40, "persons": True}
    plan = SOLVERS[name]().plan(Problem(Logistic(), L2(0.1)), Public.of(40, 2, **facts), Budget(5.0, 1e-4))
    assert plan.rows_per_person == 1
    for rows in (1, 2, 9):
        found = replay(plan, *person_neighbours(data, relation, rows))
        assert found.passed, str(found)


def test_a_draw_that_depends_on_other_persons_is_found(monkeypatch):
    """Who has which row is read from all rows: with an odd number of rows, everybody gets another one."""
    from discreet.solvers import base

    facts = {"bounds": (-1.0, 1.0), "persons": True}
    plan = SOLVERS["cd"]().plan(Problem(Logistic(), L2(0.1)), Public.of(40, 2, **facts), Budget(5.0, 1e-4))
    tables = person_neighbours(panel([3] * 40), Relation.REPLACE, 5)
    assert replay(plan, *tables).passed
    right = base.gather_persons

    def by_all_rows(data, most, rng):
        return right(replace(data, X=np.roll(data.X, data.rows % 2, axis=0)), most, rng)

    assert tables[1].rows % 2 == 0
    assert replay(plan, tables[0], person_neighbours(tables[0], Relation.REPLACE, 5)[1]).passed
    monkeypatch.setattr(base, "gather_persons", by_all_rows)
    odd = person_neighbours(tables[0], Relation.REPLACE, 4)
    assert "moved by" in replay(plan, *odd).problems[0]


def test_an_estimator_is_told_whose_rows_they_are():
    model = LogisticRegression(bounds=(-1.0, 1.0), classes=[-1, 1], solver="gd", epsilon=5.0)
    found = replay(model, *person_neighbours(panel([3] * 40), Relation.REPLACE, 6))
    assert found.passed, str(found)
    assert found.promised == 5.0
    assert found.largest_ratio > 0.5


# --- what draws ------------------------------------------------------------------------------------------------


def test_every_method_of_the_generator_that_draws_is_known_to_replays():
    """A new one must be named in doors.py: what draws and is not named would be invisible."""
    from discreet.audit.replays import doors

    known = {*doors.CHOICES, *doors.PLAIN_NOISE, *doors.SELECTIONS, *doors.KEYS}
    assert known == {name for name in vars(RandomGenerator) if not name.startswith("_")} - {"secure"}


@pytest.mark.parametrize("draw", [lambda rng: rng.gumbel(2), lambda rng: rng.gumbel_argmax([0.0, 1.0])])
def test_other_noise_that_no_mechanism_draws_is_an_error(draw):
    from discreet.audit.replays.tape import UnseenReleaseError

    class Own(GradientDescent):
        def _descend(self, scaled, plan, run):
            return np.full(scaled.shape, float(np.max(draw(run.rng)))), 1

    public = Public.of(8, 1, bounds=(-1.0, 1.0))
    plan = Own(scale_share=0.0).plan(Problem(Logistic(), fit_intercept=False), public, Budget(1.0, 0.1))
    with pytest.raises(UnseenReleaseError, match=r"generator\.gumbel"):
        replay(plan, *flipped())


def noise_of(run, scaled, plan):
    grid = plan.mechanism.grid(1.0, scaled.columns)
    return grid.noise(run.rng, (2, *scaled.shape))


def added_half(scaled, noise):
    return np.ones(scaled.shape) + noise[0]


def added_twice(scaled, noise):
    return (np.ones(scaled.shape) + noise[0]) + (noise[1] + np.zeros(scaled.shape)) - (np.ones(scaled.shape) + noise[1])


@pytest.mark.parametrize(("use", "words"), [(added_half, "1 of 2 numbers"), (added_twice, None)])
def test_noise_that_is_used_in_part_is_an_error_and_twice_a_problem(use, words):
    class Own(StochasticGradientDescent):
        def _descend(self, scaled, plan, run):
            return use(scaled, noise_of(run, scaled, plan)), 1

    public = Public.of(8, 1, bounds=(-1.0, 1.0))
    plan = Own(scale_share=0.0).plan(Problem(Logistic(), fit_intercept=False), public, Budget(1.0, 0.1))
    audit = partial(replay, plan, *flipped())
    if words is None:
        assert any("more than one statistic" in problem for problem in audit().problems)
    else:
        with pytest.raises(RuntimeError, match=words):
            audit()


HIDDEN = {
    "subtracted": lambda statistic, noise: statistic - noise,
    "copied": lambda statistic, noise: statistic + noise.copy(),
    "multiplied": lambda statistic, noise: statistic + 2.0 * noise,
    "in place": lambda statistic, noise: np.add(statistic, noise, out=statistic),
    "number by number": lambda statistic, noise: np.array(
        [s + float(z) for s, z in zip(statistic, noise, strict=True)]
    ),
    "broadcast": lambda statistic, noise: (np.ones((3, 1)) + noise).sum(axis=0),
}


@pytest.mark.parametrize("use", HIDDEN)
def test_noise_that_meets_its_statistic_in_another_way_is_an_error_and_not_silence(use):
    class Own(GradientDescent):
        def _descend(self, scaled, plan, run):
            grid = plan.mechanism.grid(clipped_sum(Relation.REPLACE), 1)
            return HIDDEN[use](np.ones(scaled.shape), grid.noise(run.rng, 1)), 1

    public = Public.of(8, 1, bounds=(-1.0, 1.0))
    plan = Own(scale_share=0.0).plan(Problem(Logistic(), fit_intercept=False), public, Budget(1.0, 0.1))
    with pytest.raises(RuntimeError, match="does not see"):
        replay(plan, *flipped())
