"""A private search against one that composes its trials: twenty candidates for the penalty, the same budget.

The mean accuracy and log-loss on rows that no search has seen, and what one trial has of the mu of the whole budget.
The defaults of `refit` and `search_share` were chosen with these tables in view.
"""

from __future__ import annotations

import numpy as np
from framework import Cell, Experiment
from framework.loaded import loaded
from framework.markdown import table
from framework.registry import datasets_of
from sklearn.base import clone
from sklearn.metrics import log_loss

from discreet import LogisticRegression
from discreet.model_selection import PrivateGridSearch, PrivateSearchCV
from discreet.privacy import accounting

NAME = "private_search"
EPSILON, SPLITS = 1.0, 10
CANDIDATES = {"alpha": [float(alpha) for alpha in np.geomspace(1e-5, 100.0, 20)]}
MU = "mu of a trial"  # a cell of plans alone


def trials(refit):
    return lambda model, shared: PrivateSearchCV(model, CANDIDATES, n_iter=20, **refit, **shared)


SEARCHES = {
    "no search": lambda model, shared: clone(model).set_params(**shared),
    "`PrivateGridSearch`, all trials composed": lambda model, shared: PrivateGridSearch(model, CANDIDATES, **shared),
    "`PrivateSearchCV`": trials({}),
    "`refit=True`, `search_share=0.5`": trials({"refit": True, "search_share": 0.5}),
    "`refit=True`, `search_share=0.2`": trials({"refit": True, "search_share": 0.2}),
}


def cells(quick):
    yield Cell(NAME, "no rows", MU, {"epsilon": EPSILON})
    for dataset in datasets_of(NAME)[: 1 if quick else None]:
        for seed in range(1 if quick else SPLITS):
            for search in SEARCHES:
                yield Cell(NAME, dataset.name, search, {"epsilon": EPSILON}, seed)


def measure(cell):
    if cell.method == MU:
        return shares_of_mu(cell.setting["epsilon"])
    X, y = loaded(cell.dataset)
    order = np.random.default_rng(cell.seed).permutation(y.size)
    fit, out = np.split(order, [3 * y.size // 4])
    search = SEARCHES[cell.method](LogisticRegression(classes=[-1, 1]), {**cell.setting, "random_state": cell.seed})
    search.fit(X[fit], y[fit])
    loss = log_loss(y[out], search.predict_proba(X[out]), labels=[-1, 1])
    return {"accuracy": float(search.score(X[out], y[out])), "log_loss": float(loss)}


def shares_of_mu(epsilon):
    """The mu of one trial over that of the whole budget, for the grid and for the search."""
    model, shared = LogisticRegression(classes=[-1, 1]), {"epsilon": epsilon, "delta": 1e-6}
    grid = PrivateGridSearch(model, CANDIDATES, **shared).plan(1_000, 10).trials[0].event
    search = PrivateSearchCV(model, CANDIDATES, n_iter=20, **shared).plan(1_000, 10).trial_events[0]
    whole = accounting.gaussian_mu(epsilon, 1e-6)
    return {name: accounting.mu_of(event, "replace") / whole for name, event in (("grid", grid), ("search", search))}


def page(results, folder):
    """Means of the splits with their standard errors."""
    shown = datasets_of(NAME)
    parts = []
    for title, what in (("Log-loss:", "log_loss"), ("Accuracy:", "accuracy")):
        rows = [[search, *(figure(results, one.name, search, what) for one in shown)] for search in SEARCHES]
        parts += [title, table(["", *(one.label for one in shown)], rows).replace("|  |", "| |", 1)]
    return "\n\n".join(parts)


def figure(results, dataset, search, what):
    found = [numbers[what] for _, numbers in results.select(dataset=dataset, method=search)]
    return f"{np.mean(found):.3f} +- {np.std(found) / np.sqrt(len(found)):.3f}" if found else ""


private_search = Experiment(
    NAME,
    "private_search",
    "a private search beside one that composes its trials: twenty candidates, the same budget",
    cells,
    measure,
    page,
    file="../model_selection.md",
)
