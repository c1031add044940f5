"""The library's solvers on one-hot columns, a private constant, and scikit-learn. `problem` is a race of one_hot.py."""

from __future__ import annotations

import numpy as np
from framework import Method
from sklearn.linear_model import LogisticRegression as NotPrivate

from discreet import Budget, LinearRegression, LogisticRegression


def constant(race, setting, seed):
    y, mu = race.train.y, race.mu(setting["epsilon"])
    rate = np.clip((y.sum() + race.rng(seed).normal() / mu) / len(y), 1e-4, 1.0 - 1e-4)
    return race.judged(np.full(len(race.y), rate))


def by_solver(solver):
    def run(race, setting, seed):
        known = {"bounds": (0, 1), "classes": [0, 1], "random_state": race.seed_of_noise(seed)}
        model = LogisticRegression(epsilon=Budget.gdp(race.mu(setting["epsilon"])), solver=solver, alpha=1e-6, **known)
        return race.judged(model.fit(race.train.one_hot(), race.train.y).predict_proba(race.X)[:, 1])

    return run


def sufficient_statistics(race, setting, seed):
    """Least squares on the label; a prediction is taken as a probability."""
    known = {"bounds": (0, 1), "y_bounds": (0, 1), "random_state": race.seed_of_noise(seed)}
    budget = Budget.gdp(race.mu(setting["epsilon"]))
    model = LinearRegression(epsilon=budget, solver="sufficient-statistics", **known)
    predicted = model.fit(race.train.one_hot(), race.train.y.astype(float)).predict(race.X)
    return race.judged(np.clip(predicted, 0.01, 0.99))


def not_private(race, setting, seed):
    model = NotPrivate(C=10.0, max_iter=300).fit(race.train.one_hot(), race.train.y)
    return race.judged(model.predict_proba(race.X)[:, 1])


one_hot_solvers = [
    Method("one-hot: no privacy", "scikit-learn", not_private, ("one_hot",), grid={"seed": (0,), "epsilon": ()}),
    Method("one-hot: constant", "the share of label 1, with noise", constant, ("one_hot",)),
    Method("one-hot: newton", "this library", by_solver("newton"), ("one_hot",)),
    Method("one-hot: gd", "this library", by_solver("gd"), ("one_hot",)),
    Method("one-hot: sufficient-statistics", "this library", sufficient_statistics, ("one_hot",)),
]
