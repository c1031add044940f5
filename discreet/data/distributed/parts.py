"""What travels between the driver and the workers: a part, and the sum of what it gives for the blocks of a shard.

A part may run on any worker, and again after a fault. It must hold public or released numbers only; what it may not
hold is refused here, before anything is sent. Why: docs/guarantees/distributed.md.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from discreet._common.types import FloatArray
from discreet.data.rows import Data, Rows
from discreet.data.stored_table import StoredTable
from discreet.privacy.random.generator import RandomGenerator

Part = Callable[[Data], FloatArray]
How = Literal["sum", "max"]


@dataclass(frozen=True)
class Answer:
    """What a shard says: an array, or the error that its rows or the part have caused."""

    value: FloatArray | None = None
    error: Exception | None = None

    def unwrap(self) -> FloatArray:
        """The array; the error is raised as if it had happened here."""
        if self.error is not None:
            raise self.error
        assert self.value is not None
        return self.value


def pack(part: Part) -> bytes:
    """A part as bytes; a TypeError if it holds rows, a ledger or a generator, which may not leave the driver."""
    import cloudpickle

    class Packer(cloudpickle.Pickler):
        def persistent_id(self, found: Any) -> None:
            if is_private(found):
                raise TypeError(f"a part holds {type(found).__name__}, which may not leave the driver.")

    buffer = io.BytesIO()
    Packer(buffer, protocol=pickle.HIGHEST_PROTOCOL).dump(part)
    return buffer.getvalue()


def unpack(packed: bytes) -> Part:
    """The part again, where it is computed."""
    part: Part = pickle.loads(packed)
    return part


def is_private(found: Any) -> bool:
    """Whether an object is, or could draw or spend, something that is not released."""
    if isinstance(found, (Data, StoredTable, RandomGenerator, np.random.Generator)):
        return True
    names = {kind.__name__ for kind in type(found).__mro__ if kind.__module__.startswith("discreet.")}
    return bool(names & {"Ledger", "Reservation", "Run", "DistributedRows", "StoredRows", "BlockwiseProblem"})


def combined(terms: list[FloatArray], how: How) -> FloatArray:
    """The sums or maxima of several shards, in their order.

    Raises
    ------
    ValueError
        They differ in shape, or one is not a number: a worker is broken, and what it says must not be released.
    """
    if len({term.shape for term in terms}) > 1 or any(np.isnan(term).any() for term in terms):
        raise ValueError("a worker returned a sum of the wrong shape or with NaN, so nothing was released; look at it.")
    total = np.array(terms[0], dtype=np.float64)
    for term in terms[1:]:
        (np.add if how == "sum" else np.maximum)(total, term, out=total)
    return total


def reduce_blocks(rows: Rows, part: Part, how: How) -> FloatArray:
    """The sum or the maximum over the blocks of some rows."""
    return rows.sum(part) if how == "sum" else rows.max(part)
