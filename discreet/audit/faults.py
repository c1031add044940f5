"""Planted faults: mistakes that an audit must find, each beside the right implementation, which it must accept.

Nothing here is private. They are for tests of audits: an audit that cannot find a fault proves nothing.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from discreet._common.types import FloatArray
from discreet.privacy.random.generator import RandomGenerator, seeded_generator
from discreet.solvers import Plan


class WeakerNoise(RandomGenerator):
    """A seeded generator whose normal, Laplace and Gumbel draws are multiplied by a factor."""

    def __init__(self, seed: int, factor: float) -> None:
        super().__init__(seeded_generator(seed).bytes(32), secure=False)
        self.factor = factor

    def normal(self, size: Any, out: FloatArray | None = None) -> FloatArray:
        draws = super().normal(size, out)
        draws *= self.factor
        return draws

    def laplace(self, size: Any) -> FloatArray:
        return super().laplace(size) * self.factor

    def gumbel(self, size: Any) -> FloatArray:
        return super().gumbel(size) * self.factor


def weaker_plan(plan: Plan[Any, Any], factor: float) -> Plan[Any, Any]:
    """A plan whose mechanism has its noise multiplied by a factor; what it promises stays in the original plan."""
    mechanism: Any = plan.mechanism
    if not hasattr(mechanism, "multiplier"):
        raise TypeError(f"{mechanism!r} has no noise multiplier to change.")
    return replace(plan, mechanism=replace(mechanism, multiplier=factor * mechanism.multiplier))
