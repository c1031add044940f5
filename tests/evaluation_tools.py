"""What the tests of paid evaluations share: a released classifier, private rows, and the exact answers."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace

import numpy as np

from discreet._common.exceptions import DiscreetWarning
from discreet.fairness.evaluation.private_certificate import private_certificate
from discreet.theory.distance import KnownDistance
from tests.fairness_tools import plain_classifier

GROUPS = ("a", "b")


def classifier(weights, classes=(0, 1), law=None):
    """A linear classifier of plain columns without an intercept, as a released model would be."""
    return replace(plain_classifier(weights, classes), law=law)


def known(distance, columns=2, outputs=1):
    return KnownDistance(np.ones(columns), outputs, "a model at this distance", distance)


def rows(count=3000, seed=0):
    """Features, labels with errors, and two groups of different sizes with different labels."""
    rng = np.random.default_rng(seed)
    X, group = rng.uniform(-1.0, 1.0, (count, 2)), np.where(rng.random(count) < 0.3, "a", "b")
    y = (X[:, 0] + 0.2 * (group == "a") + 0.3 * rng.normal(size=count) > 0.0).astype(int)
    return X, y, group


def evaluated(model, table, **settings):
    X, y, group = table
    return private_certificate(model, X, y, group, **({"groups": GROUPS} | settings))


def without_noise(model, table, **settings):
    """The same with an infinite budget: the exact counts."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DiscreetWarning)
        return evaluated(model, table, epsilon=math.inf, **settings)
