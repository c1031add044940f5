"""A constant on which the whole budget is spent: the mean of the target, or the share of label 1."""

from __future__ import annotations

import math

import numpy as np
from generality.cells import Cell

from discreet import Budget, Relation
from discreet.data.public import Public
from discreet.data.rows import Data
from discreet.preprocessing import private_means
from discreet.privacy import mechanisms
from discreet.privacy.random.generator import seeded_generator
from discreet.scaling.learn import learn_scaling
from discreet.scaling.plan import plan_target


def scores(cell: Cell, epsilon: float, told: bool = True) -> np.ndarray:
    """The constant for each held-out row; where `told`, with the true range of the target."""
    if cell.classes:
        share = expected_share(cell, epsilon)
        return np.full(len(cell.held_out_y), math.log(share / (1.0 - share)))
    return np.full(len(cell.held_out_y), private_mean(cell, epsilon, told))


def without_privacy(cell: Cell, epsilon: float | None = None) -> np.ndarray:
    mean = float(np.mean(cell.y))
    return np.full(len(cell.held_out_y), math.log(mean / (1.0 - mean)) if cell.classes else mean)


def private_mean(cell: Cell, epsilon: float, told: bool) -> float:
    if told:
        low, high = cell.target_range()
        ends = np.array([low]), np.array([high])
        found = private_means(cell.y[:, None], ends, epsilon, cell.delta, random_state=cell.seed)
        return float(np.clip(float(found.values[0]), low, high))  # it must lie in the range
    public, budget = Public(cell.rows, cell.X.shape[1]), Budget(epsilon, cell.delta)
    rng = seeded_generator(cell.seed)
    return float(learn_scaling(plan_target(public, budget), Data(cell.X, cell.y), public, rng).target_shift)


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
