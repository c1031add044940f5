"""diffprivlib's linear models with their default settings, in its own environment. Its guarantee has no delta.

It is told the true range of every column and of the target. Its logistic regression asks for the largest norm of a row
instead: columns are moved to [-1, 1], which makes the square root of their number such a norm.
"""

from __future__ import annotations

import math
import warnings

import numpy as np
from diffprivlib.models import LinearRegression, LogisticRegression
from exchange import answer


def scores(asked: dict[str, np.ndarray]) -> np.ndarray:
    warnings.simplefilter("ignore")
    epsilon, seed = float(asked["epsilon"]), int(asked["seed"])
    X, y, held_out = asked["X"], asked["y"], asked["held_out"]  # columns in [-1, 1]
    if int(asked["classes"]):
        model = LogisticRegression(epsilon=epsilon, data_norm=math.sqrt(X.shape[1]), random_state=seed)
        return model.fit(X, y).decision_function(held_out)
    bounds = (-np.ones(X.shape[1]), np.ones(X.shape[1]))
    targets = (float(asked["low"]), float(asked["high"]))
    return (
        LinearRegression(epsilon=epsilon, bounds_X=bounds, bounds_y=targets, random_state=seed)
        .fit(X, y)
        .predict(held_out)
    )


if __name__ == "__main__":
    answer(scores)
