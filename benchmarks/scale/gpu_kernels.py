"""Which tiles the kernels of discreet/kernels/fused_gradient.py should have: times of several, on this device.

python benchmarks/scale/gpu_kernels.py
"""

from __future__ import annotations

import argparse
from functools import partial
from itertools import product

import numpy as np
import torch
import triton

from discreet.kernels.fused_gradient import mapped_rows, rounded_row_sum

ROWS, COLUMNS = 20_000_000, 50


def milliseconds(task):
    """The median time by events on the device; infinite for tiles that it cannot run."""
    try:
        return float(triton.testing.do_bench(task, warmup=20, rep=100, return_mode="median"))
    except Exception as error:  # what a compiler or a device may say of tiles that are too large
        print(f"    {type(error).__name__}: {str(error)[:80]}")
        return float("inf")


def tiles():
    """Entries and warps, with 4 to 32 entries a thread: more do not stay in registers."""
    return [(e, n) for e, n in product((512, 1024, 2048, 4096), (1, 2, 4, 8)) if 4 <= e // (32 * n) <= 32]


def best_map(X, columns, w, matrix):
    """The tile with which a product with a vector takes least time, printed beside all others."""
    found = {}
    for tile in tiles():
        found[tile] = milliseconds(partial(mapped_rows, X, columns, w, *tile))
        tenth = milliseconds(partial(mapped_rows, X[: ROWS // 10], columns, matrix, *tile))
        print(f"map {tile}: {found[tile]:.2f} ms; by a matrix, a tenth of the rows: {tenth:.2f} ms", flush=True)
    return min(found, key=found.get)


def best_sum(X, columns, factors):
    """The same of sums of rounded rows."""
    found = {}
    for tile in [(*tile, each) for tile, each in product(tiles(), (16, 128))]:
        found[tile] = milliseconds(partial(rounded_row_sum, X, columns, factors, *tile))
        print(f"sum {tile}: {found[tile]:.2f} ms", flush=True)
    return min(found, key=found.get)


def main() -> tuple[tuple[int, ...], tuple[int, ...]]:
    argparse.ArgumentParser(description=__doc__).parse_args()
    X = torch.randn(ROWS, COLUMNS, device="cuda")
    bounds = np.stack([np.full(COLUMNS, -5.0), np.full(COLUMNS, 5.0), np.zeros(COLUMNS), np.ones(COLUMNS)])
    numbers = {"dtype": torch.float64, "device": "cuda"}
    columns, w = torch.as_tensor(bounds, **numbers), torch.randn(1, COLUMNS + 1, **numbers)
    print(f"copy of the table: {milliseconds(X.clone):.2f} ms")
    best = best_map(X, columns, w, torch.randn(COLUMNS + 1, COLUMNS + 1, **numbers))
    best = best, best_sum(X, columns, 1e6 * torch.randn(ROWS, **numbers))
    print(f"best: {best}")
    return best


if __name__ == "__main__":
    main()
