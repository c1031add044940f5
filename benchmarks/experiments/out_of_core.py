"""Tables larger than memory: peak memory of fits that read a Parquet file block by block, and the time of a pass.

A cell makes a file of random rows in a temporary folder and trains on it in a fresh process. On a part of the rows each
model is compared, bit for bit, with that of the same rows in memory under the same seed. How long a pass takes stands
beside `cat` and Arrow's own decoding of the file.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from framework import Cell, Experiment
from framework.markdown import table
from framework.runner import THREADS
from framework.timing import in_new_process
from out_of_core.fits import COMMAND, STEPS
from out_of_core.table import write_table

NAME = "out-of-core"
ROWS, QUICK_ROWS, COMPARED_ROWS = 25_000_000, 100_000, 1_000_000
LEAST_RATIO = 4.0
SOLVERS = ("newton", "gd", "sufficient-statistics", COMMAND)
PASS = "pass"


def cells(quick: bool) -> Iterator[Cell]:
    rows = QUICK_ROWS if quick else ROWS
    for solver in SOLVERS[2:3] if quick else SOLVERS:
        yield Cell(NAME, "random rows", solver, {"rows": rows, "compared": min(rows, COMPARED_ROWS)})
    yield Cell(NAME, "random rows", PASS, {"rows": min(rows, COMPARED_ROWS)})


def measure(cell: Cell) -> dict[str, Any]:
    threads = dict.fromkeys(THREADS, str(os.cpu_count() or 1))  # as a user has it
    with tempfile.TemporaryDirectory() as folder:
        path, small = Path(folder) / "rows.parquet", Path(folder) / "compared.parquet"
        write_table(path, cell.setting["rows"])
        numbers = {"bytes": path.stat().st_size}
        if cell.method == PASS:
            return {**numbers, "passes": in_new_process("out_of_core.passes", str(path), **threads)}
        found = in_new_process("out_of_core.fits", cell.method, str(path), "stored", **threads)
        numbers |= {"peak": found["peak"], "seconds": found["seconds"]}
        if cell.method == COMMAND:  # its noise is secure: two fits differ
            return numbers
        write_table(small, cell.setting["compared"])
        forms = ("stored", "memory")
        models = [in_new_process("out_of_core.fits", cell.method, str(small), form, **threads) for form in forms]
        return {**numbers, "same": models[0]["coef"] == models[1]["coef"]}


def page(results: Any, folder: Any) -> dict[str, str]:
    sections = {}
    fits = [row(cell, found) for cell, found in results.select() if cell.method != PASS]
    if fits:
        head = ["fit", "file", "peak memory", "file / peak", "target", "", "seconds", "same model as in memory"]
        sections["table"] = table(head, fits)
    for cell, found in results.select(method=PASS):
        sections["passes"] = pass_table(cell.setting["rows"], found)
    return sections


def row(cell: Cell, found: dict[str, Any]) -> list[str]:
    size, peak = found["bytes"], found["peak"]
    verdict = "pass" if size / peak >= LEAST_RATIO else "FAIL"
    compared = "not compared: its noise is secure"
    if "same" in found:
        compared = f"{'yes' if found['same'] else 'NO'}, {cell.setting['compared']:,} rows"
    steps = f", {STEPS} steps" if cell.method in ("newton", "gd") else ""
    fields = [f"`{cell.method}`{steps}", f"{size / 1e9:.2f} GB", f"{peak / 1e9:.2f} GB", f"{size / peak:.1f}"]
    return [*fields, f"at least {LEAST_RATIO:g}", verdict, f"{found['seconds']:.0f}", compared]


def pass_table(rows: int, found: dict[str, Any]) -> str:
    """How long a pass takes, line by line."""
    megabytes, lines = found["bytes"] / 1e6, []
    for name, seconds, own in found["passes"]:
        spent = f"{own:.2f}" if not name.startswith("`cat") else ""
        lines.append([name, f"{seconds:.3f}", f"{rows / 1e6 / seconds:.1f}", f"{megabytes / seconds:,.0f}", spent])
    head = [f"one pass over {rows:,} rows", "seconds", "million rows a second", "MB a second", "processor seconds"]
    return table(head, lines)


out_of_core = Experiment(
    NAME,
    NAME,
    "peak memory of fits on a file that is larger than memory, and the time of a pass",
    cells,
    measure,
    page,
    file="out-of-core.md",
    alone=True,
)
