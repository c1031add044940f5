"""Planned harm beside the harm that private fits do. Run: .venv/bin/python benchmarks/planned_harm.py.

The table is made up: normal columns that do not depend on the group, labels with log-odds of standard deviation 2.
It prints the rows of the two tables in docs/choose_epsilon.md.
"""

from __future__ import annotations

import math
import warnings

import numpy as np
from sklearn.linear_model import LogisticRegression as PlainRegression
from stored_tables import command

from discreet import LogisticRegression
from discreet.fairness import NormalMargins, harm_of
from discreet.solvers.output_perturbation import OutputPerturbation

ROWS, COLUMNS, SHARE, FITS, RIDGE = 45_000, 10, 1 / 3, 15, 0.03
CASES = [("output-perturbation", epsilon) for epsilon in (0.2, 1.0, 5.0)] + [("newton", 0.2), ("newton", 1.0)]


RIDGES = (0.01, 0.03, 0.1, 1.0)


def noise_free(solver, X, y, ridge=RIDGE):
    """The scores of the noise-free model: for output perturbation with its ridge and rows that are as short."""
    if solver == "newton":
        return PlainRegression(C=1.0 / (1e-5 * ROWS), tol=1e-10).fit(X, y).decision_function(X)
    scaled = (X - X.mean(axis=0)) / X.std(axis=0)
    shortening = np.minimum(1.0, math.sqrt(COLUMNS) / np.linalg.norm(scaled, axis=1))[:, None]
    short, full = (np.column_stack([rows, np.ones(ROWS)]) for rows in (scaled * shortening, scaled))
    plain = PlainRegression(C=1.0 / (ridge * ROWS), fit_intercept=False, tol=1e-10)
    return full @ plain.fit(short, y).coef_.ravel()


def opportunity(scores, y, small):
    """P(correct | favourable, small group) - P(correct | favourable)."""
    right = scores > 0.0
    return right[(y == 1) & small].mean() - right[y == 1].mean()


def changed_share(solver, epsilon, X, y, twin):
    """The mean part of the predictions that differ from those of the noise-free model."""
    models = [LogisticRegression(epsilon=epsilon, solver=solver, classes=[0, 1], random_state=k) for k in range(FITS)]
    return np.mean([((model.fit(X, y).decision_function(X) > 0.0) != (twin > 0.0)).mean() for model in models])


def print_ridges(X, y, groups):
    """What a ridge does to scores, and to a plan that assumes those of the population."""
    print("| ridge | deviation of the noise-free scores | predictions changed | planned with this | planned with 2 |")
    for ridge in RIDGES:
        solver = OutputPerturbation(ridge=ridge, row_norm=1.0)
        twin = noise_free(solver.name, X, y, ridge)
        model, planned = LogisticRegression(epsilon=1.0, solver=solver, classes=[0, 1]), []
        for deviation in (float(twin.std()), 2.0):
            margins = NormalMargins(float(y.mean()), deviation)
            try:
                harm = harm_of(model, ROWS, COLUMNS, groups, margins=margins, mode="expected")
                planned.append(f"{harm.worst.changed:.4f}")
            except ValueError:
                planned.append("refused")
        measured = changed_share(solver, 1.0, X, y, twin)
        print(f"| {ridge:g} | {twin.std():.2f} | {measured:.4f} | {' | '.join(planned)} |")


def main() -> None:
    command(__doc__, other="generated").parse_args()
    warnings.simplefilter("ignore")  # seeds
    rng = np.random.default_rng(0)
    small = rng.random(ROWS) < SHARE
    X, direction = rng.normal(size=(ROWS, COLUMNS)), rng.normal(size=COLUMNS)
    y = (X @ (2.0 * direction / np.linalg.norm(direction)) + rng.logistic(size=ROWS) > 0.0).astype(int)
    groups = {"large": int((~small).sum()), "small": int(small.sum())}
    print(
        "| solver | epsilon | predictions changed, mean | planned | change of the smaller group, mean | bound on it |"
    )
    for name, epsilon in CASES:
        solver = OutputPerturbation(ridge=RIDGE, row_norm=1.0) if name != "newton" else name
        twin = noise_free(name, X, y)
        models = [
            LogisticRegression(epsilon=epsilon, solver=solver, classes=[0, 1], random_state=k) for k in range(FITS)
        ]
        scores = [model.fit(X, y).decision_function(X) for model in models]
        changed = np.mean([((found > 0.0) != (twin > 0.0)).mean() for found in scores])
        moved = np.mean([abs(opportunity(found, y, small) - opportunity(twin, y, small)) for found in scores])
        margins = NormalMargins(float(y.mean()), float(twin.std()))
        planned = harm_of(models[0], ROWS, COLUMNS, groups, margins=margins, mode="expected").worst
        print(f"| {name} | {epsilon:g} | {changed:.4f} | {planned.changed:.4f} | {moved:.4f} | {planned.change:.4f} |")
    print_ridges(X, y, groups)


if __name__ == "__main__":
    main()
