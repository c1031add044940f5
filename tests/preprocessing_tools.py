"""What the tests of preprocessing share."""

from __future__ import annotations

import numpy as np

from discreet.preprocessing import PrivateBounds, PrivateQuantiles, PrivateScaler

TRANSFORMERS = [PrivateScaler, PrivateBounds, PrivateQuantiles]


CENTRE, SCALE = np.array([0.0, 50.0, -3.0, 1e4]), np.array([1.0, 10.0, 0.1, 1e3])


def table(rows=50_000, seed=0):
    """Four columns of uneven scales, on both sides of zero and away from it."""
    return np.random.default_rng(seed).standard_normal((rows, 4)) * SCALE + CENTRE
