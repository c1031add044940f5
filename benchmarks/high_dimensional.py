"""The thesis's high-dimensional problems: greedy against plain coordinate descent and stochastic descent.

Run: make bench-high-dimensional, or this file with names of problems. As in the thesis, step, clipping and number of
passes are tuned on the objective itself, which is not private and flatters every method alike; smoothness constants
are taken as known. The noise is the correct one (docs/guarantees/greedy-cd.md), not the printed one.

Regularisation strengths are not printed anywhere. L1 strengths are chosen so that the error at w = 0 is the printed
one of the methods that never left 0 (square 0.755, madelon 0.012, dorothea 0.78); california's so that the optimum has
the printed number of non-zeros; for log1 and log2 nothing is printed and several strengths are shown.
"""

from __future__ import annotations

import math
import sys
import time
import warnings

import numpy as np
import scipy.sparse as sp
from stored_tables import command, labelled, load_benchmark

from discreet import Budget, Problem
from discreet.data.public import Public
from discreet.data.rows import Data
from discreet.data.synthetic import quasi_sparse_labels, sparse_regression, standardised
from discreet.privacy.random.generator import secure_generator
from discreet.problem.losses import Logistic, Squared
from discreet.problem.penalties import L1, L2
from discreet.solvers import CoordinateDescent, GreedyCoordinateDescent, StochasticGradientDescent

EPSILON = 1.0
HALVING = ((0.2, 4), (0.02, 15))  # this part of all settings gets so many more runs, and again
FINAL_RUNS = 10  # fresh ones, for the best
METHODS = ("greedy-cd", "cd", "sgd", "sgd, single rows")  # the last is the thesis's, with the noise that it needs


def signs(y):
    return 2.0 * y - 1.0


def with_ones(X):
    return np.column_stack([X, np.ones(len(X))])


def problems():
    """name -> X, y, loss, penalty (or the error at 0, or the number of non-zeros, to match), error in the thesis."""
    X, y, _ = sparse_regression()
    yield "square", X, y, Squared(), 0.755, 0.35
    for spread, name in ((1.0, "log1"), (2.0, "log2")):
        X, y, _ = quasi_sparse_labels(spread=spread)
        for strength in (1e-3, 1e-2, 1e-1):
            yield f"{name} alpha={strength:g}", X, y, Logistic(), L2(strength), None
    X, y = load_benchmark("madelon")
    yield labelled("madelon-l1", "madelon"), with_ones(standardised(X)), signs(y), Logistic(), 0.012, 0.0015
    X, y = load_benchmark("dorothea")
    yield labelled("dorothea"), X, signs(y), Logistic(), 0.78, 0.64
    X, y = load_benchmark("california")
    yield labelled("california"), standardised(X), y - y.mean(), Squared(), 3, 0.00056


def matched(X, y, loss, wanted):
    """The L1 strength whose optimum has the wanted number of non-zeros (int) or error at 0 (float)."""
    high = float(np.abs(X.T @ loss.slope(np.zeros(len(y)), y)).max()) / len(y)
    low = 0.02 * high
    for _ in range(25):
        problem = Problem(loss, L1(math.sqrt(low * high)), fit_intercept=False)
        best = problem.optimum(X, y, tolerance=1e-6)
        found = (
            np.count_nonzero(np.abs(best.coef) > 1e-10)
            if isinstance(wanted, int)
            else error_at_zero(problem, X, y, best)
        )
        if found == wanted or high / low < 1.001:
            break
        low, high = (problem.penalty.alpha, high) if found > wanted else (low, problem.penalty.alpha)
    return problem.penalty


def error_at_zero(problem, X, y, best):
    return (problem.objective(X, y, np.zeros(X.shape[1])) - best.value) / best.value


def column_squares(X):
    squares = X.multiply(X).mean(axis=0) if sp.issparse(X) else (X**2).mean(axis=0)
    return np.asarray(squares).ravel()


def error(problem, X, y, best, solver, plan, runs):
    found = []
    for _ in range(runs):
        w = solver.solve(problem, Data(X, y), plan, secure_generator()).w
        found.append((problem.objective(X, y, w) - best.value) / best.value)
    return float(np.mean(found)), w


def candidates(name, moments, n):
    """The thesis's grids, thinned: clip, step and passes (steps of the greedy method are passes)."""
    known = tuple(float(m) for m in moments)
    clips = np.geomspace(1e-2, 1e5, 22)
    if name == "greedy-cd":
        for passes in (1, 2, 4, 7, 10, 15, 20):
            for step in (0.2154, 0.4642, 1.0, 2.154, 4.642):
                for clip in clips:
                    yield GreedyCoordinateDescent(steps=passes, step=step, clip=clip, smoothness=known)
    elif name == "cd":
        for passes in (0.001, 0.01, 0.1, 1, 3, 10):
            for step in (0.1, 1.0, 2.154):
                for clip in clips:
                    yield CoordinateDescent(
                        passes=passes,
                        step=step,
                        clip=clip,
                        smoothness=known,
                        average=False,
                        outer=1,
                        sampling="uniform",
                    )
    else:
        batches = {"batch_size": max(1, n // 20)} if name == "sgd" else {"sampler": "single"}
        for passes in (0.01, 0.1, 1, 5):
            for step in (0.1, 1.0, 10.0, 100.0, 1000.0):
                for clip in clips[::2]:
                    yield StochasticGradientDescent(
                        passes=passes, step=step, clip=clip, average=False, scale_share=0.0, **batches
                    )


def tune(problem, X, y, best, name, moments, seconds):
    """The best of the grid on the objective; returns settings and its mean error over fresh runs."""
    n, p = X.shape
    bounded = {}
    if name.startswith("sgd"):
        largest = float(abs(X).max())
        bounded = {"low": np.full(p, -largest), "high": np.full(p, largest)}
        bounded |= {"target_low": float(y.min()), "target_high": float(y.max())}
    public = Public(n, p, sparse=sp.issparse(X), **bounded)
    budget = Budget(EPSILON, 1.0 / n**2)
    settings = list(candidates(name, moments, n))
    np.random.default_rng(0).shuffle(settings)
    results, start = [], time.perf_counter()
    for solver in settings:
        plan = solver.plan(problem, public, budget)
        results.append([error(problem, X, y, best, solver, plan, 1)[0], 1, solver, plan])
        if time.perf_counter() - start > seconds:
            break
    tried = len(results)
    for kept, runs in HALVING:
        results = sorted(results, key=lambda r: r[0])[: max(5, round(kept * tried))]
        for result in results:
            mean, done, solver, plan = result
            again = error(problem, X, y, best, solver, plan, runs)[0]
            result[:2] = (mean * done + again * runs) / (done + runs), done + runs
    _, _, solver, plan = min(results, key=lambda r: r[0])
    final, w = error(problem, X, y, best, solver, plan, FINAL_RUNS)
    return solver, final, w, tried, len(settings)


def describe(solver):
    keys = ("steps", "passes", "step", "clip")
    return ", ".join(f"{k} {getattr(solver, k):g}" for k in keys if getattr(solver, k, None) is not None)


def main():
    warnings.simplefilter("ignore")
    parser = command(__doc__, "madelon", "dorothea", "california", other="square, log1 and log2 are generated")
    parser.add_argument("problems", nargs="*", help="some of square, log1, log2, madelon-l1, dorothea, california")
    parser.add_argument("--seconds", type=float, default=30.0, help="time for tuning each method on each problem")
    wanted = parser.parse_args()
    print("| problem | non-zeros | error at 0 | method | error | thesis | correct / wrong support | settings | tried |")
    print("|---|---|---|---|---|---|---|---|---|", flush=True)
    for name, X, y, loss, penalty, thesis in problems():
        if wanted.problems and name.split()[0] not in wanted.problems:
            continue
        penalty = penalty if isinstance(penalty, L2) else matched(X, y, loss, penalty)  # noqa: PLW2901
        problem = Problem(loss, penalty, fit_intercept=False)
        best = problem.optimum(X, y, tolerance=1e-9)
        support = np.abs(best.coef) > 1e-10
        zero = error_at_zero(problem, X, y, best)
        moments = loss.smoothness * np.maximum(column_squares(X), 1e-12)
        print(f"{name}: {penalty}, certificate {best.certificate}", file=sys.stderr)
        for method in METHODS:
            solver, final, w, tried, total = tune(problem, X, y, best, method, moments, wanted.seconds)
            right, wrong = int((support & (w != 0)).sum()), int((~support & (w != 0)).sum())
            printed = "" if thesis is None or method != "greedy-cd" else f"{thesis:g}"
            print(
                f"| {name} | {support.sum()} | {zero:.4g} | {method} | {final:.2e} | {printed} | {right} / {wrong} "
                f"| {describe(solver)} | {tried} of {total} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
