"""What a solver returns, and what a run of it needs from outside."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from discreet._common.types import FloatArray, Progress

if TYPE_CHECKING:
    from discreet.privacy.guarantee import Guarantee
    from discreet.privacy.random.generator import RandomGenerator
    from discreet.privacy.release_record import ReleaseRecord
    from discreet.problem.blockwise import BlockwiseProblem
    from discreet.problem.column_scaling import ColumnScaling
    from discreet.solvers.plan import Plan


@dataclass(frozen=True, eq=False)
class Solution:
    """What a solver returns.

    Attributes
    ----------
    coef : array, (p,) or (outputs, p)
        The coefficients in the user's columns; `w`, as the papers call them, is the same.
    intercept : float or array
    iterations : int
        How many steps were made; planned, unless epsilon is infinite.
    plan : Plan
        What was decided before the rows were read.
    scaling : ColumnScaling
        Where columns were clipped, centred and scaled.
    objective_trace : list of float or None
        The objective after each pass, if the caller asked for it by name. Not private.
    seeded : bool
        Whether the noise came from a seed or from a NumPy generator; the guarantee then names this as a leak.
    release : ReleaseRecord or None
        Which table it was, when, and where the cost was booked; None until the run has ended.

    Guarantee: `coef`, `intercept` and `scaling` are differentially private as `guarantee` states.
    """

    coef: FloatArray
    intercept: Any
    iterations: int
    plan: Plan
    scaling: ColumnScaling
    objective_trace: list[float] | None = None
    seeded: bool = False
    release: ReleaseRecord | None = None

    @property
    def w(self) -> FloatArray:
        """The coefficients, by their name in the papers."""
        return self.coef

    @cached_property
    def guarantee(self) -> Guarantee:
        """What is promised about this result; a seed, and a trace that was asked for, are named as leaks."""
        promise = self.plan.guarantee.about(self.release)
        promise = promise.with_seed() if self.seeded else promise
        return promise if self.objective_trace is None else promise.with_leak("the objectives of the trace")


class Run:
    """What a descending solver needs from outside: noise, progress reports and an optional trace."""

    def __init__(self, rng: RandomGenerator, progress: Progress | None, traced: bool) -> None:
        self.rng = rng
        self.progress = progress
        self.trace: list[float] | None = [] if traced else None

    def report(self, done: int, total: int, scaled: BlockwiseProblem, w: FloatArray) -> None:
        if self.progress is not None:
            self.progress(done, total)
        if self.trace is not None:
            self.trace.append(scaled.value(w))
