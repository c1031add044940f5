"""Tables with several classes, as numbers from 0 on: of scikit-learn, and drawn."""

from __future__ import annotations

import functools

import numpy as np
from framework import Dataset
from sklearn import datasets

SHIPPED = {  # name: loader, experiments
    "digits, ten classes": ("digits", ("classes", "choice")),
    "wine, three classes": ("wine", ("classes", "choice")),
    "iris, three classes": ("iris", ("choice",)),
}
SIZES = ((5, 3), (30, 4), (100, 3))  # columns and classes of the tables drawn from a softmax model
SIX = {"n_informative": 15, "n_redundant": 10, "n_classes": 6, "n_clusters_per_class": 1}
CLUSTERS = {  # arguments of make_classification
    "three clusters, 5,000 x 20": (
        (5_000, 20),
        {"n_informative": 8, "n_redundant": 6, "n_classes": 3, "random_state": 1},
    ),
    "six clusters, 20,000 x 40": (
        (20_000, 40),
        {**SIX, "weights": [0.5, 0.2, 0.1, 0.1, 0.05, 0.05], "random_state": 2},
    ),
}


def shipped(loader):
    return getattr(datasets, f"load_{loader}")(return_X_y=True)


def clusters(shape, options):
    return datasets.make_classification(*shape, **options)


@functools.cache
def drawn():
    """All tables of the softmax model, by columns: one after the other from one seed."""
    rng, found = np.random.default_rng(0), {}
    for columns, classes in SIZES:
        X = rng.normal(size=(20_000, columns))
        scores = X @ rng.normal(size=(columns, classes)) * 1.5 / np.sqrt(columns)
        found[columns] = X, (scores + rng.gumbel(size=scores.shape)).argmax(axis=1)
    return found


def one_drawn(columns):
    return drawn()[columns]


several_classes = [
    *(
        Dataset(name, "scikit-learn", functools.partial(shipped, loader), True, experiments)
        for name, (loader, experiments) in SHIPPED.items()
    ),
    *(
        Dataset(
            f"drawn, {columns} columns, {classes} classes",
            "generated",
            functools.partial(one_drawn, columns),
            True,
            ("classes",),
        )
        for columns, classes in SIZES
    ),
    *(
        Dataset(name, "generated", functools.partial(clusters, *how), True, ("choice",))
        for name, how in CLUSTERS.items()
    ),
]
