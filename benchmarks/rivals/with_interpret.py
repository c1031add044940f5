"""DP-EBM (package interpret-core) with its default settings, in its own environment.

A sum of one curve for each column, boosted in 300 rounds: it can follow what no linear model can. It is told the true
range of every column and of the target.
"""

from __future__ import annotations

import warnings

import numpy as np
from exchange import answer
from interpret.privacy import DPExplainableBoostingClassifier, DPExplainableBoostingRegressor


def scores(asked: dict[str, np.ndarray]) -> np.ndarray:
    warnings.simplefilter("ignore")
    X, y, held_out = asked["X"], asked["y"], asked["held_out"]  # columns in [-1, 1]
    settings = {
        "epsilon": float(asked["epsilon"]),
        "delta": float(asked["delta"]),
        "privacy_bounds": np.tile([-1.0, 1.0], (X.shape[1], 1)),
        "feature_types": ["continuous"] * X.shape[1],
        "random_state": int(asked["seed"]),
        "n_jobs": 1,
    }
    if int(asked["classes"]):
        model = DPExplainableBoostingClassifier(**settings).fit(X, y)
        return model.decision_function(held_out)
    low, high = float(asked["low"]), float(asked["high"])
    model = DPExplainableBoostingRegressor(privacy_target_min=low, privacy_target_max=high, **settings)
    return model.fit(X, y).predict(held_out)


if __name__ == "__main__":
    answer(scores)
