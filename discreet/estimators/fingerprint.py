"""Which model is meant: a digest of everything that decides what a fitted estimator predicts."""

from __future__ import annotations

from typing import Any

import numpy as np

from discreet._common.digest import digest_of


def fingerprint(estimator: Any) -> str:
    """Return SHA-256, in hexadecimal, of the kind, ranges, coefficients, intercept and classes of a fitted estimator.

    A model that was read from its file has the same one; numbers that differ in the last bit give another.

    Parameters
    ----------
    estimator : PrivateLinearModel
        Fitted, or from a model file.
    """
    low, high = estimator.ranges_
    numbers = [np.asarray(part, dtype=np.float64) for part in (low, high, estimator.coef_, estimator.intercept_)]
    classes = getattr(estimator, "classes_", None)
    labels = None if classes is None else np.asarray(classes).tolist()
    return digest_of("fingerprint", type(estimator).__name__, numbers, labels).hex()
