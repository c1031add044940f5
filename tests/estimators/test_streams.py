"""Streams: the same model however the rows are cut, one booking, one continuation, little memory."""

from __future__ import annotations

import json
import threading
import time
import tracemalloc
import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from discreet import InsecureRandomnessWarning, NotPrivateWarning, pause_stream
from discreet.data.rows import Data
from discreet.estimators.streaming import stream_plan
from discreet.privacy.accounting import epsilon_of
from discreet.privacy.random.generator import seeded_generator
from discreet.privacy.relation import Relation
from discreet.solvers import FTRL
from discreet.solvers.ftrl.stream import FIRST_ROWS, LeafNoise, Stream
from tests.stream_tools import COLUMNS, ROWS, classifier, feed, regressor, rows_of, weights


@settings(max_examples=25)
@given(cuts=st.lists(st.integers(0, ROWS), max_size=6).map(sorted), capped=st.booleans())
def test_the_model_does_not_depend_on_how_the_rows_are_cut(cuts, capped):
    X, y = rows_of()
    options = {"random_state": 5, "solver": FTRL(leaves=16), "epsilon": 5.0}
    if not capped:
        options |= {"public_n": None, "delta": 1e-6, "solver": FTRL(leaves=256)}
    whole, parts = feed(classifier(**options), X, y), feed(classifier(**options), X, y, cuts)
    np.testing.assert_allclose(weights(parts), weights(whole), rtol=1e-8, atol=1e-10)
    assert parts.stream_.position == ROWS


def test_a_chunk_that_was_read_in_part_ends_the_stream(monkeypatch):
    """Feeding it again would use its first rows twice."""
    X, y = rows_of()
    model = feed(classifier(), X[:50], y[:50])
    stream = model.stream_

    def interrupted():
        raise KeyboardInterrupt

    monkeypatch.setattr(stream, "_end_leaf", interrupted)
    with pytest.raises(KeyboardInterrupt):
        model.partial_fit(X[50:60], y[50:60])
    monkeypatch.undo()
    with pytest.raises(ValueError, match="interrupted"):
        model.partial_fit(X[50:60], y[50:60])


@pytest.mark.parametrize("before", [0, 50])
def test_a_model_that_could_not_be_kept_ends_the_stream(before, monkeypatch):
    """The chunk has been read by then; the first chunk as well as a later one."""
    X, y = rows_of()
    model = feed(classifier(), X[:before], y[:before])

    def interrupted(solution):
        raise KeyboardInterrupt

    monkeypatch.setattr(model, "_keep", interrupted)
    with pytest.raises(KeyboardInterrupt):
        model.partial_fit(X[before:60], y[before:60])
    monkeypatch.undo()
    assert model.stream_.position == 60
    with pytest.raises(ValueError, match="interrupted"):
        model.partial_fit(X[before:60], y[before:60])
    feed(clone(model), X, y)


def test_a_forked_process_may_not_go_on(monkeypatch, tmp_path):
    """Not even while a thread that the fork left behind had its turn: nobody would end it."""
    X, y = rows_of()
    model = feed(classifier(), X[:50], y[:50])
    taken, done = threading.Event(), threading.Event()

    def have_a_turn():
        with model.stream_.alone():
            taken.set()
            done.wait(60)

    other = threading.Thread(target=have_a_turn)
    other.start()
    taken.wait(60)
    monkeypatch.setattr("os.getpid", lambda: -1)
    for forked in (
        lambda: model.partial_fit(X[50:], y[50:]),
        lambda: pause_stream(model, tmp_path / "stream.json"),
        model.stream_.state,
        model.stream_.solution,
    ):
        with pytest.raises(ValueError, match="another process"):
            forked()
    done.set()
    other.join()
    assert list(tmp_path.iterdir()) == []


def test_threads_take_turns(monkeypatch):
    """Every leaf holds its own rows, once, though threads are switched inside the reading of every one of them."""

    def count_rows(scaled, norms, rows, w, clip, step):
        time.sleep(1e-5)  # lets another thread in
        return np.full(scaled.shape, float(rows.stop - rows.start))

    monkeypatch.setattr("discreet.solvers.ftrl.solver.leaf_gradient", count_rows)
    X, y = rows_of(200)
    model = feed(classifier(public_n=400, delta=1e-5, solver=FTRL(leaves=50)), X[:8], y[:8])
    shown = []

    def feed_every_fourth(first):
        for start in range(8 + 4 * first, 200, 16):
            model.partial_fit(X[start : start + 4], y[start : start + 4])
            shown.append(model.n_iter_)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(feed_every_fourth, range(4)))
    stream = model.stream_
    assert stream.position == 200
    assert stream.sums.done == 25
    np.testing.assert_array_equal(stream.sums.exact.sum(axis=0) + stream.loop.leaf, np.full(COLUMNS + 1, 200.0))
    assert max(shown) == model.n_iter_ == 25


@pytest.mark.parametrize("make", [np.random.default_rng, np.random.RandomState, seeded_generator, int])
def test_no_seed_draws_the_noise_of_an_earlier_leaf_again(make):
    """Whatever was seeded: begun and resumed with equal seeds, leaf 17 is leaf 17, and not leaf 0."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InsecureRandomnessWarning)
        begun, resumed, other = (LeafNoise(make(seed), b"plan") for seed in (7, 7, 8))
        other_plan = LeafNoise(make(7), b"another plan")
    draws = [source.of_leaf(leaf).normal(4) for source in (begun, other, other_plan) for leaf in range(18)]
    assert np.unique(draws).size == 3 * 18 * 4
    np.testing.assert_array_equal(resumed.of_leaf(17).normal(4), draws[17])


def test_the_cap_is_the_last_row():
    X, y = rows_of()
    model = feed(classifier(), X[:200], y[:200])
    with pytest.raises(ValueError, match="at most 240 rows"):
        model.partial_fit(X[:41], y[:41])
    feed(model, X[200:], y[200:])
    assert model.n_iter_ == model.plan_.settings.leaves == ROWS  # a short last leaf counts as well
    with pytest.raises(ValueError, match="at most 240 rows"):
        model.partial_fit(X[:1], y[:1])


@pytest.mark.parametrize("rows", [1, 2, 3, 4, 64, 65])
def test_short_streams_and_powers_of_two(rows):
    X, y = rows_of(rows)
    model = feed(classifier(public_n=rows, delta=1e-3), X, y)
    assert model.stream_.sums.done == model.n_iter_ == rows
    assert np.isfinite(weights(model)).all()


def test_trees_double_where_nobody_knows_the_length():
    X, y = rows_of(FIRST_ROWS * 7)
    model = feed(classifier(public_n=None, delta=1e-6, solver=FTRL(leaves=32)), X, y)
    stream = model.stream_
    assert (stream.tree, stream.position) == (3, FIRST_ROWS * 7)
    assert model.n_iter_ == 3 * 32
    assert stream.loop.leaf_rows == 8 * FIRST_ROWS // 32
    assert epsilon_of(model.guarantee_.event, 1e-6, Relation.REPLACE) <= 1.0


def test_every_tree_has_the_noise_of_its_own_leaves():
    """Two arms: the noise of a later tree is that of the plan for its clip, and half of it is told apart.

    With 400 draws the deviation is known to 3.5 %; a correct library fails at 6 standard errors, 2e-9.
    """
    plan = stream_plan(classifier(public_n=None, delta=1e-6, solver=FTRL(leaves=4, clip=0.5)), 19, 2, False)
    rows = FIRST_ROWS * 3 // 2  # the first tree and the first leaf of the second, which has twice the rows
    nothing = Data(np.zeros((rows, 19)), np.ones(rows), np.zeros(rows))
    draws = []
    for seed in range(20):
        stream = Stream(plan, False, seeded_generator(seed))
        stream.read(nothing)
        assert (stream.tree, stream.sums.done) == (1, 1)
        draws.append(stream.sums.open[0])
    sensitivity = 2.0 * 0.5 * np.sqrt(3)  # replace, clip, three nodes above a leaf of four
    found, wanted = np.std(draws), plan.mechanism.multiplier * sensitivity
    assert abs(found / wanted - 1.0) < 6 / np.sqrt(2 * 400)
    assert abs(0.5 * found / wanted - 1.0) > 6 / np.sqrt(2 * 400)


@pytest.mark.parametrize("at", [0, FIRST_ROWS - 1, FIRST_ROWS, 2 * FIRST_ROWS, 3 * FIRST_ROWS - 1])
def test_one_row_touches_one_tree_by_at_most_its_sensitivity(at):
    """What every tree has summed up, without noise and with weights that stand still, for two neighbours."""
    solver = FTRL(leaves=4, clip=0.5, step=1e-300)
    plan = stream_plan(classifier(public_n=None, delta=1e-6, solver=solver), COLUMNS, 2, False)
    silent = replace(plan, mechanism=replace(plan.mechanism, multiplier=0.0))
    X, y = rows_of(3 * FIRST_ROWS)
    other = X.copy()
    other[at] = 1e300
    sums = []
    for table in (X, other):
        stream = Stream(silent, False, seeded_generator(0))
        trees = []
        for rows in (slice(0, FIRST_ROWS), slice(FIRST_ROWS, 3 * FIRST_ROWS)):
            before = stream.loop.leader.base.copy()
            stream.read(Data(table[rows], 2.0 * y[rows] - 1.0))
            trees.append((stream.loop.leader.base - before) * (FIRST_ROWS // 4 << len(trees)))
        sums.append(trees)
    moves = [np.linalg.norm(a - b) for a, b in zip(*sums, strict=True)]
    touched = int(at >= FIRST_ROWS)
    assert 1e-3 < moves[touched] <= 2.0 * 0.5 * (1 + 1e-9)
    assert moves[1 - touched] < 1e-10


def test_a_stream_is_never_held_in_memory():
    columns, rows, chunk = 50, 20_000, 500
    X, y = rows_of(chunk, columns)
    model = classifier(public_n=rows)
    feed(model, X, y)
    tracemalloc.start()
    for _ in range(rows // chunk - 1):
        model.partial_fit(X, y)
    kept, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    vectors = 8 * (columns + 1)
    assert kept < 40 * vectors + 100_000  # levels of the tree, and Python's own objects
    assert peak < 20 * chunk * vectors
    assert len(json.dumps(model.stream_.state())) < 25 * 40 * (columns + 1)


@pytest.mark.parametrize("make", [classifier, regressor])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_streams_without_noise_learn(make, form):
    X, y = rows_of(4_000)
    model = make(public_n=4_000, epsilon=float("inf"))
    with pytest.warns(NotPrivateWarning):
        model.partial_fit(form(X[:1_000]), y[:1_000])
    for start in range(1_000, 4_000, 1_000):
        model.partial_fit(form(X[start : start + 1_000]), y[start : start + 1_000])
    assert model.score(X, y) > (0.8 if make is classifier else 0.3)


def test_streams_learn_under_privacy():
    X, y = rows_of(20_000)
    for options in ({"public_n": 20_000}, {"public_n": None, "delta": 1e-8}):
        assert feed(classifier(**options), X, y, range(1_000, 20_000, 1_000)).score(X, y) > 0.8


def test_several_classes_and_labels_given_with_the_first_chunk():
    X, _ = rows_of(600)
    y = np.digitize(X[:, 0], [-0.3, 0.3])
    model = classifier(classes=None, public_n=600, epsilon=float("inf"))
    with pytest.raises(ValueError, match="needs classes"):
        model.partial_fit(X, y)
    with pytest.warns(NotPrivateWarning):
        model.partial_fit(X[:300], y[:300], classes=[0, 1, 2])
    model.partial_fit(X[300:], y[300:])
    assert model.coef_.shape == (3, COLUMNS)
    assert model.score(X, y) > 0.6


@pytest.mark.parametrize(
    ("make", "options", "missing"),
    [
        (classifier, {"bounds": None}, "bounds"),
        (classifier, {"bounds": "data"}, "bounds"),
        (regressor, {"y_bounds": None}, "y_bounds"),
        (classifier, {"public_n": None}, "public_n .* or delta"),
    ],
)
def test_what_is_not_declared_is_asked_for_by_name(make, options, missing):
    model = make(**options)
    assert not hasattr(model, "partial_fit")
    with pytest.raises(AttributeError, match=missing):
        model.partial_fit(np.zeros((2, 2)), [0, 1])


def test_what_a_stream_cannot_do_is_refused():
    X, y = rows_of()
    with pytest.raises(ValueError, match="shift the place"):
        classifier(relation="add_remove").partial_fit(X, y)
    with pytest.raises(ValueError, match="shift the place"):
        classifier(relation="add_remove", public_n=None, delta=1e-6).partial_fit(X, y)
    with pytest.raises(ValueError, match='solver="ftrl"'):
        classifier(solver="cd").partial_fit(X, y)
    model = feed(classifier(), X[:50], y[:50])
    with pytest.raises(ValueError, match="dense or all sparse"):
        model.partial_fit(sp.csr_array(X[:5]), y[:5])
    with pytest.raises(ValueError, match="features"):
        model.partial_fit(X[:5, :2], y[:5])
    with pytest.raises(ValueError, match="not in classes"):
        model.partial_fit(X[:5], y[:5] + 7)
    assert model.stream_.position == 50


def test_fit_forgets_the_stream_and_partial_fit_begins_another():
    X, y = rows_of()
    model = feed(classifier(), X, y)
    assert not hasattr(model.fit(X, y), "stream_")
    assert feed(model, X[:10], y[:10]).stream_.position == 10
