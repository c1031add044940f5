"""Threads change no bit, keep the order, hand errors on and leave the threads of BLAS as they were."""

from __future__ import annotations

import gc
import threading
import warnings

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from discreet import LogisticRegression, Ridge, solve
from discreet._common.threads import ordered_map, thread_count
from discreet.data import rows as rows_module
from discreet.data.rows import Data
from discreet.problem import L2, Logistic, Problem
from discreet.solvers import GradientDescent


def blas_threads():
    return [each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"]


@pytest.mark.parametrize("jobs", [1, 2, 7])
def test_results_come_in_order_and_few_items_are_at_hand(jobs):
    taken, returned = [], []
    for number, value in enumerate(ordered_map(lambda item: item**2, (taken.append(i) or i for i in range(50)), jobs)):
        assert value == number**2
        assert len(taken) <= number + 2 + jobs
        returned.append(value)
    assert len(returned) == 50


@pytest.mark.parametrize("jobs", [1, 3])
def test_errors_are_handed_on_and_blas_gets_its_threads_back(jobs):
    before = blas_threads()

    def part(item):
        if item == 5:
            raise ValueError("five")
        return item

    with pytest.raises(ValueError, match="five"):
        list(ordered_map(part, range(20), jobs))
    assert blas_threads() == before


def test_fits_side_by_side_leave_blas_as_it_was():
    before = blas_threads()
    inside = threading.Barrier(2)

    def one():
        list(ordered_map(lambda item: inside.wait(10) if item == 0 else item, range(4), 1))

    threads = [threading.Thread(target=one) for _ in range(2)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert blas_threads() == before


def test_settings_of_the_caller_hold_in_threads():
    with np.errstate(divide="ignore"), warnings.catch_warnings():
        warnings.simplefilter("error")
        assert all(np.isinf(list(ordered_map(lambda item: np.float64(1.0) / np.float64(0.0), range(4), 2))))


def test_n_jobs(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    cores = thread_count(-1)
    assert thread_count(None) == cores >= 1
    assert thread_count(3) == 3
    assert thread_count(-cores - 5) == 1
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert thread_count(None) == 1
    for wrong in (0, True, 1.5, "all"):
        with pytest.raises(ValueError, match="n_jobs must be"):
            thread_count(wrong)


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(rows_module, "BLOCK_ENTRIES", 3_000)


def table(n=4_000, p=6, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)) * np.geomspace(0.1, 10.0, p)
    return X, X @ rng.standard_normal(p), rng


@pytest.mark.filterwarnings("ignore::discreet.InsecureRandomnessWarning")
@pytest.mark.parametrize("layout", ["C", "F", "float32"])
def test_the_same_model_for_any_number_of_threads(small_blocks, layout):
    X, score, rng = table()
    X = X.astype(np.float32) if layout == "float32" else np.array(X, order=layout)
    labels = (score + rng.standard_normal(score.size) > 0.0).astype(int)
    models = [
        LogisticRegression(epsilon=3.0, classes=[0, 1], random_state=1, n_jobs=jobs).fit(X, labels)
        for jobs in (1, 2, 5)
    ]
    ridges = [Ridge(epsilon=3.0, random_state=1, n_jobs=jobs).fit(X, score) for jobs in (1, 3)]
    assert len({model.coef_.tobytes() for model in models}) == 1
    assert len({model.coef_.tobytes() for model in ridges}) == 1


@pytest.mark.filterwarnings("ignore::discreet.InsecureRandomnessWarning")
def test_the_same_solution_for_any_blocks_and_threads(monkeypatch):
    X, score, _ = table()
    y = np.where(score > 0.0, 1.0, -1.0)
    found = []
    for entries, jobs in ((1_000, 1), (7_001, 3), (1 << 20, 2)):
        monkeypatch.setattr(rows_module, "BLOCK_ENTRIES", entries)
        solver, problem = GradientDescent(steps=20), Problem(Logistic(), L2(1e-3))
        found.append(solve(problem, X, y, solver, 2.0, random_state=3, n_jobs=jobs).coef.tobytes())
    assert len(set(found)) == 1


def test_what_was_computed_of_rows_stays_with_them():
    data = Data(np.ones((3, 2)), np.zeros(3))
    assert data.keep("key", lambda block: block.rows) == 3
    from dataclasses import replace

    other = replace(data, X=np.ones((5, 2)), y=np.zeros(5))
    assert other.keep("key", lambda block: block.rows) == 5


def held_rows():
    # Not isinstance, which asks what a weak proxy stands for, and fails where that is gone.
    return [each for each in gc.get_objects() if type(each) is Data]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::discreet.InsecureRandomnessWarning")
@pytest.mark.parametrize("entries", [1_000, 1 << 20])
def test_no_rows_are_held_after_a_fit(monkeypatch, entries):
    monkeypatch.setattr(rows_module, "BLOCK_ENTRIES", entries)
    X, score, _ = table(1_000)
    gc.collect()
    gc.disable()  # rows must go without it: large arrays do not make it run
    try:
        before = held_rows()  # tables that other test modules keep
        Ridge(epsilon=3.0, random_state=1).fit(X, score)
        assert len([each for each in held_rows() if not any(each is other for other in before)]) == 0
    finally:
        gc.enable()
