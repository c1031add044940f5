"""How good clipped, noisy gradients can be on a table whose columns are not cut, if everything else is known.

For each low-dimensional table, without its penalty: the exact Hessian at the optimum as metric, the whole budget
(1, 1/n^2), the best of many thresholds. `one step` is the error after a single noisy Newton step from the optimum, `in
the end` that of the point where the clipped gradients cancel, with the noise of the whole budget around it. Both read
the rows: these are floors, not solvers.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from framework import Cell, Experiment
from framework.markdown import table
from framework.registry import datasets_of
from framework.solver_cases import Case, open_case

from discreet import Budget
from discreet.problem.losses import Loss

NAME = "floors"
FloatArray = npt.NDArray[np.float64]
QUANTILES = 1.0 - np.array([0.02, 0.01, 5e-3, 2e-3, 1e-3, 5e-4, 2e-4, 1e-4, 5e-5, 0.0])


class Table:
    """Rows with an intercept, and the optimum without penalty."""

    def __init__(self, case: Case) -> None:
        self.loss: Loss = case.loss
        self.X, self.y = np.column_stack([case.X, np.ones(len(case.y))]), case.y
        self.mu = Budget(1.0, 1.0 / len(self.y) ** 2).gaussian_mu()
        self.best = self._newton(np.zeros(self.X.shape[1]), np.inf)
        self.hessian = self._hessian(self.best, np.inf)
        self.norms = np.sqrt(np.einsum("ij,ji->i", self.X, np.linalg.solve(self.hessian, self.X.T)))

    def value(self, w: FloatArray) -> float:
        return float(self.loss.value(self.X @ w, self.y).mean())

    def clipped(self, w: FloatArray, clip: float) -> tuple[FloatArray, npt.NDArray[np.bool_]]:
        """The mean of the gradients, clipped in the metric, and which are clipped."""
        slopes = self.loss.slope(self.X @ w, self.y)
        if not np.isfinite(clip):
            return self.X.T @ slopes / len(slopes), np.zeros(len(slopes), dtype=bool)
        sizes = np.abs(slopes) * self.norms
        return self.X.T @ (slopes * clip / np.maximum(sizes, clip)) / len(slopes), sizes > clip

    def _hessian(self, w: FloatArray, clip: float) -> FloatArray:
        curvature = np.where(self.clipped(w, clip)[1], 0.0, self.loss.curvature(self.X @ w, self.y))
        return (self.X * curvature[:, None]).T @ self.X / len(self.y) + 1e-9 * np.eye(self.X.shape[1])

    def _newton(self, w: FloatArray, clip: float) -> FloatArray:
        """Where the clipped gradients cancel; steps are halved until they shrink."""
        gradient = self.clipped(w, clip)[0]
        for _ in range(200):
            hessian = self._hessian(w, clip)
            move, length = np.linalg.solve(hessian, gradient), 1.0
            size = gradient @ move
            while length > 1e-6:
                after = self.clipped(w - length * move, clip)[0]
                if after @ np.linalg.solve(hessian, after) <= (1.0 - 0.1 * length) * size:
                    break
                length *= 0.5
            w, gradient = w - length * move, after
            if size < 1e-16:
                break
        return w

    def floors(self) -> tuple[float, float]:
        """The least relative errors after one step and in the end."""
        sizes = np.abs(self.loss.slope(self.X @ self.best, self.y)) * self.norms
        optimum, columns, inverse = self.value(self.best), self.X.shape[1], np.linalg.inv(self.hessian)
        once, last = [], []
        for clip in np.quantile(sizes, QUANTILES):
            variance = (2.0 * clip / (self.mu * len(self.y))) ** 2  # of the noise, in each direction of the metric
            bias = self.clipped(self.best, clip)[0]
            once.append(0.5 * (bias @ inverse @ bias + columns * variance))
            end = self._newton(self.best, clip)
            spread = np.linalg.solve(self._hessian(end, clip), self.hessian)
            last.append(self.value(end) - optimum + 0.5 * variance * float(np.sum(spread * spread.T)))
        return min(once) / optimum, min(last) / optimum


def shown():
    """Tables with few columns."""
    return [one for one in datasets_of("solvers") if one.facts["solvers"]["declarable"]]


def cells(quick):
    for dataset in shown()[: 1 if quick else None]:
        yield Cell(NAME, dataset.name, "clipped gradients", {"epsilon": 1.0})


def measure(cell):
    once, last = Table(open_case(cell.dataset)).floors()
    return {"one step": once, "in the end": last}


def page(results, folder):
    found = [(one.label, results.one(dataset=one.name)) for one in shown()]
    rows = [[name, f"{n['one step']:.1e}", f"{n['in the end']:.1e}"] for name, n in found if n is not None]
    return table(["table", "one step", "in the end"], rows)


floors = Experiment(
    NAME,
    "floors",
    "how good clipped, noisy gradients can be where columns are not cut",
    cells,
    measure,
    page,
    stored=("electricity", "california"),
)
