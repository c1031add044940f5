"""Planted faults: mistakes that an audit must find, each beside the right implementation, which it must accept.

Nothing here is private. They are for tests of audits: an audit that cannot find a fault proves nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from discreet._common.types import FloatArray
from discreet.audit.replays.doors import CHOOSERS, grid_makers
from discreet.audit.targets import Outputs, Target, target_of
from discreet.privacy import accounting, mechanisms
from discreet.privacy.mechanisms import Gaussian, LaplaceGreedy, Sensitivity
from discreet.privacy.mechanisms.additive import NoisyGrid, Size
from discreet.privacy.random.generator import RandomGenerator, seeded_generator
from discreet.privacy.relation import Relation
from discreet.solvers import GradientDescent, Plan
from discreet.solvers._shared.full_batch import NoisyGradient
from discreet.solvers.base import Run


class WeakerNoise(RandomGenerator):
    """A seeded generator whose noise, also the one that is rounded, is multiplied by a factor."""

    def __init__(self, seed: int, factor: float) -> None:
        super().__init__(seeded_generator(seed).bytes(32), secure=False)
        self.factor = factor

    def normal(self, size: Any, out: FloatArray | None = None) -> FloatArray:
        draws = super().normal(size, out)
        draws *= self.factor
        return draws

    def laplace(self, size: Any) -> FloatArray:
        return super().laplace(size) * self.factor

    def rounded_draws(self, law: Literal["normal", "laplace"], scale: float, size: Any) -> FloatArray:
        return super().rounded_draws(law, scale * self.factor, size)

    def gumbel_argmax(self, scores: ArrayLike) -> int:
        return super().gumbel_argmax(np.asarray(scores) / self.factor)


def weaker_plan(plan: Plan[Any, Any], factor: float) -> Plan[Any, Any]:
    """A plan whose mechanism has its noise multiplied by a factor; what it promises stays in the original plan."""
    mechanism: Any = plan.mechanism
    if not hasattr(mechanism, "multiplier"):
        raise TypeError(f"{mechanism!r} has no noise multiplier to change.")
    return replace(plan, mechanism=replace(mechanism, multiplier=factor * mechanism.multiplier))


class HalfGrid(NoisyGrid):
    """A grid whose noise has half the size that it states."""

    def noise(self, rng: RandomGenerator, size: Size) -> FloatArray:
        return NoisyGrid(self.step, 0.5 * self.scale, self.law).noise(rng, size)


class NaiveGrid(NoisyGrid):
    """Floating-point noise: a normal double times its deviation, which leaves doubles that cannot occur."""

    def noise(self, rng: RandomGenerator, size: Size) -> FloatArray:
        """`draw * scale`, with draws by Box and Muller from uniform doubles."""
        shape = (size,) if isinstance(size, int) else tuple(size)
        count = int(np.prod(shape, dtype=np.int64))
        pairs = (count + 1) // 2
        uniform = rng.uniform((2, pairs))
        radius, angle = np.sqrt(-2.0 * np.log(uniform[0])), 2.0 * np.pi * uniform[1]
        half = count // 2
        draws = np.concatenate([(radius * np.cos(angle))[:half], (radius * np.sin(angle))[:half]])
        if count % 2:
            draws = np.append(draws, radius[-1] * np.cos(angle[-1]))
        return draws.reshape(shape) * self.scale

    def nearest(self, value: FloatArray) -> FloatArray:
        """Nothing is rounded."""
        return value


class RepeatedGrid(NoisyGrid):
    """A grid whose noise is drawn once and then used again, as from a generator that is seeded anew."""

    kept: ClassVar[dict[tuple[int, ...], FloatArray]] = {}

    def noise(self, rng: RandomGenerator, size: Size) -> FloatArray:
        """The same noise, in units of its scale, as the last one of its shape."""
        shape = (size,) if isinstance(size, int) else tuple(size)
        if shape not in self.kept:
            self.kept[shape] = NoisyGrid(self.step, self.scale, self.law).noise(rng, size) / self.scale
        return np.rint(self.kept[shape] * self.scale / self.step) * self.step


@dataclass(frozen=True)
class FaultyGaussian(Gaussian):
    """A Gaussian mechanism whose releases go through a faulty grid."""

    kind: ClassVar[type[NoisyGrid]]

    def grid(self, sensitivity: Sensitivity, entries: int, rows: float = 1, loose: float = 1.0) -> NoisyGrid:
        right = super().grid(sensitivity, entries, rows, loose)
        return self.kind(right.step, right.scale, right.law)


@dataclass(frozen=True)
class HalfGaussian(FaultyGaussian):
    """Gaussian noise of half the size that it states."""

    kind: ClassVar[type[NoisyGrid]] = HalfGrid


@dataclass(frozen=True)
class RepeatedGaussian(FaultyGaussian):
    """Gaussian noise that is used again."""

    kind: ClassVar[type[NoisyGrid]] = RepeatedGrid


@dataclass(frozen=True)
class PrintedSelection(LaplaceGreedy):
    """Report-noisy-max with Laplace noise at the cost that the thesis prints: half of what it really costs."""

    @property
    def event(self) -> Any:
        return accounting.pure_event(1.0 / self.multiplier, self.count)


@dataclass(frozen=True)
class StopsByTheRows(GradientDescent):
    """Gradient descent that goes on while rows are misclassified: the number of steps is read from the rows."""

    capabilities = replace(GradientDescent.capabilities, stored=False)

    def _descend(self, scaled: Any, plan: Any, run: Run) -> tuple[FloatArray, int]:
        w, gradient = scaled.start(), NoisyGradient(scaled, plan, self.clip)
        for t in range(plan.settings.steps):
            w = w - self.step * gradient(w, run.rng)
            if (scaled.margins(w) * scaled.y > 0.0).all():
                return w, t + 1
        return w, plan.settings.steps


@dataclass(frozen=True)
class ShowsExactMean(GradientDescent):
    """Gradient descent whose intercept moves by the exact mean of the targets, beside the noisy steps."""

    capabilities = replace(GradientDescent.capabilities, stored=False)

    def _descend(self, scaled: Any, plan: Any, run: Run) -> tuple[FloatArray, int]:
        w, steps = super()._descend(scaled, plan, run)
        return w + 1e-9 * float(np.mean(scaled.y)), steps


@contextmanager
def halved_sensitivity() -> Iterator[None]:
    """Let every sum of clipped rows claim half of its sensitivity, as if the factor of the relation were forgotten."""
    right = mechanisms.clipped_sum

    def wrong(relation: Relation, dimension: int = 1) -> Sensitivity:
        return right(relation, dimension) * 0.5

    mechanisms.clipped_sum = wrong
    try:
        yield
    finally:
        mechanisms.clipped_sum = right


@contextmanager
def understated(factor: float) -> Iterator[None]:
    """Let whoever asks a mechanism for noise or for a choice claim this part of the sensitivity: a wrong distance."""
    others = (mechanisms.QuantileSelection, mechanisms.VertexSelections, mechanisms.PointSelection)
    methods = [(kind, "grid") for kind in grid_makers()]
    methods += [(kind, name) for kind in (*CHOOSERS, *others) for name in ("choose", "scale", "draw")]
    asked = False  # a mechanism that asks another one passes on what it was told

    def wrong(original: Any) -> Any:
        def method(self: Any, *args: Any, **named: Any) -> Any:
            nonlocal asked
            if asked:
                return original(self, *args, **named)
            asked, sizes = True, (Sensitivity, float) if original.__name__ == "grid" else (Sensitivity,)
            try:
                return original(self, *(arg * factor if isinstance(arg, sizes) else arg for arg in args), **named)
            finally:
                asked = False

        return method

    saved = [(kind, name, kind.__dict__[name]) for kind, name in methods if name in kind.__dict__]
    for kind, name, original in saved:
        setattr(kind, name, wrong(original))
    try:
        yield
    finally:
        for kind, name, original in saved:
            setattr(kind, name, original)


def with_wrong_distance(audited: Any, factor: float) -> Target:
    """The same run, in which every mechanism is told so much of the sensitivity."""
    target = target_of(audited)

    def run(data: Any, rng: Any) -> Outputs:
        with understated(factor):
            return target.run(data, rng)

    return replace(target, run=run)


@contextmanager
def persons_as_rows() -> Iterator[None]:
    """Let every row of a person count as a person of its own, with the noise that is for one of them."""
    from discreet.solvers import base

    right = base.gather_persons
    base.gather_persons = lambda data, most, rng: replace(data, persons=None)
    try:
        yield
    finally:
        base.gather_persons = right


@contextmanager
def naive_noise() -> Iterator[None]:
    """Let every release have floating-point noise, `draw * scale`, on a value that is not rounded."""
    saved = {name: NoisyGrid.__dict__[name] for name in ("noise", "nearest")}
    for name in saved:
        setattr(NoisyGrid, name, NaiveGrid.__dict__[name])
    try:
        yield
    finally:
        for name, original in saved.items():
            setattr(NoisyGrid, name, original)
