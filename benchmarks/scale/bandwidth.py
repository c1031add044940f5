"""How fast the machine copies memory, with one thread and with all: what a pass over a table is held against."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from framework.timing import minima, seconds_to

ENTRIES, QUICK_ENTRIES = 80_000_000, 8_000_000


def bandwidth(quick: bool) -> dict[str, float]:
    """Bytes a second that a copy reads (and writes as many), by one thread and by all of them."""
    from discreet._common.threads import thread_count

    entries = QUICK_ENTRIES if quick else ENTRIES
    first, second, jobs = np.ones(entries), np.empty(entries), thread_count(None)
    second[:] = 0.0  # the pages exist before they are timed
    parts = [slice(start, start + entries // jobs) for start in range(0, entries, entries // jobs)]

    def copy(part: Any = slice(None)) -> None:
        np.copyto(second[part], first[part])

    with ThreadPoolExecutor(jobs) as pool:
        by = {"copy_one": copy, "copy_all": lambda: list(pool.map(copy, parts))}
        found = minima({name: seconds_to(call) for name, call in by.items()}, 3)
    return {name: first.nbytes / seconds for name, seconds in found.items()}
