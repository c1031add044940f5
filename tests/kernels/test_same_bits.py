"""NumPy and the compiled loops give the same bits, on any processor; small tables are fitted without a compiler."""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp
from numba import njit

from discreet.kernels import (
    elementary,
    grid_sums,
    histograms,
    quadratic,
    row_passes,
    sampling,
    slopes,
    small_quadratic,
    small_rows,
    vectormath,  # noqa: F401 - tells Numba what the elementary functions mean
)
from discreet.problem.losses import Huber, Logistic, SmoothedHinge, Squared

EDGES = [0.0, -0.0, np.inf, -np.inf, np.nan, 5e-324, -5e-324, 1e308, -1e308, 695.0, -695.0, 700.0, -700.0]
WORDS = np.array([0, 1, 2, 2**62 - 1, 2**62, 2**63 - 1, 2**63, 3 << 62, (3 << 62) - 1, 2**64 - 2, 2**64 - 1], "u8")
LOSSES = [Logistic(), Squared(), Huber(0.7), SmoothedHinge(0.4)]
SHAPES = [(1, 1), (2, 9), (3, 8), (63, 7), (64, 16), (65, 17), (129, 3), (200, 31), (517, 50)]
POINTS = 100_000


def same(first, second):
    """Equal to the last bit; of NaN only its place counts."""
    first, second = np.asarray(first), np.asarray(second)
    numbers = ~np.isnan(first)
    return np.array_equal(numbers, ~np.isnan(second)) and np.array_equal(
        first[numbers].view(np.uint64), second[numbers].view(np.uint64)
    )


def compiled(function, flags):
    @njit(error_model="numpy", fastmath=flags)
    def loop(values, out):
        for i in range(values.size):
            out[i] = function(values[i])

    return loop


@pytest.mark.parametrize("flags", [set(), {"reassoc", "contract", "arcp", "nsz"}], ids=["strict", "loose"])
@pytest.mark.parametrize(
    "name", ["exp_fast", "minus_sigmoid", "log_fast", "exponential_from_bits", "uniform_from_bits"]
)
def test_elementary_functions(name, flags):
    rng, function = np.random.default_rng(0), getattr(elementary, name)
    values = np.concatenate([rng.normal(size=POINTS) * 10.0 ** rng.uniform(-300, 3, POINTS), EDGES])
    if name == "log_fast":
        values = np.exp(rng.uniform(-700.0, 700.0, POINTS))
    elif name.endswith("bits"):
        values = np.concatenate([rng.integers(0, 2**64, POINTS, dtype="u8"), WORDS])
    out = np.empty(values.size)
    compiled(function, flags)(values, out)
    assert same(function(values), out)


@pytest.mark.parametrize("size", [1, 2, 3, 8, 65, 1_001])
@pytest.mark.parametrize("name", ["fill_uniform", "fill_normal", "fill_laplace", "fill_gumbel"])
def test_draws(name, size):
    words = np.random.default_rng(size).integers(0, 2**64, size + size % 2, dtype="u8")
    words[: WORDS.size] = WORDS[: words.size]
    few, many = np.empty(size), np.empty(size)
    getattr(elementary, name)(words, few)
    getattr(sampling, name)(words, many)
    assert same(few, many)


@pytest.mark.parametrize("size", [1, 2, 3, 8, 65, 1_001])
@pytest.mark.parametrize("scale", [0.3, 7.0, 2.0**40])
@pytest.mark.parametrize("law", ["normal", "laplace"])
def test_rounded_draws_and_which_are_undecided(law, scale, size):
    words = np.random.default_rng(size).integers(0, 2**64, size + size % 2, dtype="u8")
    words[: WORDS.size] = WORDS[: words.size]
    results = []
    for module in (elementary, sampling):
        out, undecided = np.empty(size), np.zeros(size, np.int64)
        getattr(module, f"fill_{law}")(words, out)
        results.append((getattr(module, f"round_{law}")(words, scale, out, undecided), out, undecided))
    assert results[0][0] == results[1][0]
    assert same(results[0][1], results[1][1])
    assert np.array_equal(results[0][2], results[1][2])


def table(n, p, wild):
    """Rows, and the parameters of their columns; wild ones have entries of every size, NaN and infinity."""
    rng = np.random.default_rng(n + 1_000 * p)
    X, shift, gain = rng.normal(size=(n, p)), rng.normal(size=p), rng.random(p) + 0.5
    low, high = np.full(p, -2.0), np.full(p, 2.5)
    if wild:
        low[::2], high[::2] = -np.inf, np.inf
        X *= 10.0 ** rng.uniform(-320, 300, size=X.shape)
        chosen = rng.random(X.shape) < 0.2
        X[chosen] = rng.choice(EDGES, chosen.sum())
    X.flags.writeable = False
    return rng, X, np.stack([low, high, shift, gain])


def both(name, *arguments, out, compiled_module=row_passes):
    """What the two forms of a pass write into copies of `out`."""
    results = []
    for module in (small_rows, compiled_module):
        results.append(out.copy())
        with np.errstate(all="ignore"):
            getattr(module, name)(*arguments, results[-1])
    return results


@pytest.mark.parametrize("wild", [False, True], ids=["tame", "wild"])
@pytest.mark.parametrize(("n", "p"), SHAPES)
def test_passes_over_rows(n, p, wild):
    rng, X, columns = table(n, p, wild)
    w, maps, factors = rng.normal(size=p + 1), rng.normal(size=(p + 1, p + 1)), rng.random(n)
    norms = both("fill_square_lengths", X, columns, 1.0, out=np.empty(n))
    assert same(*norms)
    assert same(*both("fill_scaled", X, columns, out=np.zeros((n, p + 1))))
    assert same(*both("fill_margins", X, columns, w, out=np.empty(n)))
    assert same(*both("fill_mapped_squares", X, columns, 1.0, maps, out=np.empty(n), compiled_module=row_passes))
    for used, unit in product((maps, np.empty((0, p + 1))), (0.0, 2.0**-14)):
        arguments = (X, columns, 1.0, used, factors, unit)
        sums = both("add_outer_products", *arguments, out=np.zeros((p + 1, p + 1)), compiled_module=row_passes)
        assert same(*map(np.triu, sums))
    y, lengths = np.where(rng.random(n) < 0.5, 1.0, -1.0), np.maximum(np.sqrt(norms[0]), 1e-150)
    for loss, weight, clip, step in product(LOSSES, (np.empty(0), factors), (1.3, np.inf), (0.0, 2.0**-20)):
        if wild and clip == np.inf and step > 0.0:
            continue  # more than 2^53 steps: such sums are not exact
        arguments = (X, y, lengths, weight, columns, w, loss.code, float(loss.parameter), clip, step)
        assert same(*both("add_clipped_gradients", *arguments, out=np.zeros(p + 1)))


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
@pytest.mark.parametrize("name", ["fill_slopes", "fill_curvatures"])
def test_slopes_and_curvatures(name, loss):
    margins = np.concatenate([np.random.default_rng(0).normal(size=1_000) * 3.0, EDGES])
    y = np.where(np.arange(margins.size) % 2, 1.0, -1.0)
    few, many = np.empty(margins.size), np.empty(margins.size)
    getattr(small_rows, name)(loss.code, float(loss.parameter), margins, y, few)
    getattr(slopes, name)(loss.code, float(loss.parameter), margins, y, many)
    assert same(few, many)


def test_counts_of_norms():
    norms = np.concatenate([10.0 ** np.random.default_rng(0).uniform(-3, 4, 2_000), np.abs(EDGES)])
    edges = 2.0 ** (np.arange(1, 3) / 3)
    for weight in (np.empty(0), np.random.default_rng(1).integers(0, 9, norms.size) / 8.0):
        few, many = np.zeros(45), np.zeros(45)
        small_rows.add_norms(norms, weight, 0.7, -3, edges, few)
        histograms.add_norms(norms, weight, 0.7, -3, edges, many)
        assert np.array_equal(few, many)


@pytest.mark.parametrize("form", [np.asarray, np.asfortranarray, sp.csr_array, sp.csc_array])
@pytest.mark.parametrize("outputs", [None, 3])
def test_rounded_sums(form, outputs, monkeypatch):
    rng = np.random.default_rng(0)
    X = form(rng.normal(size=(65, 7)) * (rng.random((65, 7)) < 0.5))
    factors, shares = rng.normal(size=65 if outputs is None else (65, outputs)), rng.random(65)
    few = grid_sums.rounded_row_sum(X, factors, 2.0**-20)
    squares = grid_sums.outer_product_sum(X, shares, 2.0**-14, np.eye(7))
    monkeypatch.setattr(small_rows, "SMALL", 0)
    assert same(few, grid_sums.rounded_row_sum(X, factors, 2.0**-20))
    assert same(squares, grid_sums.outer_product_sum(X, shares, 2.0**-14, np.eye(7)))


@pytest.mark.parametrize("first_sweeps", [0, 1, 7, 10_000])
def test_a_quadratic_may_be_minimised_in_two_parts(first_sweeps):
    rng = np.random.default_rng(0)
    A = rng.normal(size=(30, 6))
    terms = (np.full(6, 0.3), np.full(6, 0.1), np.full(6, -2.0), np.full(6, 2.0))
    linear, tolerance = 20.0 * rng.normal(size=6), 1e-12
    whole, rest = np.zeros(6), linear.copy()
    assert quadratic.minimise_quadratic(A.T @ A, rest, *terms, whole, tolerance, 10_000)[1]
    parts, rest = np.zeros(6), linear.copy()
    done, enough = small_quadratic.minimise_quadratic(A.T @ A, rest, *terms, parts, tolerance, first_sweeps)
    assert enough or done == first_sweeps
    if not enough:
        quadratic.minimise_quadratic(A.T @ A, rest, *terms, parts, tolerance, 10_000)
    assert same(whole, parts)


def test_a_row_is_worth_the_same_whatever_rows_are_beside_it():
    """Also beside rows that are not finite; and one row adds no more than the clip, rounding apart."""
    rng, X, columns = table(200, 9, False)
    w, y, norms, clip, step = 9.0 * rng.normal(size=10), np.ones(200), np.empty(200), 0.25, 2.0**-30
    small_rows.fill_square_lengths(X, columns, 1.0, norms)
    norms, others = np.sqrt(norms), np.full((1, 9), np.nan)

    def added(rows, lengths):
        sums = np.zeros(10)
        arguments = (rows, y[: len(rows)], lengths, np.empty(0), columns, w, Squared().code, 1.0, clip, step)
        small_rows.add_clipped_gradients(*arguments, sums)
        return sums

    alone = [added(X[i : i + 1], norms[i : i + 1]) for i in range(200)]
    assert same(np.sum(alone, axis=0), added(X, norms))
    assert max(np.linalg.norm(each) * step for each in alone) <= clip + 10 * step
    beside = added(np.concatenate([X[:1], others]), np.array([norms[0], np.nan]))
    assert same(beside, alone[0])


FITS = """
import sys, warnings
import numpy as np
import discreet
warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
X = rng.normal(size=({rows}, 9))
z = X @ np.linspace(-1, 1, 9) + rng.logistic(size=len(X))
for model in {models}:
    y = z > 0 if hasattr(model, "classes") else z
    print(model.set_params(random_state=0).fit(X, y).coef_.tobytes().hex())
print("numba" in sys.modules)
"""


def printed(tmp_path, rows, models, **environment):
    """The bits of seeded models, and whether Numba was needed; with an empty cache of compiled functions."""
    code = FITS.format(rows=rows, models="[" + ", ".join(f"discreet.{model}" for model in models) + "]")
    settings = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / f"cache-{rows}{len(environment)}")} | environment
    run = subprocess.run([sys.executable, "-c", code], env=settings, capture_output=True, text=True, check=True)
    return run.stdout.split()


def test_small_tables_are_fitted_without_a_compiler(tmp_path):
    models = ["LogisticRegression()", "LogisticRegression(solver='gd')", "LinearSVC()", "Ridge()", "Lasso()"]
    assert printed(tmp_path, 2_000, [*models, "HuberRegressor()", "LogisticRegression(penalty='l1')"])[-1] == "False"


@pytest.mark.slow
def test_results_do_not_depend_on_the_processor(tmp_path):
    """Compiled for whatever this processor has, and for one without fused products and wide registers."""
    models = [f"LogisticRegression(solver={solver!r})" for solver in ("newton", "gd", "cd")]
    here = printed(tmp_path, 20_000, models)
    assert here[-1] == "True"
    assert here == printed(tmp_path, 20_000, models, NUMBA_CPU_NAME="generic", NUMBA_CPU_FEATURES="")


def test_results_do_not_depend_on_what_is_compiled(monkeypatch):
    from discreet import LogisticRegression
    from discreet.privacy.random import generator

    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 6))
    y = X[:, 0] + rng.logistic(size=500) > 0

    def bits():
        with pytest.warns(generator.InsecureRandomnessWarning):
            return LogisticRegression(random_state=0, classes=[False, True]).fit(X, y).coef_

    few = bits()
    monkeypatch.setattr(small_rows, "SMALL", 0)
    monkeypatch.setattr(generator, "FEW_DRAWS", 0)
    assert same(few, bits())
