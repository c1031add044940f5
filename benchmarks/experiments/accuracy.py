"""Scores on held-out rows: default estimators, nothing tuned, against scikit-learn without privacy."""

from __future__ import annotations

import time

import numpy as np
from framework import Cell, Experiment
from framework.loaded import loaded
from framework.markdown import table
from framework.registry import datasets, datasets_of
from sklearn import linear_model
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from discreet import LogisticRegression, Ridge

NAME = "accuracy"
EPSILONS = (0.3, 1.0, 3.0, 10.0)
SPLITS = 5
SOLVERS = ("cd", "sgd", "gd", "newton")
REFERENCE = "scikit-learn"


def cells(quick):
    for dataset in datasets_of(NAME)[: 2 if quick else None]:
        for seed in range(1 if quick else SPLITS):
            yield Cell(NAME, dataset.name, REFERENCE, {}, seed)
            for solver in SOLVERS:
                for epsilon in EPSILONS[1:2] if quick else EPSILONS:
                    yield Cell(NAME, dataset.name, solver, {"epsilon": epsilon}, seed)


def measure(cell):
    """The score, with fresh noise, of the split of this seed."""
    dataset = datasets()[cell.dataset]
    X, y = loaded(cell.dataset)
    train, test, y_train, y_test = train_test_split(X, y, test_size=0.3, random_state=cell.seed)
    start = time.perf_counter()
    if cell.method == REFERENCE:
        model = reference(dataset.classification)
    else:
        kind, extra = (LogisticRegression, {"classes": [-1, 1]}) if dataset.classification else (Ridge, {})
        model = kind(solver=cell.method, **cell.setting, **extra, **dataset.facts.get("declared", {}))
    model.fit(train, y_train)
    return {"seconds": time.perf_counter() - start, "score": float(model.score(test, y_test)), "shape": list(X.shape)}


def reference(classify):
    model = linear_model.LogisticRegression(C=1e3, max_iter=5000) if classify else linear_model.Ridge(1e-3)
    return make_pipeline(StandardScaler(), model)


def page(results, folder):
    """The table of the README: mean and deviation over the splits."""
    rows = []
    for dataset in datasets_of(NAME):
        for solver in SOLVERS:
            scores = {e: scores_of(results, dataset, solver, epsilon=e) for e in EPSILONS}
            if not any(scores.values()):
                continue
            exact = scores_of(results, dataset, REFERENCE)
            size = next(n["shape"] for _, n in results.select(dataset=dataset.name))
            fields = [f"{np.mean(s):.3f} ± {np.std(s):.3f}" if s else "" for s in scores.values()]
            shown = f"{np.mean(exact):.3f}" if exact else ""
            rows.append([dataset.label, f"{size[0]} x {size[1]}", solver, *fields, shown])
    return table(["table", "rows x columns", "solver", *(f"eps {e:g}" for e in EPSILONS), "scikit-learn"], rows)


def scores_of(results, dataset, method, **setting):
    return [numbers["score"] for _, numbers in results.select(dataset=dataset.name, method=method, **setting)]


accuracy = Experiment(
    NAME,
    "accuracy",
    "scores on held-out rows for several epsilons, with default settings, beside scikit-learn",
    cells,
    measure,
    page,
    stored=("electricity", "adult", "acsincome_co", "california"),
)
