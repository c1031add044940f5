"""Plain loops of the algorithms that theorems speak of, many runs at once, on logistic losses: for tests of bounds."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit


class LogisticTable:
    """Mean logistic loss of rows of norm at most 1, with a ridge that is handled by its proximal map."""

    def __init__(self, seed, rows=150, columns=5, ridge=0.0):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((rows, columns)) * rng.uniform(0.3, 1.5, columns)
        self.X = X / np.maximum(1.0, np.linalg.norm(X, axis=1, keepdims=True))
        y = np.where(rng.uniform(size=rows) < expit(3.0 * self.X @ rng.standard_normal(columns)), 1.0, -1.0)
        self.signed, self.rows, self.columns, self.ridge = self.X * y[:, None], rows, columns, ridge
        self.best = minimize(self.value, np.zeros(columns), jac=self._slope, method="BFGS", options={"gtol": 1e-9}).x

    @property
    def smoothness(self):
        return float(np.linalg.eigvalsh(self.X.T @ self.X / self.rows)[-1]) / 4.0

    @property
    def coordinate_smoothness(self):
        return (self.X**2).mean(axis=0) / 4.0

    @property
    def lipschitz(self):
        return np.abs(self.X).max(axis=0)

    def value(self, w):
        losses = np.logaddexp(0.0, -(w @ self.signed.T)).mean(axis=-1)
        return losses + 0.5 * self.ridge * np.square(w).sum(axis=-1)

    def gradient(self, w):
        """Of the mean loss alone; `w` is (..., columns)."""
        return -expit(-(w @ self.signed.T)) @ self.signed / self.rows

    def _slope(self, w):
        return self.gradient(w) + self.ridge * w

    def excess(self, w):
        return self.value(w) - self.value(self.best)


def gradient_descent(table, runs, steps, step, noise, batch=None, seed=0):
    """The mean of the iterates 0 to steps - 1 of every run; noise has the expected squared norm given."""
    rng = np.random.default_rng(seed)
    w, total = np.zeros((runs, table.columns)), np.zeros((runs, table.columns))
    for _ in range(steps):
        total += w
        if batch is None:
            slope = table.gradient(w)
        else:
            slopes = -expit(-(w @ table.signed.T)) * (rng.uniform(size=(runs, table.rows)) < batch / table.rows)
            slope = slopes @ table.signed / batch
        w = w - step * (slope + np.sqrt(noise / table.columns) * rng.standard_normal(w.shape))
    return total / steps


def coordinate_descent(table, runs, steps, deviation, smoothness=None, sets=None, outer=1, average=True, seed=0):
    """Uniformly random coordinates, or those of `sets(rng, runs)`, as a mask; steps 1/M_j with noise s_j."""
    rng = np.random.default_rng(seed)
    bound = table.coordinate_smoothness if smoothness is None else smoothness
    w = np.zeros((runs, table.columns))
    for _ in range(outer):
        total = np.zeros_like(w)
        for _ in range(steps // outer):
            if sets is None:
                mask = rng.integers(table.columns, size=runs)[:, None] == np.arange(table.columns)
            else:
                mask = sets(rng, runs)
            slope = table.gradient(w) + deviation * rng.standard_normal(w.shape)
            moved = (w - slope / bound) / (1.0 + table.ridge / bound)
            w = np.where(mask, moved, w)
            total += w
        if average:
            w = total / (steps // outer)
    return w
