"""Pickles of estimators never carry a generator, and those of fitted ones no seed either."""

from __future__ import annotations

import numbers
from typing import Any


class NoGeneratorInPickles:
    """A base class of estimators that leaves `random_state` out of pickles and copies where it would repeat noise.

    A generator in a pickle would draw the same noise in every process that opens it. The seed of a fitted model would
    let whoever opens the pickle remove the noise. Both come back as None, which draws secure noise. The integer seed of
    an estimator that is not fitted stays: it is a parameter, and workers of a grid search need it.
    """

    def __getstate__(self) -> Any:
        state = dict(super().__getstate__())  # type: ignore[call-overload]
        fitted = any(name.endswith("_") and not name.startswith("_") for name in state)
        if fitted or not isinstance(state["random_state"], numbers.Integral):
            state["random_state"] = None
        return state
