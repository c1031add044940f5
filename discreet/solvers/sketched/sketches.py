"""Unbiased diagonal sketches: random sets of coordinates, drawn without the rows.

A sketch S gives the random matrix C = diag(1{j in S} / p_j), p_j = P(j in S) > 0, whose mean is the identity.
Moving several coordinates at once needs shorter steps than moving one: `inflation` is the factor on the
coordinate-wise smoothness that makes the expected step safe (derivations: docs/guarantees/sketched.md).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from discreet._common.types import FloatArray, IntArray
from discreet.privacy.random.generator import RandomGenerator


class Sets(NamedTuple):
    """Set k is members[starts[k]:starts[k + 1]]; no set is empty, no coordinate is twice in a set."""

    starts: IntArray
    members: IntArray

    @property
    def sizes(self) -> IntArray:
        return np.diff(self.starts)

    def spread(self, values: FloatArray) -> FloatArray:
        """One value per set, repeated for each of its members."""
        return np.repeat(values, self.sizes)


def equal_sets(members: IntArray) -> Sets:
    """The rows of a (sets, size) array."""
    count, size = members.shape
    return Sets(size * np.arange(count + 1, dtype=np.int64), np.ascontiguousarray(members).ravel())


class Sketch(ABC):
    """A law of random non-empty sets of the coordinates 0..coordinates-1."""

    coordinates: int

    @abstractmethod
    def probabilities(self) -> FloatArray:
        """p_j, the chance that a set holds coordinate j."""

    @abstractmethod
    def inflation(self, support: int) -> FloatArray:
        """Factor on the smoothness of each coordinate, for rows with at most `support` non-zeros."""

    @abstractmethod
    def draw(self, rng: RandomGenerator, count: int) -> Sets:
        """Independent sets."""

    @property
    def mean_size(self) -> float:
        return float(self.probabilities().sum())

    @property
    def largest_size(self) -> int:
        """No set has more coordinates."""
        return self.coordinates


@dataclass(frozen=True, eq=False)
class Singletons(Sketch):
    """One coordinate a step, uniformly (`weights` None) or in proportion to the weights."""

    coordinates: int
    weights: FloatArray | None = None

    @property
    def largest_size(self) -> int:
        return 1

    def probabilities(self) -> FloatArray:
        if self.weights is None:
            return np.full(self.coordinates, 1.0 / self.coordinates)
        return self.weights / self.weights.sum()

    def inflation(self, support: int) -> FloatArray:
        return np.ones(self.coordinates)

    def draw(self, rng: RandomGenerator, count: int) -> Sets:
        if self.weights is None:
            chosen = rng.integers(self.coordinates, count)
        else:
            chosen = rng.choice(self.probabilities(), count)
        return equal_sets(chosen[:, None])


@dataclass(frozen=True, eq=False)
class Nice(Sketch):
    """All sets of `size` coordinates are equally likely."""

    coordinates: int
    size: int

    @property
    def largest_size(self) -> int:
        return self.size

    def probabilities(self) -> FloatArray:
        return np.full(self.coordinates, self.size / self.coordinates)

    def inflation(self, support: int) -> FloatArray:
        overlap = (support - 1) * (self.size - 1) / max(1, self.coordinates - 1)
        return np.full(self.coordinates, 1.0 + overlap)

    def draw(self, rng: RandomGenerator, count: int) -> Sets:
        from discreet.kernels.coordinate import partial_shuffles

        picks = np.stack([i + rng.integers(self.coordinates - i, count) for i in range(self.size)])
        members = np.empty((count, self.size), dtype=np.int64)
        partial_shuffles(np.arange(self.coordinates, dtype=np.int64), picks, members)
        return equal_sets(members)


@dataclass(frozen=True, eq=False)
class Independent(Sketch):
    """Every coordinate by its own coin of probability size / coordinates; empty sets are drawn again."""

    coordinates: int
    size: int

    @property
    def rate(self) -> float:
        return self.size / self.coordinates

    def probabilities(self) -> FloatArray:
        empty = math.exp(self.coordinates * math.log1p(-self.rate)) if self.rate < 1.0 else 0.0
        return np.full(self.coordinates, self.rate / (1.0 - empty))

    def inflation(self, support: int) -> FloatArray:
        return np.full(self.coordinates, 1.0 + (support - 1) * self.rate)

    def draw(self, rng: RandomGenerator, count: int) -> Sets:
        sizes, members, found = [], [], 0
        while found < count:
            starts, indices = rng.poisson_batches(self.coordinates, self.rate, count - found)
            drawn = np.diff(starts)
            sizes.append(drawn[drawn > 0])
            members.append(indices)
            found += sizes[-1].size
        return Sets(np.concatenate([[0], np.cumsum(np.concatenate(sizes))]), np.concatenate(members))


@dataclass(frozen=True, eq=False)
class Partition(Sketch):
    """One block of a fixed partition a step, uniformly (`weights` None) or in proportion to the block's weights."""

    blocks: tuple[tuple[int, ...], ...]
    weights: FloatArray | None = None

    @property
    def coordinates(self) -> int:  # type: ignore[override]
        return sum(len(block) for block in self.blocks)

    @property
    def largest_size(self) -> int:
        return max(len(block) for block in self.blocks)

    def probabilities(self) -> FloatArray:
        return self._per_coordinate(self._chances())

    def inflation(self, support: int) -> FloatArray:
        return self._per_coordinate(np.array([float(min(support, len(block))) for block in self.blocks]))

    def draw(self, rng: RandomGenerator, count: int) -> Sets:
        if len(self.blocks) == 1:
            chosen = np.zeros(count, dtype=np.int64)
        elif self.weights is None:
            chosen = rng.integers(len(self.blocks), count)
        else:
            chosen = rng.choice(self._chances(), count)
        parts = [np.array(block, dtype=np.int64) for block in self.blocks]
        sizes = np.array([part.size for part in parts], dtype=np.int64)[chosen]
        starts = np.concatenate([[0], np.cumsum(sizes)])
        return Sets(starts, np.concatenate([parts[block] for block in chosen]))

    def _chances(self) -> FloatArray:
        if self.weights is None:
            return np.full(len(self.blocks), 1.0 / len(self.blocks))
        totals = np.array([self.weights[list(block)].sum() for block in self.blocks])
        return totals / totals.sum()

    def _per_coordinate(self, values: FloatArray) -> FloatArray:
        result = np.empty(self.coordinates)
        for block, value in zip(self.blocks, values, strict=True):
            result[list(block)] = value
        return result


def complete_partition(
    blocks: tuple[tuple[int, ...], ...], columns: int, intercept: bool
) -> tuple[tuple[int, ...], ...]:
    """The user's blocks, with a block of its own for an intercept that they leave out; refused if not a partition."""
    try:
        listed = sorted(int(j) for block in blocks for j in block if int(j) == j)
    except (TypeError, ValueError):
        raise ValueError(f"blocks must be a list of lists of column numbers; got {blocks!r}.") from None
    if any(len(block) == 0 for block in blocks):
        raise ValueError("blocks must not hold an empty block: no step could be made of it.")
    if intercept and columns not in listed:
        blocks, listed = (*blocks, (columns,)), [*listed, columns]
    if listed != list(range(columns + intercept)) or len(listed) != sum(len(block) for block in blocks):
        last = f", and {columns}, the intercept, at most once" if intercept else ""
        raise ValueError(f"blocks must hold each of the columns 0 to {columns - 1} exactly once{last}.")
    return tuple(tuple(int(j) for j in block) for block in blocks)
