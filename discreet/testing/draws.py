"""Generators for comparisons that a seed alone does not allow."""

from __future__ import annotations

from discreet.privacy.random.generator import RandomGenerator, seeded_generator


class SameDraws(RandomGenerator):
    """A seeded generator whose draws do not depend on the plan, to compare plans that must do the same.

    Not for releases: two plans with the same noise reveal what they were computed from.
    """

    def __init__(self, seed: int) -> None:
        super().__init__(seeded_generator(seed).bytes(32), secure=False)

    def rekey(self, context: bytes) -> None:
        """Keep the key, whatever the plan is."""
