"""Faults at live engines: a Dask cluster and a federation on Flower, with processes killed, disks full, clocks wrong.

Every fault has a cluster or a federation of its own, on the loopback interface. Disks of a few kilobytes are mounted
for it, so that root runs this, on Linux.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from framework import Cell, Experiment
from framework.markdown import table
from framework.timing import in_new_process

NAME = "faults"
ENGINES = {"dask_cluster": ("none", "worker", "workers", "scheduler", "driver", "full", "fills", "read-only", "ahead",
                            "back"),
           "flower_federation": ("client", "client-gone", "superlink", "server", "server-disk", "full", "fills",
                                 "read-only", "client-ahead", "client-back", "server-ahead")}  # fmt: skip


def cells(quick: bool) -> Iterator[Cell]:
    for engine, faults in ENGINES.items():
        for fault in faults[:2] if quick else faults:
            yield Cell(NAME, "generated", engine, {"fault": fault})


def measure(cell: Cell) -> dict[str, Any]:
    return dict(in_new_process(f"faults.{cell.method}", cell.setting["fault"], OPENBLAS_NUM_THREADS="1"))


def page(results: Any, folder: Any) -> dict[str, str]:
    head = ["fault", "what happens", "message", "entries of the ledger", ""]
    found: dict[str, list[list[str]]] = {}
    for cell, each in results.select():
        verdict = "as it should be" if each["passed"] else "**NOT AS IT SHOULD BE**"
        line = [
            each["fault"],
            each["happens"],
            f"`{each['message']}`" if each["message"] else "",
            each["ledger"],
            verdict,
        ]
        found.setdefault(cell.method, []).append(line)
    return {engine: table(head, lines) for engine, lines in found.items()}


faults = Experiment(
    NAME,
    NAME,
    "a Dask cluster and a federation on Flower with faults: what happens, what is said, what the ledger holds",
    cells,
    measure,
    page,
    file="faults.md",
    alone=True,
)
