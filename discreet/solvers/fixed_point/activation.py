"""Which blocks move in which step: decided without the rows, by a rule and a generator."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from discreet._common.checks import number_in, one_of
from discreet._common.types import IntArray
from discreet.privacy.random.generator import RandomGenerator

RULES = ("all", "cyclic", "uniform", "independent")


@dataclass(frozen=True)
class Activation:
    """A rule for the active blocks of each step.

    Parameters
    ----------
    rule : {"all", "cyclic", "uniform", "independent"}
        All blocks; one after the other; one drawn uniformly; each with the probability, independently.
    probability : float or None
        For "independent" only.
    blocks : int
        How many blocks there are.
    """

    rule: str
    probability: float | None
    blocks: int

    def __post_init__(self) -> None:
        one_of("activation", self.rule, RULES)
        if (self.rule == "independent") != (self.probability is not None):
            raise ValueError(f"probability goes with activation='independent', got activation={self.rule!r}.")
        if self.probability is not None:
            number_in("probability", self.probability, 0.0, 1.0, above=True)

    @property
    def is_random(self) -> bool:
        return self.rule in ("uniform", "independent")

    @property
    def at_once(self) -> int:
        """For how many steps blocks and noise are drawn together: a pass over the blocks, where one moves a step."""
        return self.blocks if self.rule in ("cyclic", "uniform") else 1

    @property
    def frequency(self) -> float | None:
        """The probability with which a block moves in a step, whatever happened before; None if there is none."""
        chances = {"all": 1.0, "uniform": 1.0 / self.blocks, "independent": self.probability}
        return chances.get(self.rule)

    def draw(self, rng: RandomGenerator, first: int, steps: int) -> list[IntArray]:
        """The active blocks of some steps from `first` on, in increasing order."""
        every = np.arange(self.blocks, dtype=np.int64)
        if self.rule == "all":
            return [every] * steps
        if self.rule == "cyclic":
            return list(((first + np.arange(steps, dtype=np.int64)) % self.blocks)[:, None])
        if self.rule == "uniform":
            return list(rng.integers(self.blocks, steps)[:, None])
        return [np.flatnonzero(rng.uniform(self.blocks) < (self.probability or 0.0)) for _ in range(steps)]

    def releases(self, steps: int, schedule: tuple[IntArray, ...] | None, one_block_per_row: bool) -> int:
        """How many releases can concern one row: those of all its blocks, in all steps.

        Without a schedule the number must be the same for every draw.
        """
        if schedule is None:
            passes = 1 if self.rule == "all" else self.blocks  # steps until every block has moved once
            return -(-steps // passes) if one_block_per_row else steps * self.blocks // passes
        moves = np.bincount(np.concatenate([*schedule, np.empty(0, np.int64)]), minlength=self.blocks)
        return int(moves.max() if one_block_per_row else moves.sum())
