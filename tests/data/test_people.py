"""Several rows per person: ids, the rows that are drawn, weights, and how far a person can move what is released."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import date

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp

from discreet.audit import replay
from discreet.data.people import gather_persons, person_numbers, person_slices, person_weights
from discreet.data.public import MOST_ROWS, Public
from discreet.data.public_inputs import PublicModel
from discreet.data.rows import TERM_STEP, Data, block_rows
from discreet.privacy.budget import Budget
from discreet.privacy.random.generator import seeded_generator
from discreet.privacy.relation import Relation
from discreet.problem.losses import Logistic, Multinomial, Squared
from discreet.problem.penalties import L2
from discreet.problem.problem import Problem
from discreet.solvers import SOLVERS, GradientDescent, Newton

IDS = ["b", "a", "b", "c", "a", "b"]


def same_persons(numbers, ids):
    return np.array_equal(np.equal.outer(numbers, numbers), [[x == y for y in ids] for x in ids])


@pytest.mark.parametrize(
    "made",
    [list, np.array, pd.Series, pl.Series, pa.array, pd.Categorical, lambda ids: pd.Series(ids, dtype="string")],
)
def test_ids_of_every_kind_say_which_rows_belong_together(made):
    assert same_persons(person_numbers(made(IDS), 6), IDS)
    codes = [ord(one) for one in IDS]
    if made is not pd.Categorical:
        assert same_persons(person_numbers(pd.Series(codes), 6), IDS)
    numbers = person_numbers(codes, 6)
    assert sorted(set(numbers)) == [0, 1, 2]


@pytest.mark.parametrize(
    "ids",
    [
        [1, True, 1.0, "x", np.int64(1), -0.0, 0],
        [frozenset({1}), frozenset({2}), frozenset({1}), frozenset({3}), frozenset({2}), frozenset({1})],  # no order
        [(1, "a"), (2, "a"), (1, "a"), (1, "b")],
        np.array([-0.0, 0.0, 1.0]),
        np.array([(1, 2.0), (1, 2.0), (2, 1.0)], dtype=[("a", int), ("b", float)]),
        [2**53 + 1, float(2**53), 2**53],
    ],
)
def test_equal_ids_of_all_types_are_one_person(ids):
    assert same_persons(person_numbers(ids, len(ids)), list(ids))


@pytest.mark.parametrize("ids", [[1, "1"], [1.5, "1.5", 2], [np.datetime64("2020-01-01"), date(2020, 1, 1)]])
def test_ids_that_may_be_one_person_or_two_are_refused(ids):
    with pytest.raises(ValueError, match="different types"):
        person_numbers(ids, len(ids))


@pytest.mark.parametrize("ids", [[[1], [1]], [{1}, {2}], [np.array([1, 2]), np.array([1, 2])], "ab", 5, iter("ab")])
def test_what_is_no_list_of_ids_is_refused_in_words(ids):
    with pytest.raises(ValueError, match="groups"):
        person_numbers(ids, 2)


@pytest.mark.parametrize(
    "ids",
    [
        ["a", None],
        [1.0, np.nan],
        np.array([1.0, np.nan]),
        pd.Series([1, pd.NA], dtype="Int64"),
        pd.to_datetime(pd.Series(["2020-01-01", None])),
        pl.Series(["a", None]),
        np.ma.array([1, 2], mask=[False, True]),
        [("a", np.nan), ("a", np.nan)],
        np.array([(1, np.nan), (1, np.nan)], dtype=[("a", int), ("b", float)]),
    ],
)
def test_missing_ids_are_refused(ids):
    with pytest.raises(ValueError, match="missing ids"):
        person_numbers(ids, 2)


@pytest.mark.parametrize("ids", [["a"] * 5, np.zeros((6, 1)), np.zeros((3, 2))])
def test_ids_of_another_length_are_refused_and_no_number_of_rows_is_told(ids):
    with pytest.raises(ValueError, match="one id per row") as error:
        person_numbers(ids, 6)
    assert not any(digit in str(error.value) for digit in "356")


def panel(sizes, columns=2, seed=0, **given):
    """Rows of persons in a random order."""
    rng = np.random.default_rng(seed)
    persons = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    X = rng.uniform(-1.0, 1.0, (persons.size, columns))
    return Data(X, np.where(X[:, 0] > 0.0, 1.0, -1.0), persons=persons, **given)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("most", [1, 3, 100])
def test_at_most_so_many_rows_of_each_person_are_used(most, sparse):
    sizes = [1, 2, 3, 4, 50]
    data = panel(sizes, weight=np.linspace(0.1, 1.0, 60))
    marked = replace(data, X=np.column_stack([data.persons, np.arange(60.0)]), y=data.weight)
    marked = replace(marked, X=sp.csc_matrix(marked.X)) if sparse else marked
    found = gather_persons(marked, most, seeded_generator(0))
    X = found.X.toarray() if sparse else found.X
    assert Counter(X[:, 0].tolist()) == {i: min(size, most) for i, size in enumerate(sizes)}
    assert len(set(X[:, 1])) == len(X)  # no row twice
    assert found.units == 5
    if most == 1:
        assert found.persons is None
        np.testing.assert_array_equal(found.weight, found.y)
        return
    np.testing.assert_array_equal(np.diff(found.persons) >= 0, True)
    shares = found.y / np.bincount(found.persons)[found.persons]
    np.testing.assert_allclose(found.weight, shares, atol=TERM_STEP, rtol=0)
    np.testing.assert_array_equal(found.weight <= shares, True)


def test_every_row_and_every_place_is_equally_likely():
    """Two arms; the test of 9 cells falsely rejects in fewer than 1e-6 of the seeds."""
    from scipy.stats import chi2

    def statistic(choose):
        rng, counts = seeded_generator(7), np.zeros((3, 3))
        for _ in range(1_800):
            found = choose(rng)
            place = int(np.flatnonzero(found.X[:, 0] == 0.0)[0])  # of person 0, who has three rows
            counts[place, int(found.X[place, 1])] += 1
        return float(((counts - 200.0) ** 2 / 200.0).sum())

    X = np.array([[0.0, 0], [0, 1], [0, 2], [1, 0], [2, 0], [2, 1]])
    data = Data(X, np.zeros(6), persons=X[:, 0].astype(np.int64))
    limit = chi2.isf(1e-6, 8)
    assert statistic(lambda rng: gather_persons(data, 1, rng)) < limit
    assert (
        statistic(lambda rng: Data(X[[rng.integers(3, 1)[0], 3, 4]], np.zeros(3))) > limit
    )  # persons keep their place


@pytest.mark.parametrize("weighted", [False, True])
def test_weights_of_a_person_sum_to_at_most_one_exactly(weighted):
    sizes = [1, 2, 3, 7, 49, 1023, 1024, 77_777]
    persons = np.repeat(np.arange(len(sizes)), sizes)
    weight = np.random.default_rng(0).uniform(size=persons.size) if weighted else None
    steps = person_weights(persons, weight) / TERM_STEP
    np.testing.assert_array_equal(steps, np.rint(steps))
    sums = np.array([int(steps[persons == i].sum()) for i in range(len(sizes))])
    assert (sums <= 2**26).all()
    if not weighted:
        assert (sums > 2**26 - np.array(sizes)).all()
        assert sums[0] == 2**26


def test_no_block_divides_a_person():
    rng = np.random.default_rng(0)
    persons = np.sort(rng.integers(0, 400, 30_000))
    columns = 160
    slices = person_slices(persons, columns)
    assert [part.start for part in slices] == [0, *(part.stop for part in slices[:-1])]
    assert slices[-1].stop == persons.size
    assert len(slices) > 3
    for part in slices[:-1]:
        assert persons[part.stop - 1] < persons[part.stop]
        assert part.stop - part.start < block_rows(columns) + np.bincount(persons).max()


# A person before and after: a typical one, and hostile ones.
HOSTILE = {
    "a thousand rows in one direction": np.ones((1_000, 2)),
    "huge rows": np.array([[1e308, -1e308], [-1e308, 1e308], [1e308, 1e308]]),
    "one tiny row": np.array([[5e-324, -5e-324]]),
    "rows that cancel": np.array([[1.0, 1.0], [-1.0, -1.0]] * 8),
}


def neighbours(relation, labels, hostile, base):
    """Tables that differ in one person: typical against hostile, or hostile against null or against nobody."""
    rng = np.random.default_rng(1)

    def with_person(rows, number):
        X = np.vstack([base.X, rows])
        y = np.append(base.y, rng.choice(labels, len(rows)) if labels is not None else np.full(len(rows), 1e308))
        weight = np.ones(len(X))
        return Data(X, y, weight, persons=np.append(base.persons, np.full(len(rows), number)))

    last = base.units
    if relation is Relation.REPLACE:
        return with_person(-hostile[::2] if len(hostile) > 1 else np.ones((3, 2)), last), with_person(hostile, last)
    first = with_person(hostile, last)
    if relation is Relation.ZERO_OUT:
        return first, replace(first, weight=np.where(first.persons == last, 0.0, 1.0))
    return first, replace(base, weight=np.ones(base.rows))


LOSSES = {"logistic": Logistic(), "softmax": Multinomial(3), "squared": Squared()}
SOLVER_SETTINGS = {
    "newton": Newton(),
    "gd": GradientDescent(steps=6),
    "newton, rows cut": Newton(steps=2, clip=0.1, radius=0.5),
}


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("solver", SOLVER_SETTINGS)
def test_no_person_moves_a_release_further_than_it_claims(solver, loss, relation):
    """Everything that is released, scales included, is replayed on the neighbour; at level 1e-6 each, 108 replays."""
    problem = Problem(LOSSES[loss], L2(1e-3))
    labels = {"logistic": np.array([-1.0, 1.0]), "softmax": np.arange(3.0), "squared": None}[loss]
    rng = np.random.default_rng(3)
    base = panel(rng.integers(1, 8, 199), seed=4)
    base = replace(base, y=base.X[:, 0] if labels is None else rng.choice(labels, base.rows))
    public = Public.of(200, 2, relation=relation, public_n=200, persons=True)
    plan = SOLVER_SETTINGS[solver].plan(problem, public, Budget(8.0, 1e-4))
    ratios = []
    for name, hostile in HOSTILE.items():
        found = replay(plan, *neighbours(relation, labels, hostile, base))
        assert found.passed, (name, str(found))
        ratios.append(found.largest_ratio)
    assert 0.5 < max(ratios) <= 1.0 + 1e-9


def test_the_check_of_a_public_start_is_for_persons_too():
    base = replace(panel([3] * 199, seed=2), y=np.tile([1.0, -1.0, 1.0], 199))
    start = PublicModel(np.array([5.0, -5.0]), 0.0)
    public = Public.of(200, 2, bounds=(-1.0, 1.0), persons=True, start=start)
    plan = GradientDescent(steps=3).plan(Problem(Logistic()), public, Budget(8.0, 1e-4))
    assert plan.scaling_plan.start_check is not None
    for hostile in HOSTILE.values():
        found = replay(plan, *neighbours(Relation.REPLACE, np.array([-1.0, 1.0]), hostile, base))
        assert found.passed, str(found)


@pytest.mark.parametrize("name", SOLVERS)
def test_every_solver_takes_persons_and_sees_only_their_number(name):
    """One random row of each where a solver knows no better; the plan is the same however many rows there are."""
    from tests.catalogue import problem_for

    problem = problem_for(name)
    rows = 200 if name in ("newton", "exponential") else 40
    limits = {"bounds": (-1.0, 1.0), "y_bounds": None if problem.loss.classification else (-1.0, 1.0)}
    public = Public.of(rows, 2, persons=True, **limits)
    plan = SOLVERS[name]().plan(problem, public, Budget(5.0, 1e-4))
    assert plan.guarantee.unit == "person"
    assert plan.rows_per_person == (MOST_ROWS if name in ("newton", "adaptive", "gd") else 1)
    assert plan.digest != SOLVERS[name]().plan(problem, replace(public, persons=None), Budget(5.0, 1e-4)).digest
    for most in (1, 5):
        sizes = np.random.default_rng(0).integers(1, most + 1, rows)
        found = plan.solver.solve(problem, panel(sizes), plan, seeded_generator(0))
        assert np.isfinite(found.coef).all()
    with pytest.raises(ValueError, match="other of rows and persons"):
        plan.solver.solve(problem, replace(panel([1] * rows), persons=None), plan, seeded_generator(0))
    with pytest.raises(ValueError, match=f"for {rows} persons, but the table has 7"):
        plan.solver.solve(problem, panel([9] * 7), plan, seeded_generator(0))
