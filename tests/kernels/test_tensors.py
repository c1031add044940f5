"""Passes over rows in a tensor give what the compiled passes give, and a row's term depends on that row alone.

Tensors in the memory of the host stand for those on a GPU: the operations are the same.
"""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import product

import numpy as np
import pytest

from discreet.kernels.slopes import HUBER, LOGISTIC, SMOOTHED_HINGE, SQUARED
from discreet.problem.scaled_block import ScaledRows

torch = pytest.importorskip("torch", reason="PyTorch is not installed; pip install discreet[gpu]")

from discreet.kernels.tensors import TensorRows, all_finite, clipped, mapped  # noqa: E402 - needs PyTorch

LOSSES = [(SQUARED, 0.0), (LOGISTIC, 0.0), (HUBER, 0.7), (SMOOTHED_HINGE, 0.5)]
STEP, CLIP = 2.0**-20, 1.5


def both(intercept, rows=997, columns=5, seed=0):
    """The same rows for either kind of kernel, labels, weights of the rows and of the columns."""
    rng = np.random.default_rng(seed)
    X = 3.0 * rng.normal(size=(rows, columns)).astype(np.float32)
    low, high, shift = np.full(columns, -4.0), np.full(columns, 5.0), rng.normal(size=columns)
    gain = rng.uniform(0.5, 1.5, columns)
    compiled = ScaledRows(X, np.stack([low, high, shift, gain]), intercept)
    tensors = TensorRows(torch.as_tensor(X), np.stack([low, high, shift, gain]), intercept)
    y, w = np.where(rng.random(rows) < 0.5, -1.0, 1.0), rng.normal(size=columns + intercept)
    return compiled, tensors, y, rng.random(rows), w


def tensor(values):
    return torch.as_tensor(values, dtype=torch.float64)


@pytest.mark.parametrize("intercept", [False, True])
def test_margins_norms_and_products_are_those_of_the_compiled_passes(intercept):
    compiled, tensors, _, factors, w = both(intercept)
    matrix = np.random.default_rng(1).normal(size=(w.size, w.size))
    assert np.array_equal(tensors.matrix(), compiled.matrix())
    assert np.allclose(tensors.margins(w), compiled.margins(w), rtol=1e-14, atol=1e-13)
    several = tensors.margins(np.stack([w, -w]))
    assert np.array_equal(several[:, 0], tensors.margins(w))
    for maps in (None, matrix):
        assert np.allclose(tensors.norms(maps), compiled.norms(maps), rtol=1e-14)
        exact = tensors.outer_products(tensor(factors), 2.0**-10, maps)
        assert np.array_equal(exact, compiled.outer_products(factors, 2.0**-10, maps))


@pytest.mark.parametrize(("loss", "intercept", "weighted"), list(product(LOSSES, [False, True], [False, True])))
def test_gradient_sums_are_those_of_the_compiled_pass(loss, intercept, weighted):
    compiled, tensors, y, weight, w = both(intercept)
    norms, weight = compiled.norms(), weight if weighted else None
    on_device = (tensor(norms), CLIP, None if weight is None else tensor(weight))
    found = tensors.gradient_sum(w, tensor(y), loss, *on_device, STEP)
    wanted = compiled.gradient_sum(w, y, loss, norms, CLIP, weight, STEP)
    assert np.abs(found - wanted).max() <= 2.0 * STEP  # a last bit of a slope may take an entry to the next step
    assert np.array_equal(np.rint(found / STEP) * STEP, found)


def test_exactly_representable_rows_have_the_same_sums():
    rng = np.random.default_rng(2)
    X, y = rng.integers(-8, 9, (500, 4)).astype(np.float64), rng.integers(-3, 4, 500).astype(np.float64)
    columns = [np.full(4, -8.0), np.full(4, 8.0), np.zeros(4), np.ones(4)]
    compiled, tensors = ScaledRows(X, np.stack(columns), True), TensorRows(tensor(X), np.stack(columns), True)
    w, norms = np.array([0.5, -0.25, 1.0, 0.0, 2.0]), np.ones(500)
    wanted = compiled.gradient_sum(w, y, (SQUARED, 0.0), norms, 1e6, None, 0.125)
    assert np.array_equal(tensors.gradient_sum(w, tensor(y), (SQUARED, 0.0), tensor(norms), 1e6, None, 0.125), wanted)


def sums_of(X, y, w, order):
    """The rounded gradient sum of chosen rows."""
    columns = np.stack([np.full(5, -4.0), np.full(5, 5.0), np.full(5, 0.3), np.full(5, 0.7)])
    rows = TensorRows(X[order], columns, True)
    return rows.gradient_sum(w, y[order], (SQUARED, 0.0), rows.norms(w[:, None] * w), CLIP, None, STEP)


def test_the_term_of_a_row_depends_on_that_row_alone():
    """In another order, and with a row less, all other terms are the same numbers, to the last bit."""
    rng = np.random.default_rng(3)
    X, y, w = tensor(rng.normal(size=(313, 5))), tensor(rng.normal(size=313)), rng.normal(size=6)
    everything = np.arange(313)
    whole = sums_of(X, y, w, everything)
    assert np.array_equal(sums_of(X, y, w, rng.permutation(313)), whole)
    for gone in (0, 100, 312):
        assert np.array_equal(sums_of(X, y, w, np.delete(everything, gone)) + sums_of(X, y, w, [gone]), whole)
    together = X - X.mean(dim=0)  # the planted fault: what is known of the other rows
    fewer = (X - X[1:].mean(dim=0))[1:]
    assert not np.array_equal(sums_of(together, y, w, everything[1:]), sums_of(fewer, y[1:], w, np.arange(312)))


def test_products_are_added_in_the_order_of_the_columns():
    Z, matrix = tensor([[1e17], [1.0], [-1e17]]), tensor([[1.0], [1.0], [1.0]])
    assert float(mapped(Z, matrix)) == 0.0  # 1e17 + 1 is 1e17


def test_slopes_that_are_not_finite_contribute_nothing():
    slopes, norms = tensor([np.nan, np.inf, -np.inf, 1e300, 2.0]), tensor([1.0, 1.0, 1.0, 1e300, 3.0])
    assert clipped(slopes, norms, 1.5, None).tolist() == [0.0, 0.0, 0.0, 0.0, 0.5]
    assert clipped(slopes[4:], norms[4:], np.inf, None).tolist() == [2.0]
    # A quotient with few digits could be rounded up to twice what it is.
    assert clipped(tensor([4.02e305]), tensor([1.0]), 1e-18, None).tolist() == [0.0]


def test_numbers_that_are_not_finite_are_found_wherever_they_are(monkeypatch):
    monkeypatch.setattr("discreet.kernels.tensors.PIECE_ENTRIES", 8)
    X = torch.zeros(10, 3)
    assert all_finite(X + 3e38)  # whose sum is not
    for place, value in ((0, np.inf), (29, np.nan)):
        broken = X.clone()
        broken.view(-1)[place] = value
        assert not all_finite(broken)


FUSED = """
import numpy as np
from tests.kernels.test_tensors import CLIP, LOSSES, STEP, both, tensor
from discreet.kernels import tensors as module
for loss in LOSSES:
    for intercept, weighted in ((True, False), (False, True)):
        compiled, rows, y, weight, w = both(intercept, rows=301)
        norms, weight = compiled.norms(), weight if weighted else None
        norms[3], w[0] = np.inf, -w[0]
        assert module.runs_fused(rows.X)
        arguments = (w, tensor(y), loss, tensor(norms), CLIP, None if weight is None else tensor(weight), STEP)
        found = rows.gradient_sum(*arguments)
        wanted = compiled.gradient_sum(w, y, loss, norms, CLIP, weight, STEP)
        assert np.abs(found - wanted).max() <= 2.0 * STEP, (loss, found - wanted)
        assert np.array_equal(np.rint(found / STEP) * STEP, found)
        matrix = np.random.default_rng(1).normal(size=(w.size, w.size))
        assert np.allclose(rows.norms(matrix), compiled.norms(matrix), rtol=1e-14)
        assert np.allclose(rows.margins(np.stack([w, -w]))[:, 1], -compiled.margins(w), rtol=1e-13, atol=1e-13)
"""


def test_the_fused_kernel_gives_the_same_sums():
    """As Triton's interpreter runs it, without a GPU; it must be told before the kernel is made."""
    pytest.importorskip("triton", reason="Triton is not installed")
    environment = os.environ | {"TRITON_INTERPRET": "1", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run([sys.executable, "-c", FUSED], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
