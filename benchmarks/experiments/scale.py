"""What the default fit costs on large tables: in memory, with more rows than memory, on Dask workers, with faults.

All tables are generated with fixed seeds. Each part runs in a process of its own with all cores.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from framework import Cell, Experiment
from framework.runner import THREADS
from framework.timing import in_new_process
from scale import sections

NAME = "scale"
SECTIONS = {  # the modules that measure, and how their figures are shown
    "in_memory": sections.in_memory,
    "growth": sections.growth,
    "dask_overhead": sections.dask_overhead,
    "dask_faults": sections.dask_faults,
}


def cells(quick: bool) -> Iterator[Cell]:
    for part in SECTIONS:
        yield Cell(NAME, "generated", part, {"quick": quick})


def measure(cell: Cell) -> dict[str, Any]:
    threads = dict.fromkeys(THREADS, str(os.cpu_count() or 1))  # as a user has it
    return {"found": in_new_process(f"scale.{cell.method}", *["quick"] * cell.setting["quick"], **threads)}


def page(results: Any, folder: Any) -> dict[str, str]:
    return {cell.method: SECTIONS[cell.method](numbers["found"]) for cell, numbers in results.select()}


scale = Experiment(
    NAME,
    NAME,
    "the default fit on large tables: against L-BFGS and a copy, growth, Dask with and without faults",
    cells,
    measure,
    page,
    file="scale.md",
    alone=True,
)
