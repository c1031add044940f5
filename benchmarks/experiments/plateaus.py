"""Figures 2.2.1 and 2.2.2 of the thesis: methods without privacy. Plateaus of SGD, and CD against GD on quadratics.

The thesis prints neither its table nor its matrices: the table here is generated, and the matrices have the printed
condition numbers.
"""

from __future__ import annotations

import math

import numpy as np
from framework import Cell, Experiment, plots
from framework.markdown import number, table
from framework.problems import PaperProblem

from discreet import Budget, Problem
from discreet.data.public import Public
from discreet.privacy.random.generator import seeded_generator
from discreet.problem.losses import Squared
from discreet.problem.penalties import L2
from discreet.solvers import CoordinateDescent, GradientDescent, StochasticGradientDescent

NAME = "plateaus"
STEPS = {
    "GD": 1.0,
    "SGD, step 1": 1.0,
    "SGD, step 0.1": 0.1,
    "SGD, step 0.01": 0.01,
}  # in units of 1/beta; SGD's of 1/8
PASSES, RUNS = 40, 5
KAPPAS = (37.6, 2.7)
ITERATIONS = 12


def cells(quick):
    for method in STEPS:
        yield Cell(NAME, "ridge", method)
    for kappa in KAPPAS:
        for method in ("GD", "CD"):
            yield Cell(NAME, f"quadratic, kappa {kappa}", method, {"kappa": kappa})


def measure(cell):
    if "kappa" in cell.setting:
        return {"points": path(cell.method, cell.setting["kappa"])}
    problem = ridge()
    ways = [gaps(problem, cell.method, seed) for seed in range(1 if cell.method == "GD" else RUNS)]
    table = np.array(ways)
    return {"passes": list(range(1, PASSES + 1)), **{f: getattr(table, f)(axis=0) for f in ("min", "mean", "max")}}


def ridge():
    """1,000 x 20 rows with columns of uneven size, least squares with a weak L2 penalty."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1_000, 20)) * np.geomspace(1.0, 0.2, 20)
    y = X @ rng.standard_normal(20) + 0.5 * rng.standard_normal(1_000)
    return PaperProblem("ridge", X, y, Problem(Squared(), L2(1e-3), fit_intercept=False))


def gaps(problem, method, seed):
    """F - F* after each pass, by runs of 1 to PASSES passes with the same draws."""
    public = declared(problem)
    scale = problem.largest**2 * problem.columns / problem.beta  # the solver's unit of a step is another bound
    found = []
    for passes in range(1, PASSES + 1):
        if method == "GD":
            solver = GradientDescent(steps=passes, step=STEPS[method] * scale, average=False, scale_share=0.0)
        else:
            step = STEPS[method] * scale / 8.0
            solver = StochasticGradientDescent(
                passes=passes, sampler="single", step=step, average=False, scale_share=0.0
            )
        found.append(value(problem, solver, public, seed) - problem.best.value)
    return [max(gap, 1e-16) for gap in found]


def path(method, kappa):
    """The points of GD or CD on w'Aw/2, whose eigenvectors lie at 15 degrees, from the same start."""
    angle = math.radians(15.0)
    turn = np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])
    matrix = turn @ np.diag([kappa, 1.0]) @ turn.T
    start = np.array([1.0, 1.6])
    root = np.linalg.cholesky(matrix).T * math.sqrt(2.0)  # two rows: X'X / 2 = A
    problem = PaperProblem("quadratic", root, root @ -start, Problem(Squared(), fit_intercept=False))
    points = [start.tolist()]
    for steps in range(1, ITERATIONS + 1):
        if method == "CD":
            moments = tuple(float(m) for m in np.diag(matrix))
            solver = CoordinateDescent(passes=steps / 2.0, clip=1e9, smoothness=moments, average=False, outer=1)
        else:
            length = problem.largest**2 * problem.columns / kappa
            solver = GradientDescent(steps=steps, step=length, average=False, scale_share=0.0)
        points.append((start + found(problem, solver, declared(problem), 0)).tolist())
    return points


def declared(problem):
    largest = float(np.abs(problem.y).max())
    return Public.of(
        problem.rows,
        problem.columns,
        bounds=(-problem.largest, problem.largest),
        y_bounds=(-largest, largest),
    )


def found(problem, solver, public, seed):
    plan = solver.plan(problem.problem, public, Budget(math.inf, 0.5))
    return solver.solve(problem.problem, problem.data, plan, seeded_generator(seed)).w


def value(problem, solver, public, seed):
    return problem.problem.objective(problem.X, problem.y, found(problem, solver, public, seed))


COLOURS = ("black", "#d62728", "#ff7f0e", "#2ca02c")


def page(results, folder):
    with plots.figure(folder / "papers-plateaus.png", 1, 3, (3.7, 3.3)) as axes:
        for method, colour in zip(STEPS, COLOURS, strict=True):
            numbers = results.one(dataset="ridge", method=method)
            if numbers is not None:
                plots.curve(axes[0, 0], numbers["passes"], numbers, {"color": colour, "label": method})
        axes[0, 0].set(yscale="log", xlabel="passes", ylabel="F - F*")
        axes[0, 0].set_title("Figure 2.2.1: plateaus", fontsize=10)
        for axis, kappa in zip(axes[0, 1:], KAPPAS, strict=True):
            for method, colour, marker in (("CD", "#9467bd", "+"), ("GD", "black", "x")):
                numbers = results.one(kappa=kappa, method=method)
                if numbers is not None:
                    points = np.array(numbers["points"])
                    axis.plot(*points.T, color=colour, marker=marker, lw=1, label=f"{method}, quadratic")
            axis.plot([0.0], [0.0], "r*", ms=9)
            axis.set_title(f"Figure 2.2.2: condition number {kappa}", fontsize=10)
    rows = []
    for kappa in KAPPAS:
        for method in ("CD", "GD"):
            numbers = results.one(kappa=kappa, method=method)
            if numbers is not None:
                left = [float(np.linalg.norm(point)) for point in numbers["points"]]
                rows.append([f"{kappa}", method, *(number(left[k] / left[0]) for k in (2, 4, 8, 12))])
    head = ["condition number", "method", *(f"after {k} steps" for k in (2, 4, 8, 12))]
    return "![Plateaus](papers-plateaus.png)\n\nThe distance from the optimum, over that at the start:\n\n" + table(
        head, rows
    )


plateaus = Experiment(
    NAME,
    "papers",
    "without privacy: plateaus of SGD, CD against GD on quadratics (Figures 2.2.1 and 2.2.2)",
    cells,
    measure,
    page,
    file="papers-others.md",
    order=5,
    version=2,
)
