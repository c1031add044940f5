"""Many private models for each point of the fairness benchmark."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from discreet import LogisticRegression
from fairness.cases import Case, FloatArray, Regime


@dataclass(frozen=True)
class Setting:
    """One solver at one number of rows and one epsilon, and how many models are fitted."""

    table: str
    regime: str
    solver: str
    rows: int
    epsilon: float
    models: int


@dataclass(frozen=True, eq=False)
class Fits:
    """The coefficients of the private models of a setting, one row each, and the time of all fits."""

    coef: FloatArray
    seconds: float

    def scores(self, X: FloatArray) -> FloatArray:
        """Scores of every model (rows) for every row of X (columns)."""
        return np.asarray(self.coef @ X.T)


FitsOf = Callable[[Setting], Fits]  # fits them, or finds what an earlier run has fitted


def private_model(case: Case, regime: Regime, setting: Setting, seed: int = 0) -> LogisticRegression:
    """One private model. Noise is seeded so that the page can be made again; that is no release."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = regime.model(setting.solver, setting.epsilon, seed)
        return model.fit(case.X[: setting.rows], case.y[: setting.rows])


def fits_of(case: Case, regime: Regime, setting: Setting) -> Fits:
    start = time.perf_counter()
    models = [private_model(case, regime, setting, seed) for seed in range(setting.models)]
    return Fits(np.vstack([model.coef_ for model in models]), time.perf_counter() - start)
