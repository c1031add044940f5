"""Screening: coordinates that have settled leave the others their steps.

The test reads only iterates that have been released already, so it costs nothing; and since every step costs the
same whichever coordinate it moves, the next coordinates may depend on it (docs/guarantees/cd.md, "Screening").
"""

from __future__ import annotations

import numpy as np

from discreet._common.types import FloatArray, IntArray
from discreet.problem.coordinate_state import CoordinateState

NOISE_ALONE = 2.0  # standard deviations that noise alone exceeds once in twenty tests


class Screening:
    """Tells settled coordinates from those still on their way.

    A coordinate has settled if its last `patience` steps carried it no further than noise alone would. It then goes
    back to where those steps began, which for a coordinate that does not matter is 0.

    Parameters
    ----------
    patience : int or None
        How many steps of a coordinate make a test; None screens nothing.
    noise : array
        Standard deviation of the noise in one step of each coordinate.
    """

    def __init__(self, patience: int | None, noise: FloatArray) -> None:
        self.patience, self.noise = patience, noise
        self.active: IntArray = np.arange(noise.size, dtype=np.int64)

    def restart(self, w: FloatArray) -> None:
        """Watch from here; `w` has one column per coordinate."""
        self.mark = w.copy()
        self.visits = np.zeros(self.noise.size, dtype=np.int64)

    def watch(self, coordinates: IntArray, state: CoordinateState) -> None:
        """The coordinates have just made one step each: those that have settled go back to where they began.

        When all have settled, all begin anew.
        """
        if self.patience is None:
            return
        w = state.w
        self.visits += np.bincount(coordinates, minlength=self.visits.size)
        due = self.visits >= self.patience
        moved = np.sqrt(((w - self.mark) ** 2).reshape(-1, self.noise.size).sum(axis=0))
        settled = due & (moved <= NOISE_ALONE * np.sqrt(self.visits) * self.noise)
        if settled.any():
            back = np.flatnonzero(settled)
            state.place(back, self.mark[..., back])
        self.mark[..., due] = w[..., due]
        self.visits[due] = 0
        self.active = self.active[~settled[self.active]]
        if self.active.size == 0:
            self.active = np.arange(self.noise.size, dtype=np.int64)
