"""Accuracy for a budget: default estimators, nothing tuned, nothing declared, against scikit-learn.

Run: make bench-accuracy. Prints one line for each table and solver: mean and deviation over five splits,
with fresh noise.
"""

from __future__ import annotations

import time
import warnings

import numpy as np
from sklearn import linear_model
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from stored_tables import command, labelled, load_benchmark

from discreet import LogisticRegression, Ridge
from discreet.demo import declared_bounds

EPSILONS = (0.3, 1.0, 3.0, 10.0)
RUNS = 5
SOLVERS = ("cd", "sgd", "gd", "newton")
STORED = {"electricity": True, "adult": True, "acsincome_co": True, "california": False}  # whether a classification


def tables():
    """Name, X, y, whether it is a classification, and declared bounds if any."""
    X, y = load_breast_cancer(return_X_y=True)
    yield "breast cancer, declared bounds", X, y, True, {"bounds": declared_bounds()}
    X, y = load_diabetes(return_X_y=True)
    yield "diabetes, declared bounds", X, y, False, {"bounds": (-0.2, 0.2), "y_bounds": (0.0, 350.0)}
    for name, classify in STORED.items():
        yield f"{labelled(name)}, nothing declared", *load_benchmark(name), classify, {}


def reference(X, y, classify):
    model = linear_model.LogisticRegression(C=1e3, max_iter=5000) if classify else linear_model.Ridge(1e-3)
    return make_pipeline(StandardScaler(), model).fit(X, y)


def scores(X, y, classify, options, epsilon, solver):
    found, seconds = [], []
    for run in range(RUNS):
        train, test, y_train, y_test = train_test_split(X, y, test_size=0.3, random_state=run)
        kind = LogisticRegression if classify else Ridge
        extra = {"classes": [0, 1]} if classify else {}
        start = time.perf_counter()
        model = kind(epsilon=epsilon, solver=solver, **options, **extra).fit(train, y_train)
        seconds.append(time.perf_counter() - start)
        found.append(model.score(test, y_test))
    return np.mean(found), np.std(found), np.median(seconds)


def main():
    parser = command(__doc__, *STORED, other="breast cancer and diabetes of scikit-learn")
    parser.add_argument("--solvers", nargs="+", default=SOLVERS, help=f"default: {' '.join(SOLVERS)}")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    print("| table | rows x columns | solver | " + " | ".join(f"eps {e:g}" for e in EPSILONS), end="")
    print(" | scikit-learn | seconds |\n" + "|---" * (len(EPSILONS) + 5) + "|")
    for name, X, y, classify, options in tables():
        baseline = []
        for run in range(RUNS):
            train, test, y_train, y_test = train_test_split(X, y, test_size=0.3, random_state=run)
            baseline.append(reference(train, y_train, classify).score(test, y_test))
        for solver in asked.solvers:
            cells = [scores(X, y, classify, options, epsilon, solver) for epsilon in EPSILONS]
            numbers = " | ".join(f"{mean:.3f} ± {std:.3f}" for mean, std, _ in cells)
            size = f"{X.shape[0]} x {X.shape[1]}"
            print(
                f"| {name} | {size} | {solver} | {numbers} | {np.mean(baseline):.3f} | {cells[1][2]:.2f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
