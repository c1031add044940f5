"""A table in single precision stays in single precision: the same sums, and no second table twice as large."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from discreet import LogisticRegression
from discreet.data import rows
from discreet.kernels import gradient
from discreet.solvers import CoordinateDescent, GradientDescent, StochasticGradientDescent

ROWS, COLUMNS = 20_000, 80
BRIEF = [CoordinateDescent(passes=2), GradientDescent(steps=3), StochasticGradientDescent(passes=1)]


def single_table(rows=ROWS, columns=COLUMNS):
    return np.random.default_rng(0).random((rows, columns), dtype=np.float32)


def peak_of(call):
    """The most memory that was allocated at once during a call, in bytes."""
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("outputs", [(), (3,)])
@pytest.mark.parametrize("weighted", [False, True])
def test_products_in_blocks_are_those_of_the_widened_table(order, outputs, weighted):
    X = np.asarray(single_table(5_001, 70), order=order)  # some blocks and a rest
    rng = np.random.default_rng(1)
    w, slopes = rng.normal(size=(*outputs, 70)), rng.normal(size=(5_001, *outputs))
    weight = rng.random(5_001) if weighted else None
    wide = X.astype(np.float64)
    margins = gradient.margins_of(X, w)
    np.testing.assert_allclose(margins, wide @ w.T, rtol=1e-12, atol=1e-12)
    slopes[7] = np.inf  # contributes nothing in either form
    arguments = (slopes, gradient.row_norms(X), 2.0, weight)
    found, expected = (gradient.clipped_gradient_sum(table, *arguments) for table in (X, wide))
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=1e-10)


@pytest.mark.parametrize("solver", BRIEF, ids=lambda solver: solver.name)
def test_a_fit_keeps_one_copy_of_the_table(solver, monkeypatch):
    monkeypatch.setattr(rows, "BLOCK_ENTRIES", 1 << 17)  # widened blocks must be small beside the table
    X, y = single_table(), np.arange(ROWS) % 2
    model = LogisticRegression(solver=solver, classes=[0, 1])
    model.fit(X, y)  # compiles, which takes memory of its own
    # One copy, and some numbers of each row, which are 1/40 of the table each.
    assert peak_of(lambda: model.fit(X, y)) < 1.3 * X.nbytes
    assert peak_of(lambda: X @ np.ones(COLUMNS)) > 1.9 * X.nbytes  # what must not happen
