"""Synthetic categories by mbi, in its environment, and scikit-learn on these; the mechanism of rivals/with_mbi.py.

It is given rho = mu^2 / 2 in zCDP, which is a little more than the others have.
"""

from __future__ import annotations

import numpy as np
from datasets.categories import Categories
from framework import Method
from rivals.environments import process_of
from sklearn.linear_model import LogisticRegression as NotPrivate


def by_mbi(label):
    """The `run` of a method; with `label` the pairs of all features with the label are measured as well."""

    def run(race, setting, seed):
        table, mu = race.train, race.mu(setting["epsilon"])
        asked = {"rho": 0.5 * mu**2, "label": label, "seed": race.seed_of_noise(seed)}
        codes, levels = np.column_stack([table.codes, table.y]), [*table.levels, 2]
        made = process_of("mbi").answer(codes=codes, levels=levels, **asked).astype(np.int64)
        synthetic = Categories(made[:, :-1], table.levels, made[:, -1])
        model = NotPrivate(max_iter=300).fit(synthetic.one_hot(), synthetic.y)
        return race.judged(model.predict_proba(race.X)[:, 1])

    return run


def slow(dataset):
    return None if dataset.facts["mbi"] else "it takes minutes, and is run on two tables"


one_hot_mbi = [
    Method(f"one-hot: mbi, {name}", about, by_mbi(label), ("one_hot",), {"seed": (0,)}, slow, dear=True)
    for name, label, about in (
        ("tree", False, "mbi 2.0.0: a tree of pairs"),
        ("label and tree", True, "mbi 2.0.0: a tree of pairs and all pairs with the label"),
    )
]
