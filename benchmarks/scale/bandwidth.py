"""How fast the machine copies memory, with one thread and with all: what a pass over a table is held against."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from in_memory import best_of

ENTRIES, QUICK_ENTRIES = 80_000_000, 8_000_000


def measure(quick: bool = False) -> dict[str, float]:
    """Bytes a second that a copy reads (and writes as many), by one thread and by all of them."""
    from discreet._common.threads import thread_count

    entries = QUICK_ENTRIES if quick else ENTRIES
    first, second, jobs = np.ones(entries), np.empty(entries), thread_count(None)
    second[:] = 0.0  # the pages exist before they are timed
    found = {"copy_one": first.nbytes / best_of(lambda: np.copyto(second, first))}
    parts = [slice(start, start + entries // jobs) for start in range(0, entries, entries // jobs)]

    def copy(part: Any) -> None:
        np.copyto(second[part], first[part])

    with ThreadPoolExecutor(jobs) as pool:
        found["copy_all"] = first.nbytes / best_of(lambda: list(pool.map(copy, parts)))
    return found
