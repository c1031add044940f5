"""Sketched descent: its ends are known solvers, its noise is enough and no more. The sketches: test_sketches.py.

Statistical tests have two arms and fixed seeds; were the seeds redrawn, one run of this file in 1,000 would raise
a false alarm.
"""

from __future__ import annotations

import itertools
import math
import warnings
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from discreet import solve
from discreet.data.public import Public
from discreet.data.rows import Data
from discreet.privacy.budget import Budget
from discreet.privacy.random.generator import seeded_generator
from discreet.privacy.relation import Relation
from discreet.problem.column_scaling import identity_scaling
from discreet.problem.losses import Huber, Logistic, SmoothedHinge, Squared
from discreet.problem.optimum import exactly_scaled
from discreet.problem.penalties import L1, L2, Zero
from discreet.problem.problem import Problem
from discreet.problem.scaled_problem import scale_problem
from discreet.solvers import CoordinateDescent, GradientDescent, SketchedDescent
from discreet.solvers._shared.coordinates import default_steps
from discreet.solvers.sketched.sketches import Nice, Sets
from discreet.solvers.sketched.solver import BlockState, limit_support, row_limits
from discreet.testing.solver_laws import SameDraws
from tests.catalogue import table
from tests.neighbours import CASE, N, P, scaled_neighbours, some_weights

NO_BUDGET = Budget(math.inf, 0.5)
UNEVEN = (0.1, 1.0, 5.0, 20.0, 0.25)


def weights_of(solver, problem, X, y, budget=None, seed=3, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        solution = solve(problem, X, y, solver, budget or Budget(2.0, 1e-4), random_state=seed, **options)
    return np.append(solution.w, solution.intercept)


# The ends: coordinate descent and gradient descent.


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("noise", ["equalised", "isotropic"])
@pytest.mark.parametrize(
    ("sketch", "sampling", "declared"),
    [
        ("single", "uniform", {}),
        ("single", "uniform", {"smoothness": UNEVEN, "clip": 2.0}),
        ("importance", "proportional", {"smoothness": UNEVEN, "clip": 2.0}),
        ("importance", "proportional", {}),
    ],
)
def test_sets_of_one_are_coordinate_descent_bit_for_bit(sketch, sampling, declared, noise, form):
    X, y = table(Logistic())
    problem = Problem(Logistic(), L1(0.01))
    ours = SketchedDescent(sketch, noise=noise, passes=7, **declared)
    theirs = CoordinateDescent(sampling=sampling, passes=7, **declared)
    bounds = None if declared else (-4.0, 4.0)  # thresholds and chances of learned scales are rounded in another order
    ours, theirs = (
        weights_of(solver, problem, form(X), y, seed=SameDraws(3), bounds=bounds) for solver in (ours, theirs)
    )
    np.testing.assert_array_equal(ours, theirs)
    assert np.abs(ours).max() > 0.0


@pytest.mark.parametrize("loss", [Logistic(), Squared()], ids=lambda loss: loss.name)
def test_full_sets_are_gradient_descent_without_noise(loss):
    X, y = table(loss)
    problem = Problem(loss, L1(0.01))
    ours = SketchedDescent("full", steps=17, step=1.3, average=False, outer=1)
    theirs = GradientDescent(steps=17, step=1.3, average=False)
    found, wanted = (weights_of(solver, problem, X, y, NO_BUDGET) for solver in (ours, theirs))
    np.testing.assert_allclose(found, wanted, rtol=1e-9)


@pytest.mark.parametrize("noise", ["equalised", "isotropic"])
def test_full_sets_are_gradient_descent_with_clipping_and_noise(noise):
    """In the frame all thresholds agree, so both clip to the same ball and draw the same noise.

    Each rounds to a grid of its own, of at most 2^-29 of the noise.
    """
    X, y = table(Logistic())
    problem = Problem(Logistic(), L2(0.01))
    ours = SketchedDescent("full", steps=9, clip=0.4, step=1.3, noise=noise, average=False, outer=1)
    theirs = GradientDescent(steps=9, clip=0.4, step=1.3, average=False)
    found, wanted = (
        weights_of(solver, problem, X, y, seed=SameDraws(3), bounds=(-50.0, 50.0)) for solver in (ours, theirs)
    )
    np.testing.assert_allclose(found, wanted, rtol=1e-7, atol=2.0**-28 * np.abs(wanted).max())


@pytest.mark.parametrize("noise", ["equalised", "isotropic"])
@pytest.mark.parametrize("relation", list(Relation))
def test_full_sets_have_the_noise_of_gradient_descent(relation, noise):
    """On a table of zeros one step is pure noise. Kolmogorov-Smirnov at level 1e-4; 2/3 of it is rejected."""
    rows, columns = 50, 4_000
    data = Data(np.zeros((rows, columns)), np.ones(rows))
    problem = Problem(Logistic(), fit_intercept=False)
    public = Public(rows, columns, relation, low=-np.ones(columns), high=np.ones(columns))
    found = []
    for solver in (
        SketchedDescent("full", steps=1, clip=3.0, step=1.0, noise=noise, average=False, outer=1, scale_share=0.0),
        GradientDescent(steps=1, clip=3.0, step=1.0, average=False, scale_share=0.0),
    ):
        plan = solver.plan(problem, public, Budget(1.0, 1e-5))
        found.append(solver.solve(problem, data, plan, SameDraws(1)).w)
    np.testing.assert_allclose(found[0], found[1], rtol=1e-6, atol=2.0**-28 * np.abs(found[1]).max())
    length = 1.0 / (0.25 * columns) / rows
    law = stats.norm(scale=length * 3.0 * relation.factor * plan.mechanism.multiplier)
    assert stats.kstest(found[0], law.cdf).pvalue > 1e-4
    assert stats.kstest(found[0] * 2 / 3, law.cdf).pvalue < 1e-4


# Privacy.


@settings(max_examples=200)
@given(
    **CASE,
    loss=st.sampled_from([Squared(), Logistic(), Huber(0.7), SmoothedHinge(0.5)]),
    members=st.sampled_from([(0,), (3, 1), (2, 0, 3), (0, 1, 2, 3)]),
    noise=st.sampled_from(["equalised", "isotropic"]),
    sparse=st.booleans(),
    omega=st.sampled_from([1, 2, P]),
    tiny=st.sampled_from([0.3, 1e-8, 1e-170, 0.0]),
)
def test_a_set_moves_by_at_most_one_sensitivity_in_units_of_noise(
    relation, X, weight, row, at, seed, loss, members, noise, sparse, omega, tiny
):
    """The start has weights of all sizes, so hostile rows meet margins that they have overflowed."""
    clip = np.array([tiny, 1.0, 0.7, 2.0])
    sets = Sets(np.array([0, len(members)]), np.array(members))
    unit = row_limits(sets, clip, noise)
    released = []
    for scaled in scaled_neighbours(relation, loss, X, weight, row, at, seed, "F"):
        limited = limit_support(_stored(scaled, sparse), omega)
        state = BlockState(limited, clip, np.ones(P + 1))
        state.restart(some_weights(scaled, seed))
        before = state.w.copy()
        state.run_sets(sets, np.zeros(len(members)), unit)
        released.append((before - state.w)[list(members)] * N)
    move = released[0] - released[1]
    rounding = 1e-9 + 1e-12 * np.abs(before).max() * N
    assert np.isfinite(move).all()
    beyond = np.maximum(np.abs(move) - rounding, 0.0)
    assert (beyond[unit == 0.0] == 0.0).all()
    assert ((beyond[unit > 0.0] / unit[unit > 0.0]) ** 2).sum() <= relation.factor**2 * (1 + 1e-9)


@pytest.mark.parametrize("form", [np.asfortranarray, sp.csc_array])
@pytest.mark.parametrize("noise", ["equalised", "isotropic"])
def test_the_sensitivity_of_a_set_is_attained(noise, form):
    """A row whose gradient flips in all coordinates moves the set by exactly 2 units: less noise would not do."""
    clip, sets = np.array([0.1, 0.3, 0.2]), Sets(np.array([0, 3]), np.array([2, 0, 1]))
    unit, sums = row_limits(sets, clip, noise), []
    for sign in (1.0, -1.0):
        problem = Problem(Logistic(), fit_intercept=False)
        X = form(sign * np.array([[3.0, -5.0, 4.0], [0.1, 0.2, 0.3]]) * [[1.0], [sign]])
        state = BlockState(scale_problem(problem, Data(X, np.ones(2)), identity_scaling(3), 1, "F"), clip, np.ones(3))
        state.run_sets(sets, np.zeros(3), unit)
        sums.append(state.w[sets.members])
    assert (((sums[0] - sums[1]) / unit) ** 2).sum() == pytest.approx(4.0)


def _stored(scaled, sparse):
    return replace(scaled, X=sp.csc_array(scaled.X)) if sparse else scaled


@settings(max_examples=200)
@given(
    clip=st.lists(st.sampled_from([0.0, 1e-290, 1e-200, 1e-8, 0.3, 1.0, 7.0, 1e150]), min_size=4, max_size=4),
    noise=st.sampled_from(["equalised", "isotropic"]),
)
def test_the_ball_of_every_set_touches_the_corners_of_its_box(clip, noise):
    """The squares of clip / weight add up to 1, whatever the thresholds; a threshold of 0 releases nothing."""
    clip = np.array(clip)
    sets = Sets(np.array([0, 3, 4, 6]), np.array([2, 0, 1, 3, 3, 1]))
    weights = row_limits(sets, clip, noise)
    for begin, end in itertools.pairwise(sets.starts):
        own, unit = clip[sets.members[begin:end]], weights[begin:end]
        assert (unit[own > 0.0] > 0.0).all()
        share = np.divide(own, unit, out=np.zeros_like(own), where=own > 0.0)
        assert (share**2).sum() <= 1.0 + 1e-12
        if (own > 0.0).all():
            assert (share**2).sum() == pytest.approx(1.0), "and no more noise than needed"


# Everything else.


@pytest.mark.parametrize("sketch", ["single", "importance", "nice", "independent", "blocks", "full"])
def test_without_noise_every_sketch_reaches_the_optimum(sketch):
    options = {"size": 2} if sketch in ("nice", "independent") else {}
    if sketch == "blocks":
        options = {"blocks": ((0, 2), (1, 3)), "block_sampling": "proportional"}
    X, y = table(Logistic())
    for form in (np.asarray, sp.csr_array):
        for penalty in (Zero(), L1(0.02)):
            problem = Problem(Logistic(), penalty)
            w = weights_of(SketchedDescent(sketch, **options), problem, form(X), y, NO_BUDGET)
            assert problem.objective(X, y, w[:-1], w[-1]) <= problem.optimum(X, y).value * (1 + 1e-6)


@pytest.mark.parametrize("noise", ["equalised", "isotropic"])
@pytest.mark.parametrize("loss", [Squared(), Logistic(), Huber(0.7), SmoothedHinge(0.5)], ids=lambda loss: loss.name)
def test_dense_and_sparse_tables_give_the_same_model(loss, noise):
    X, y = table(loss)
    X[np.abs(X) < 0.5 * np.abs(X).mean(axis=0)] = 0.0
    solver = SketchedDescent("nice", size=3, noise=noise, passes=6, omega=2)
    options = {"bounds": (-40.0, 40.0), "sample_weight": np.linspace(0.0, 1.0, len(y))}
    if not loss.classification:
        options["y_bounds"] = (-10.0, 10.0)
    dense, sparse = (
        weights_of(solver, Problem(loss, L2(0.01)), form(X), y, seed=SameDraws(3), **options)
        for form in (np.array, sp.csr_array)
    )
    np.testing.assert_allclose(dense, sparse, rtol=1e-7, atol=1e-10)


def test_the_average_is_the_mean_of_the_iterates():
    X, y = table(Logistic())
    scaled = exactly_scaled(Problem(Logistic(), L1(0.01)), Data(X, y))
    sets = Nice(5, 3).draw(seeded_generator(0), 30)
    noise = np.random.default_rng(0).standard_normal(sets.members.size)
    whole = BlockState(scaled, np.full(5, 0.2), np.full(5, 0.7))
    limit = row_limits(sets, whole.clip, "equalised")
    whole.run_sets(sets, noise, limit)
    single, iterates = BlockState(scaled, np.full(5, 0.2), np.full(5, 0.7)), []
    for k in range(30):
        part = slice(sets.starts[k], sets.starts[k + 1])
        single.run_sets(Sets(np.array([0, 3]), sets.members[part]), noise[part], limit[part])
        iterates.append(single.w.copy())
    np.testing.assert_allclose(whole.w, iterates[-1], rtol=1e-12)
    np.testing.assert_allclose(whole.average(), np.mean(iterates, axis=0), rtol=1e-12)


@pytest.mark.parametrize("form", [np.asarray, sp.csc_array])
def test_limited_rows_keep_their_largest_entries_and_the_intercept(form):
    X, y = np.array([[1.0, -3.0, 2.0, 2.0], [0.0, 0.5, 0.0, 0.0], [4.0, 4.0, 4.0, 4.0]]), np.ones(3)
    scaled = scale_problem(Problem(Logistic()), Data(form(X), y), identity_scaling(4), 3, "F")
    limited = limit_support(scaled, 2).X
    limited = limited.toarray() if sp.issparse(limited) else limited
    np.testing.assert_array_equal(
        limited, [[0.0, -3.0, 2.0, 0.0, 1.0], [0.0, 0.5, 0.0, 0.0, 1.0], [4.0, 4.0, 0.0, 0.0, 1.0]]
    )
    assert limit_support(scaled, 4) is scaled


def test_a_bound_on_the_support_allows_longer_steps():
    """A table of one entry per row: with omega=1 the inflation falls, and fewer steps are planned."""
    problem, public = Problem(Logistic(), fit_intercept=False), Public(10**6, 100)
    budget = Budget(1.0, 1e-9)
    free, bound = (SketchedDescent(omega=omega).plan(problem, public, budget) for omega in (None, 1))
    single = default_steps(100, public, budget)
    assert free.settings.steps == round(single)
    assert bound.settings.steps == round(single / 8)
    assert not bound.scaling_plan.centred


def test_default_steps_come_from_public_facts_and_stop_where_noise_takes_over():
    problem, budget = Problem(Logistic()), Budget(1.0, 1e-7)
    steps = [SketchedDescent().plan(problem, Public(n, 500), budget).settings.steps for n in (10**6, 1_000, 200)]
    assert steps[0] == round(default_steps(501, Public(10**6, 500), budget)) > 20 * 501
    assert steps[0] > 4 * steps[1] > 16 * steps[2] >= 16
    relaxed = SketchedDescent().plan(problem, Public(1_000, 500, Relation.ZERO_OUT), budget).settings.steps
    assert relaxed == pytest.approx(4 * steps[1], rel=0.01)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: SketchedDescent("pairs"), "sketch must be one of"),
        (lambda: SketchedDescent("blocks"), "need each other"),
        (lambda: SketchedDescent("nice", blocks=((0,),)), "need each other"),
        (lambda: SketchedDescent("full", size=2), "size is for"),
        (lambda: SketchedDescent(size=0), "size must be a positive"),
        (lambda: SketchedDescent(omega=1.5), "omega must be a whole"),
        (lambda: SketchedDescent(passes=1, steps=1), "give one of them"),
        (lambda: SketchedDescent(noise="none"), "noise must be one of"),
    ],
)
def test_settings_that_make_no_sense_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_coordinates_that_would_never_be_drawn_are_refused_before_the_rows_are_read():
    solver = SketchedDescent("importance", smoothness=(1e-300, 1e300, 1.0), clip=1.0)
    with pytest.raises(ValueError, match="never be drawn"):
        solver.plan(Problem(Logistic()), Public(100, 2), Budget(1.0, 1e-4))


@pytest.mark.parametrize("relation", ["zero_out", "add_remove"])
@pytest.mark.parametrize("sketch", ["nice", "independent", "blocks", "full"])
def test_every_relation_and_sketch_runs_with_weights_and_tiny_thresholds(sketch, relation):
    X, y = table(Logistic())
    X[0] = 1e300
    options = {"size": 2} if sketch in ("nice", "independent") else {}
    if sketch == "blocks":
        options = {"blocks": ((0, 2), (1,), (3, 4)), "block_sampling": "proportional"}
    solver = SketchedDescent(sketch, smoothness=(1e-12, 1e-3, 1.0, 1e6, 0.25), clip=1e-90, steps=9, **options)
    for noise in ("equalised", "isotropic"):
        public_n = 130 if relation == "add_remove" else None
        w = weights_of(
            replace(solver, noise=noise),
            Problem(Logistic()),
            X,
            y,
            relation=relation,
            public_n=public_n,
            sample_weight=np.linspace(0, 1, 120),
        )
        assert np.isfinite(w).all()
        assert np.abs(w).max() > 0.0
