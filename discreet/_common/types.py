"""The types that every room uses, written once."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

FloatArray: TypeAlias = npt.NDArray[np.float64]
IntArray: TypeAlias = npt.NDArray[np.int64]
IndexArray: TypeAlias = npt.NDArray[np.int64]  # row or column numbers
BoolArray: TypeAlias = npt.NDArray[np.bool_]

Progress: TypeAlias = Callable[[int, int], None]  # called as progress(done, total)
