"""What a mechanism is: one frozen object that draws the random numbers of a release and states its privacy cost.

Every mechanism has a `multiplier`, the ratio of its noise to the sensitivity of what it protects, and an `event`, the
cost that follows from the multiplier. It has no rows and no sensitivity of its own: those come with each draw. Four
families differ in what they draw:

- additive (`AdditiveMechanism`): `release(rng, value, sensitivity)` returns the value with noise; `grid` is for sums
  whose terms are rounded one by one, and for kernels that add the noise themselves;
- sampled (`SampledMechanism`): `batches(rng, rows, steps)` draws rows, `grid(clip, entries, rows)` the noise on
  their clipped sums, so that the sampling rate of the draw is the one in the event;
- running sums (`RunningSumGaussian` in aggregation.py): correlated noise on every partial sum of a sequence;
- selections: `choose` or `draw` returns one of many candidates, with a method for each kind of candidate.

Nobody outside discreet/privacy asks the generator for noise or for Poisson samples of rows: tests/test_architecture.py.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from discreet._common.types import FloatArray, IndexArray
from discreet.privacy import accounting
from discreet.privacy.mechanisms.grid import NoisyGrid
from discreet.privacy.mechanisms.sensitivity import Sensitivity

if TYPE_CHECKING:
    from discreet.privacy.random.generator import RandomGenerator


class Mechanism(Protocol):
    """What a plan needs to know of every mechanism.

    Attributes
    ----------
    multiplier : float
        Noise over sensitivity; 0 stands for no noise, which only an infinite budget allows.
    event : DpEvent
        The cost of all draws that the mechanism was made for.
    """

    @property
    def multiplier(self) -> float: ...

    @property
    def event(self) -> Any: ...


class AdditiveMechanism(ABC):
    """A mechanism that adds noise to a vector."""

    @abstractmethod
    def grid(self, sensitivity: Sensitivity, entries: int, rows: float = 1, loose: float = 1.0) -> NoisyGrid:
        """The grid and the noise of one release.

        Parameters
        ----------
        sensitivity : Sensitivity
            How far the value can move between neighbouring tables, before anything is rounded.
        entries : int
            How many numbers are released.
        rows : float
            The public number of rows, for sums whose terms the caller rounds to the grid: they are then exact in
            any order. A sum that is rounded as a whole does not need it.
        loose : float
            How many steps further, per entry, rounding can move the value; 1 for entries or terms that are rounded to
            the nearest point.
        """

    def release(self, rng: RandomGenerator, value: FloatArray, sensitivity: Sensitivity) -> FloatArray:
        """The value with fresh noise on every entry.

        Parameters
        ----------
        rng : RandomGenerator
        value : ndarray
            An exact function of the rows; it is left as it is.
        sensitivity : Sensitivity
            How far the value can move between neighbouring tables.

        Returns
        -------
        ndarray of the same shape

        Guarantee: costs one of the releases that `event` counts, if the value moves by no more than `sensitivity`.
        """
        return self.grid(sensitivity, value.size).release(rng, value)


class SampledMechanism(Protocol):
    """A mechanism that adds noise to sums over random batches of the rows, each row clipped to norm `clip`."""

    @property
    def multiplier(self) -> float: ...

    @property
    def event(self) -> Any: ...

    def scale(self, clip: float) -> float:
        """Standard deviation of the noise on a sum."""
        ...

    def batches(self, rng: RandomGenerator, rows: int, steps: int) -> tuple[IndexArray, IndexArray]:
        """The batches of some steps: that of step t is indices[indptr[t]:indptr[t + 1]] of (indptr, indices)."""
        ...

    def grid(self, clip: float, entries: int, rows: float = 1) -> NoisyGrid:
        """The grid and the noise of one sum of so many entries, each row clipped to norm `clip`."""
        ...


def noise_scale(multiplier: float, size: float) -> float:
    """The multiplier times a sensitivity; without noise 0, also where nothing is clipped and the size is infinite."""
    return multiplier * size if multiplier > 0.0 else 0.0


def event_unless_noiseless(multiplier: float, make: Callable[[float, int], Any], count: int) -> Any:
    """The event of a multiplier; without noise one that no finite budget covers."""
    return accounting.non_private_event() if multiplier == 0.0 else make(multiplier, count)
