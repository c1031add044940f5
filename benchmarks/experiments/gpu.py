"""Sums and fits on a GPU against the processor beside it, with and without the copy; needs a CUDA device."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from framework import Cell, Experiment
from framework.runner import THREADS
from framework.timing import in_new_process
from scale import sections

NAME = "gpu"
PARTS = {"checks": 200_000, "sums": 100_000_000, "fits": 20_000_000}  # and their rows
QUICK_ROWS = 200_000


def cells(quick: bool) -> Iterator[Cell]:
    for part, rows in PARTS.items():
        yield Cell(NAME, "generated", part, {"rows": QUICK_ROWS if quick else rows})


def measure(cell: Cell) -> dict[str, Any]:
    threads = dict.fromkeys(THREADS, str(os.cpu_count() or 1))  # as a user has it
    return {"found": in_new_process("scale.gpu", cell.method, str(cell.setting["rows"]), **threads)}


def page(results: Any, folder: Any) -> dict[str, str]:
    """The section, where sums and fits have been measured: on a machine without a GPU it is left as it is."""
    found = {cell.method: numbers["found"] for cell, numbers in results.select()}
    return {NAME: sections.gpu(found)} if {"sums", "fits"} <= set(found) else {}


gpu = Experiment(
    NAME, NAME, "sums and fits on a GPU, beside the processor", cells, measure, page, "scale.md", alone=True
)
