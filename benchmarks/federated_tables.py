"""Tables whose rows belong to many holders by nature: incomes by occupation, electricity prices by day."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
from stored_tables import stored_table

from discreet.federated.simulate import Parts
from discreet.problem import L2, Logistic, Problem

FloatArray = npt.NDArray[np.float64]
ALPHA = 1e-4
PROBLEM = Problem(Logistic(), L2(ALPHA))
TEST_SHARE = 0.2
STORED = {"income": "acsincome_co", "electricity": "electricity"}


@dataclass(frozen=True, eq=False)
class HolderTable:
    """Rows that are fitted, in the order of what decides who holds them, rows that are held out, and public bounds."""

    name: str
    X: FloatArray
    y: FloatArray
    X_test: FloatArray
    y_test: FloatArray
    low: FloatArray
    high: FloatArray

    def parts(self, clients: int) -> Parts:
        """Neighbouring rows, nearly equally many for each client: no two clients see the same kind of rows."""
        width = len(str(clients - 1))
        pieces = np.array_split(np.arange(self.y.size), clients)
        return {f"holder {i:0{width}d}": piece for i, piece in enumerate(pieces)}

    def judge(self, coef: FloatArray, intercept: float) -> tuple[float, float]:
        """Log-loss and accuracy on the rows that were held out."""
        margins = self.y_test * (self.X_test @ coef + intercept)
        return float(np.logaddexp(0.0, -margins).mean()), float((margins > 0.0).mean())

    @cached_property
    def without_privacy(self) -> tuple[float, float]:
        """What the minimiser of the pooled rows reaches."""
        from sklearn.linear_model import LogisticRegression

        centre, half = 0.5 * (self.low + self.high), 0.5 * (self.high - self.low)
        model = LogisticRegression(C=1.0 / (ALPHA * self.y.size), max_iter=5_000)
        model.fit((self.X - centre) / half, self.y)
        coef = model.coef_[0] / half
        return self.judge(coef, float(model.intercept_[0] - coef @ centre))

    @cached_property
    def constant(self) -> tuple[float, float]:
        """What the class frequencies reach."""
        share = float((self.y > 0.0).mean())
        return self.judge(np.zeros(self.X.shape[1]), float(np.log(share / (1.0 - share))))


def load_table(name: str) -> HolderTable:
    """ "income": Colorado, ordered by occupation code; "electricity": ordered by day."""
    return {"income": _income, "electricity": _electricity}[name]()


def _income() -> HolderTable:
    stored = stored_table(STORED["income"])
    X, y, names = stored["X"], stored["y"], stored["feature_names"].tolist()
    occupation = stored["X_codes"][:, stored["X_codes_names"].tolist().index("OCCP")]
    low, high = np.zeros(len(names)), np.ones(len(names))
    for column, largest in {"AGEP": 99.0, "SCHL": 24.0, "WKHP": 99.0}.items():
        high[names.index(column)] = largest
    return _split("income", X, y, occupation, low, high)


def _electricity() -> HolderTable:
    stored = stored_table(STORED["electricity"])
    X, y, names = stored["X"], stored["y"], stored["feature_names"].tolist()
    low, high = np.zeros(len(names)), np.ones(len(names))
    low[names.index("day")], high[names.index("day")] = 1.0, 7.0
    return _split("electricity", X, y, np.arange(y.size), low, high)  # in time order: 48 rows are a day


def _split(name: str, X: FloatArray, y: FloatArray, key: FloatArray, low: FloatArray, high: FloatArray) -> HolderTable:
    order = np.argsort(key, kind="stable")
    X, y = X[order].astype(np.float64), 2.0 * y[order].astype(np.float64) - 1.0
    held_out = np.random.default_rng(0).uniform(size=y.size) < TEST_SHARE
    return HolderTable(name, X[~held_out], y[~held_out], X[held_out], y[held_out], low, high)
