"""The plain C++ loops that `experiments/speed.py` races against: built on demand, called through ctypes."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path

import numpy as np
from numpy.ctypeslib import ndpointer
from numpy.typing import NDArray

Array = NDArray[np.float64]

HERE = Path(__file__).parent
LIBRARY = HERE / "build" / "reference.so"
# No -march=native and no -ffast-math: what a build with the usual flags gives its users.
FLAGS = ["-std=c++17", "-O3", "-shared", "-fPIC"]

_ARRAY = ndpointer(np.float64, flags="C_CONTIGUOUS")
_INTEGER, _REAL, _SEED = ctypes.c_int64, ctypes.c_double, ctypes.c_uint64


class Reference:
    """Both loops as Python functions; `seed` starts the generator of the standard library."""

    def __init__(self, library: Path) -> None:
        loaded = ctypes.CDLL(str(library))
        size = [_ARRAY, _ARRAY, _INTEGER, _INTEGER, _INTEGER]
        self._descent, self._stochastic = loaded.coordinate_descent, loaded.stochastic_gradient
        self._descent.argtypes = [*size, _ARRAY, _ARRAY, _REAL, _REAL, _SEED, _ARRAY]
        self._stochastic.argtypes = [*size, _REAL, _REAL, _REAL, _REAL, _SEED, _ARRAY]
        self._descent.restype = self._stochastic.restype = None

    def coordinate_descent(
        self, X: Array, y: Array, steps: int, clip: Array, step: Array, noise: float, ridge: float, seed: int
    ) -> Array:
        """`noise` is the standard deviation over the clipping threshold of the coordinate."""
        weights = np.empty(X.shape[1])
        self._descent(X, y, *X.shape, steps, clip, step, noise, ridge, seed, weights)
        return weights

    def stochastic_gradient(
        self, X: Array, y: Array, steps: int, clip: float, step: float, noise: float, ridge: float, seed: int
    ) -> Array:
        """One row per step; `noise` is the standard deviation over the clipping norm."""
        weights = np.empty(X.shape[1])
        self._stochastic(X, y, *X.shape, steps, clip, step, noise, ridge, seed, weights)
        return weights


def build() -> Reference | None:
    """Compile if needed and load; None if there is no compiler."""
    compiler = next((path for name in ("c++", "g++", "clang++") if (path := shutil.which(name))), None)
    if compiler is None:
        return None
    sources = sorted(HERE.glob("*.cpp"))
    newest = max(source.stat().st_mtime for source in sources)
    if not LIBRARY.exists() or LIBRARY.stat().st_mtime < newest:
        LIBRARY.parent.mkdir(exist_ok=True)
        subprocess.run([compiler, *FLAGS, *map(str, sources), "-o", str(LIBRARY)], check=True)
    return Reference(LIBRARY)
