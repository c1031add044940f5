"""Validated rows, and how solvers that need only sums over rows get at them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import scipy.sparse as sp

from discreet._common.types import FloatArray

BLOCK_ENTRIES = 1 << 16  # entries handled at once, so that temporaries stay in the cache


@dataclass(frozen=True, eq=False)
class Data:
    """Validated rows: a dense array in either order, or a SciPy sparse matrix; y; optional weights.

    `owned` says that X is a copy of our own, which may be overwritten to save memory: such Data serves one run.
    """

    X: Any
    y: FloatArray
    weight: FloatArray | None = None
    owned: bool = False

    @property
    def rows(self) -> int:
        return int(self.X.shape[0])

    @property
    def sparse(self) -> bool:
        return sp.issparse(self.X)
