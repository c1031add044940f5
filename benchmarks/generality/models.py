"""Our models and two baselines: a private constant with the whole budget, and scikit-learn without privacy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from sklearn import linear_model
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from discreet import Budget, LogisticRegression, Relation, Ridge
from discreet.data.public import Public
from discreet.data.rows import Data
from discreet.preprocessing import private_means
from discreet.privacy import mechanisms
from discreet.privacy.random.generator import seeded_generator
from discreet.scaling.learn import learn_scaling
from discreet.scaling.plan import plan_target
from generality.cells import Cell


def fitted(cell: Cell, epsilon: float, solver: Any = "auto", seed: int = 0, told: bool = False, **settings: Any) -> Any:
    """A private model; nothing is passed but the budget, the solver and, where `told`, the true ranges."""
    if told:
        settings["bounds"] = cell.ranges()
        if not cell.classes:
            settings["y_bounds"] = cell.target_range()
    kind = LogisticRegression if cell.classes else Ridge
    return kind(epsilon=epsilon, solver=solver, random_state=cell.seed + seed, **settings).fit(cell.X, cell.y)


def private_constant(cell: Cell, epsilon: float, told: bool = False) -> np.ndarray:
    """The scores of a constant on which the whole budget is spent; where `told`, with the true range of the target."""
    if cell.classes:
        share = expected_share(cell, epsilon)
        return np.full(len(cell.held_out_y), math.log(share / (1.0 - share)))
    return np.full(len(cell.held_out_y), private_mean(cell, epsilon, told))


def private_mean(cell: Cell, epsilon: float, told: bool) -> float:
    column = cell.y[:, None]
    if told:
        low, high = (np.array([end]) for end in cell.target_range())
        return _clipped_mean(column, low, high, epsilon, cell.delta, cell.seed)
    public, budget = Public(cell.rows, cell.X.shape[1]), Budget(epsilon, cell.delta)
    rng = seeded_generator(cell.seed)
    return float(learn_scaling(plan_target(public, budget), Data(cell.X, cell.y), public, rng).target_shift)


def _clipped_mean(column: np.ndarray, low: Any, high: Any, epsilon: float, delta: float, seed: int) -> float:
    """A private mean, cut to the range that it must lie in."""
    found = float(private_means(column, (low, high), epsilon, delta, random_state=seed).values[0])
    return float(np.clip(found, low[0], high[0]))


def expected_share(cell: Cell, epsilon: float) -> float:
    """The mean of the share of label 1 given its noisy value, all shares being equally likely before."""
    noise = mechanisms.additive(Budget(epsilon, cell.delta), 1.0)
    deviation = noise.deviation(mechanisms.one_hot_counts(Relation.REPLACE, 1)) / cell.rows / math.sqrt(2.0)
    noisy = float(np.mean(cell.y)) + deviation * np.random.default_rng(cell.seed).normal()
    grid = np.linspace(0.0, 1.0, 2001)[1:-1]
    exponent = -0.5 * ((grid - noisy) / deviation) ** 2
    weights = np.exp(exponent - exponent.max())
    least = 0.5 / cell.rows
    return float(np.clip((grid * weights).sum() / weights.sum(), least, 1.0 - least))


def constant_without_privacy(cell: Cell) -> np.ndarray:
    mean = float(np.mean(cell.y))
    return np.full(len(cell.held_out_y), math.log(mean / (1.0 - mean)) if cell.classes else mean)


def without_privacy(cell: Cell) -> np.ndarray:
    model = linear_model.LogisticRegression(C=1.0, max_iter=2000) if cell.classes else linear_model.Ridge(1.0)
    return scores_of(make_pipeline(StandardScaler(), model).fit(cell.X, cell.y), cell)


def scores_of(model: Any, cell: Cell) -> np.ndarray:
    return model.decision_function(cell.held_out) if cell.classes else model.predict(cell.held_out)


def judged(scores: np.ndarray, cell: Cell) -> dict[str, float | None]:
    """The loss (log-loss, or mean squared error over the variance), the share of wrong labels, the calibration slope.

    None instead of a number that is not finite, since JSON has no other.
    """
    y = cell.held_out_y
    with np.errstate(over="ignore", invalid="ignore"):
        losses = np.logaddexp(0.0, np.where(y == 1.0, -scores, scores)) if cell.classes else (scores - y) ** 2
        loss = float(np.mean(losses) / cell.unit)
    found: dict[str, float | None] = {"loss": loss if math.isfinite(loss) else None}
    if cell.classes:
        slope = calibration_slope(scores, y)
        found["wrong"] = float(np.mean((scores > 0.0) != (y == 1.0)))
        found["slope"] = slope if math.isfinite(slope) else None
    return found


def calibration_slope(scores: np.ndarray, y: np.ndarray) -> float:
    """The factor by which scores would have to be multiplied to be calibrated; 1 is best, below 1 too extreme."""
    if not np.isfinite(scores).all() or np.std(scores) < 1e-9 or len(np.unique(y)) < 2:
        return math.nan
    clipped = np.clip(scores, -30.0, 30.0)
    fit = linear_model.LogisticRegression(C=1e6, max_iter=500).fit(clipped[:, None], y)
    return float(fit.coef_[0, 0])
