"""Draws of noise a second on one core: rounded exactly, at several scales, beside plain doubles and NumPy's generator.

    python benchmarks/noise.py

Ends with an error if a rounded draw at the usual scale is slower than the target.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from stored_tables import command

from discreet.privacy.random.generator import secure_generator

DRAWS = 2_000_000
TARGET = 5e6  # draws a second
USUAL = 2.0**30  # standard deviations in steps, as grid.py takes them


def draws_a_second(draw: Callable[[int], Any]) -> float:
    """The best of five runs, as other programs may be running."""
    draw(1_000)
    best = np.inf
    for _ in range(5):
        begin = time.perf_counter()
        draw(DRAWS)
        best = min(best, time.perf_counter() - begin)
    return DRAWS / best


def main() -> None:
    command(__doc__, other="none").parse_args()
    rng, numpy_rng = secure_generator(), np.random.default_rng()
    rows: list[tuple[str, Callable[[int], Any]]] = [
        ("NumPy, normal (not secure, not rounded)", numpy_rng.standard_normal),
        ("normal, not rounded", rng.normal),
        ("Laplace, not rounded", rng.laplace),
    ]
    for scale in (1.0, 2.0**20, USUAL, 2.0**34):
        rows.append((f"normal, rounded, scale {scale:,.0f}", lambda size, s=scale: rng.rounded_normal(s, size)))
        rows.append((f"Laplace, rounded, scale {scale:,.0f}", lambda size, s=scale: rng.rounded_laplace(s, size)))
    print(f"{'draws':48} million a second")
    slow = False
    for name, draw in rows:
        speed = draws_a_second(draw)
        print(f"{name:48} {speed / 1e6:8.1f}")
        slow |= f"scale {USUAL:,.0f}" in name and speed < TARGET
    if slow:
        sys.exit(f"slower than the target of {TARGET / 1e6:.0f} million a second")


if __name__ == "__main__":
    main()
