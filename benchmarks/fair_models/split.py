"""Rows that are fitted, rows that are held out, and what a model is judged by."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
MEASURES = ("accuracy", "log-loss", "parity difference", "opportunity difference")


@dataclass(frozen=True, eq=False)
class Split:
    """Rows that are fitted and rows that are held out; columns lie in [0, 1]."""

    X: FloatArray
    y: FloatArray
    men: FloatArray
    held_out: FloatArray
    held_out_y: FloatArray
    held_out_men: FloatArray

    def judge(self, scores: FloatArray) -> FloatArray:
        """The measures, on the rows that were held out."""
        chosen, good, men = scores > 0.0, self.held_out_y == 1.0, self.held_out_men == 1.0
        log_loss = np.logaddexp(0.0, np.where(good, -scores, scores)).mean()
        parity = chosen[men].mean() - chosen[~men].mean()
        opportunity = chosen[men & good].mean() - chosen[~men & good].mean()
        return np.array([(chosen == good).mean(), log_loss, parity, opportunity])


def split(X: FloatArray, y: FloatArray, men: FloatArray, seed: int) -> Split:
    """A fifth of the rows is held out."""
    order = np.random.default_rng(seed).permutation(len(y))
    test, train = order[: len(y) // 5], order[len(y) // 5 :]
    return Split(X[train], y[train], men[train], X[test], y[test], men[test])
