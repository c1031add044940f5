"""Accuracy on the last 30 % of the rows after a stream, or a fit, of the others. The regret is in regret.py."""

from __future__ import annotations

import numpy as np
from framework import Cell, Experiment
from framework.markdown import spread, table
from framework.registry import datasets, datasets_of

from discreet import LogisticRegression

NAME = "stream-accuracy"
RUNS = 3
CHUNK = 1_000
METHODS = ("stream, length declared", "stream, length unknown", "fit, ftrl", "fit, sgd", "fit, cd")


def cells(quick):
    for dataset in datasets_of(NAME)[: 1 if quick else None]:
        for method in METHODS:
            for seed in range(1 if quick else RUNS):
                yield Cell(NAME, dataset.name, method, {}, seed)


def measure(cell):
    """Bounds are read from the table as if they were public; noise is fresh."""
    X, y = datasets()[cell.dataset].load()
    order = np.random.default_rng(0).permutation(len(y))
    X, y, cut = X[order], y[order], int(0.7 * len(y))
    options = {"epsilon": 1.0, "classes": [-1, 1], "bounds": (X.min(axis=0), X.max(axis=0))}
    if cell.method.startswith("fit"):
        model = LogisticRegression(**options, solver=cell.method.partition(", ")[2]).fit(X[:cut], y[:cut])
    else:
        known = {"public_n": cut} if cell.method.endswith("declared") else {"delta": 1.0 / cut**2}
        model = LogisticRegression(**options, **known)
        for start in range(0, cut, CHUNK):
            end = min(cut, start + CHUNK)
            model.partial_fit(X[start:end], y[start:end])
    return {"score": float(model.score(X[cut:], y[cut:]))}


def page(results, folder):
    rows = []
    for dataset in datasets_of(NAME):
        found = [[n["score"] for _, n in results.select(dataset=dataset.name, method=method)] for method in METHODS]
        rows.append([dataset.label, *(spread(scores) if scores else "" for scores in found)])
    return table(["table", *METHODS], rows)


stream_accuracy = Experiment(
    NAME,
    "streams",
    "accuracy of streams beside fits of the whole table",
    cells,
    measure,
    page,
    stored=("adult", "electricity"),
)
