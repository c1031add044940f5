"""Poisson samples that are known by a key: who has it finds the members among any rows, without drawing for the others.

All steps of a sample are one long sequence of trials, n for each step. It is cut into stretches, each with a key
stream of its own: what is drawn of a stretch does not depend on where a table is cut into blocks, nor on which of them
are asked for. docs/guarantees/randomness.md says what law that is.
"""

from __future__ import annotations

import hashlib
import math
import operator
from dataclasses import dataclass, field

import numpy as np

from discreet._common.types import IndexArray
from discreet.privacy.random.keystream import BLOCK, Keystream

MOST_TRIALS = 1 << 62
MEMBERS = 15 << 10  # expected of a stretch: as many draws cost much more than a new key, and take one block of words


@dataclass(frozen=True)
class PoissonSample:
    """Independent samples of the rows 0..n-1, one a step; each row joins each of them with probability `rate`.

    Copies draw the same samples, wherever they are: a sample may be sent to other machines. The key is as secret as
    the rows, since the cost of a sampled release rests on nobody knowing who took part. A key serves one series of
    steps.

    Parameters
    ----------
    key : bytes
        32 random bytes; `RandomGenerator.poisson_sample` draws them.
    rows : int
        n, the number of rows that there are.
    rate : float
        In (0, 1].
    """

    key: bytes = field(repr=False)
    rows: int
    rate: float

    def __post_init__(self) -> None:
        if self.rows < 0:
            raise ValueError(f"n must be >= 0, got {self.rows}")
        if not 0.0 < self.rate <= 1.0:
            raise ValueError(f"rate must be in (0, 1], got {self.rate}")

    def batches(self, steps: int) -> tuple[IndexArray, IndexArray]:
        """The members of the first samples: those of sample t are indices[indptr[t]:indptr[t + 1]], in order."""
        steps = operator.index(steps)
        if steps < 0 or self.rows * steps > MOST_TRIALS:
            raise ValueError(f"n and steps must be >= 0 and their product at most 2^62, got {self.rows} and {steps}")
        return self._drawn(0, 0, self.rows * steps, steps)

    def members(self, step: int, start: int, stop: int) -> IndexArray:
        """The members of sample number `step` among the rows start..stop-1, in order."""
        if not 0 <= start <= stop <= self.rows or step < 0 or (step + 1) * self.rows > MOST_TRIALS:
            raise ValueError(f"there are {self.rows} rows and none of number {start} to {stop}")
        base = step * self.rows
        return self._drawn(base, base + start, base + stop, 1)[1]

    def _drawn(self, base: int, first: int, last: int, steps: int) -> tuple[IndexArray, IndexArray]:
        """The successes of the trials first..last-1, as rows of so many steps, the first of which begins at `base`."""
        from discreet.kernels import sampling

        length, decay = stretch_length(self.rate), -math.log1p(-self.rate) if self.rate < 1.0 else math.inf
        indptr, words = np.zeros(steps + 1, np.int64), np.empty(BLOCK + 2, np.uint64)
        found, state = np.empty(_room(self.rate * (last - first)), np.int64), (0, 0, 0)
        for number in range(first // length, -(-last // length)):
            stream, end = _stream(self.key, number), min((number + 1) * length, last)
            state = (number * length, *state[1:])
            while state[0] < end:
                wanted = min(_room(self.rate * (end - state[0])), BLOCK)
                if found.size - state[2] < wanted:
                    found = np.concatenate((found, np.empty(max(found.size, wanted), np.int64)))
                stream.fill(words, wanted)
                state = sampling.successes(words[:wanted], decay, first, end, self.rows, base, indptr, found, *state)
        indptr[state[1] + 1 :] = state[2]
        return indptr, found[: state[2]]


def stretch_length(rate: float) -> int:
    """How many trials have a key in common; from the rate alone, so that all who have a sample cut it alike."""
    return MOST_TRIALS if rate * MOST_TRIALS <= MEMBERS else math.ceil(MEMBERS / rate)


def _room(expected: float) -> int:
    """For a number of successes: hardly ever too small."""
    return max(0, int(expected + 5.0 * math.sqrt(expected))) + 16


def _stream(key: bytes, number: int) -> Keystream:
    domain = b"discreet poisson stretch 1:"  # part of every key: another text would change all seeded samples
    return Keystream(hashlib.sha256(domain + key + number.to_bytes(8, "little")).digest())
