"""Populations whose coefficients are known, for the coverage of intervals: `load(rng)` draws a table anew.

`facts`: the true coefficients (the intercept last), rows, budget, what is declared, and for designs of the literature
the widths and the coverage that the papers print. Their correlation, variance and distribution are those with which
least squares and maximum likelihood have the widths that the papers print for them.
"""

from __future__ import annotations

import functools

import numpy as np
from framework import Dataset
from scipy.special import expit

from discreet import Budget

SIZES = [  # epsilon, rows, columns
    (0.5, 2_000, 3), (0.5, 50_000, 10), (1.0, 2_000, 3), (1.0, 10_000, 10),
    (1.0, 50_000, 10), (1.0, 50_000, 30), (3.0, 500, 3), (3.0, 50_000, 30),
]  # fmt: skip
INTERCEPT = 0.5


def coefficients(columns):
    """Of both signs, a third of them 0: there the size of tests is counted."""
    coef = np.linspace(1.0, -1.0, columns) / np.sqrt(columns)
    coef[1::3] = 0.0
    return np.append(coef, INTERCEPT)


def rows_of(rng, rows, columns, correlation, tails):
    """Columns of unit variance: uniform within +-sqrt(3), normal, or Student's with 4 degrees of freedom."""
    if tails == "declared":
        Z = rng.uniform(-np.sqrt(3.0), np.sqrt(3.0), (rows, columns))
    else:
        Z = rng.normal(size=(rows, columns)) if tails == "normal" else rng.standard_t(4, (rows, columns)) / np.sqrt(2.0)
    return Z @ np.linalg.cholesky(correlation + (1.0 - correlation) * np.eye(columns)).T


def errors_of(rng, rows, kind):
    """Errors of variance 1 and mean 0."""
    if kind == "heavy":
        return rng.standard_t(3, rows) / np.sqrt(3.0)
    if kind == "skewed":
        return rng.exponential(size=rows) - 1.0
    return rng.normal(size=rows)


def drawn(loss, rows, columns, correlation, tails, errors, rng):
    X, truth = rows_of(rng, rows, columns, correlation, tails), coefficients(columns)
    scores = X @ truth[:-1] + truth[-1]
    if loss == "logistic":
        return X, (rng.random(rows) < expit(scores)).astype(int)
    return X, scores + errors_of(rng, rows, errors)


def table(experiment, loss, epsilon, rows, columns, correlation=0.3, tails="declared", errors="normal"):
    kinds = f"{tails} columns, {errors} errors, correlation {correlation:g}"
    name = f"{loss}, epsilon {epsilon:g}, {rows:,} x {columns}, {kinds}"
    declared = {"bounds": (-6.0, 6.0)} | ({} if loss == "logistic" else {"y_bounds": (-12.0, 12.0)})
    facts = {
        "truth": coefficients(columns),
        "epsilon": epsilon,
        "declared": declared if tails == "declared" else {},
        "short": (loss, f"{epsilon:g}", f"{rows:,}", f"{columns}", tails, errors, f"{correlation:g}"),
        "rows": rows,
    }
    load = functools.partial(drawn, loss, rows, columns, correlation, tails, errors)
    return Dataset(name, "generated", load, loss == "logistic", (experiment,), facts=facts)


core = [
    table("inference", loss, *size, tails=tails, errors=errors)
    for loss in ("linear", "logistic")
    for size in SIZES
    for tails, errors in (("declared", "normal"), ("heavy", "heavy"))
]
harder = [
    table("inference-harder", loss, 1.0, rows, columns, **how)
    for rows, columns, how in (
        (2_000, 3, {"correlation": 0.9, "tails": "normal"}),
        (10_000, 10, {"correlation": 0.8, "tails": "normal"}),
        (10_000, 5, {"tails": "normal", "errors": "skewed"}),
    )
    for loss in ("linear", "logistic")
    if loss == "linear" or how.get("errors") is None
]


def avella_medina(rows, rng):
    """An intercept and three columns correlated by .7; errors of variance 2."""
    truth = np.array([1.0, -0.5, 0.5, 1.0])
    X = rng.normal(size=(rows, 3)) @ np.linalg.cholesky(0.7 + 0.3 * np.eye(3)).T
    return X, X @ truth[:3] + truth[3] + np.sqrt(2.0) * rng.normal(size=rows)


def binagg(rng):
    """Three columns uniform on (0, 10)."""
    X = rng.uniform(0.0, 10.0, (2_000, 3))
    return X, X @ np.array([1.5, -2.0, 0.5]) + rng.normal(size=2_000)


def awan(rows, rng):
    """One column, 2 Beta(1/2, 1/2) - 1, with slope 2."""
    X = 2.0 * rng.beta(0.5, 0.5, (rows, 1)) - 1.0
    return X, (rng.random(rows) < expit(0.5 + 2.0 * X[:, 0])).astype(int)


def design(name, load, truth, labels, budget, printed, declared=None):
    facts = {"truth": np.array(truth), "epsilon": budget, "printed": printed, "declared": declared or {}}
    return Dataset(name, "generated", load, labels, ("inference-designs",), facts=facts)


designs = [
    *(
        design(f"Avella-Medina, {n:,} rows, mu 1", functools.partial(avella_medina, n), (1.0, -0.5, 0.5, 1.0), False,
               Budget.gdp(1.0), printed)
        for n, printed in ((250, ".83 at 1.2-1.8"), (1_000, ".93 at .29-.48"), (4_000, ".94 at .12-.18"))
    ),
    *(
        design(f"BinAgg, mu {mu:g}", binagg, (1.5, -2.0, 0.5, 0.0), False, Budget.gdp(mu), printed)
        for mu, printed in ((0.5, ".92-.93 at .518"), (1.0, ".92-.93 at .291"), (2.0, ".92-.93 at .181"),
                            (5.0, ".92-.93 at .103"))
    ),
    *(
        design(f"Awan and Wang, {n:,} rows, epsilon 1", functools.partial(awan, n), (2.0, 0.5), True, 1.0, printed,
               {"bounds": (-1.0, 1.0)})
        for n, printed in ((1_000, "DP-CI-ERM .824 at .77, repro samples .994 at .97"),
                           (2_000, "DP-CI-ERM .862 at .465, repro samples .996 at .615"))
    ),
]  # fmt: skip
