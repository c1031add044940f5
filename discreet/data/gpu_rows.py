"""Rows of a dense table that lies on a GPU, as a PyTorch tensor: it stays there, and its blocks are views.

Parts that are marked by `takes_tensors` are computed on the device. All others get blocks in the memory of the host,
copied there for the moment: every sum can be had, and the frequent ones are fast. No noise is drawn on the device.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from discreet._common.types import FloatArray
from discreet.data.rows import (
    Data,
    DenseElsewhere,
    block_slices,
    can_take_tensors,
    max_over_blocks,
    on_host,
    sum_over_blocks,
)
from discreet.data.validation import NOT_FINITE

# Of a block on the device, a GiB in single precision: with fewer, starting kernels counts in every step; with more,
# fewer threads of the host share what is computed there once in a fit.
BLOCK_ENTRIES = 1 << 28
NUMBERS = ("torch.float32", "torch.float64")


@dataclass(frozen=True, eq=False)
class GpuRows(DenseElsewhere):
    """Checked rows on a GPU; the target and the weights, already encoded, lie on the host and are copied once."""

    X: Any
    y: FloatArray
    weight: FloatArray | None = None
    jobs: int = 1

    @property
    def rows(self) -> int:
        return int(self.X.shape[0])

    @property
    def columns(self) -> int:
        return int(self.X.shape[1])

    def blocks(self) -> Iterator[Data]:
        """Copies in the memory of the host; every block but the last has `block_rows(columns)` rows."""
        for part in block_slices(self.rows, self.columns):
            block = self._block(part)
            yield replace(block, X=on_host(block.X))

    def sum(self, part: Callable[[Data], FloatArray]) -> FloatArray:
        return sum_over_blocks(self._blocks_for(part), part, self.jobs)

    def max(self, part: Callable[[Data], FloatArray]) -> FloatArray:
        return max_over_blocks(self._blocks_for(part), part, self.jobs)

    def _blocks_for(self, part: Any) -> Any:
        return self._on_device if can_take_tensors(part) else self.blocks()

    @cached_property
    def _on_device(self) -> list[Data]:
        size = max(1, BLOCK_ENTRIES // self.columns)
        return [self._block(slice(start, start + size)) for start in range(0, self.rows, size)]

    def _block(self, part: slice) -> Data:
        weight = None if self.weight is None else self.weight[part]
        return Data(self.X[part], self.y[part], weight, start=part.start)


def check_tensor(X: Any) -> Any:
    """A table on a GPU as it is needed: finite numbers in two dimensions, row by row; refuses all else."""
    from discreet.kernels.tensors import all_finite

    if str(X.device.type) not in ("cuda", "cpu"):
        raise ValueError(f"X lies on the device {str(X.device)!r}, which has no double precision here; pass X.cpu().")
    if X.layout != sys.modules["torch"].strided:
        raise ValueError("X is a sparse tensor; only dense tables stay on a GPU: pass a SciPy sparse matrix.")
    if X.ndim != 2 or 0 in X.shape:
        raise ValueError(f"X has shape {tuple(X.shape)}; pass a table of at least one row and one column.")
    if str(X.dtype) not in NUMBERS:
        raise ValueError(f"X has the type {X.dtype}; on a GPU tables are float32 or float64: pass X.float().")
    if X.requires_grad:
        raise ValueError("X requires gradients, which nothing here computes; pass X.detach().")
    table = X.contiguous()
    if not all_finite(table):
        raise ValueError(NOT_FINITE["X"])
    return table
