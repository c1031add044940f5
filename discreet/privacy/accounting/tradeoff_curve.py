"""The trade-off curve: how well the best attack can tell two neighbouring tables apart."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.special import ndtr, ndtri

from discreet.privacy.accounting.certificates import certify, deltas_of
from discreet.privacy.accounting.composition import read_composition
from discreet.privacy.accounting.pairs import Array
from discreet.privacy.relation import Relation

if TYPE_CHECKING:
    from dp_accounting import DpEvent


def tradeoff(event: DpEvent, relation: Relation | str, points: int = 200) -> tuple[Array, Array]:
    """Return type I errors and, for each, the least type II error that any test can reach.

    Guarantee: no test of "the record is in the table" against "it is not" has errors below the curve. It is
    exact for Gaussian plans; otherwise it is the curve of the proved (epsilon, delta) pairs, a lower bound.
    """
    if points < 3:
        raise ValueError(f"points must be at least 3, got {points!r}")
    alpha = np.concatenate([[0.0], ndtr(np.linspace(-5.0, 5.0, points - 2)), [1.0]])
    composition = read_composition(event, relation)
    if not composition.is_private:
        return alpha, np.zeros(points)
    if composition.only_gaussian:
        return alpha, ndtr(ndtri(1.0 - alpha) - composition.gaussian_mu)
    largest = certify(event, 1e-9, relation).epsilon
    epsilons = np.concatenate([[0.0], np.geomspace(1e-3, 1.0, 60) * min(largest, 500.0)])
    deltas = deltas_of(composition, epsilons)
    growth = np.exp(epsilons)[:, None]
    steep = 1.0 - deltas[:, None] - growth * alpha
    flat = (1.0 - deltas[:, None] - alpha) / growth
    return alpha, np.maximum(np.maximum(steep, flat).max(axis=0), 0.0)
