"""Speed and memory, as ratios within one run on one core. Run: make bench-speed.

Prints a table of what was measured, what it was measured against and the target, and writes it to
docs/benchmarks/speed.md. What each line means is in benchmarks/README.md.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import timing

timing.use_one_core()  # before anything imports NumPy

import beginnings  # noqa: E402
import growth  # noqa: E402
import memory  # noqa: E402
import races  # noqa: E402
import reference  # noqa: E402

PAGE = timing.ROOT / "docs" / "benchmarks" / "speed.md"
HEAD = """\
| what | ours | measured against | ratio | target | |
| --- | --- | --- | --- | --- | --- |"""
ABOUT = """\
# Speed and memory

Written by `make bench-speed`; how each line is measured is in
[benchmarks/README.md](../../benchmarks/README.md). Everything ran on one of {cores} cores. Ratios are between
measurements of the same run, taken in turns; times alone mean little on another machine.

"""


def measurements(compiled: reference.Reference | None) -> Iterable[Callable[[], list[timing.Row]]]:
    """In the order of the table."""
    yield lambda: races.race_rows(compiled)
    yield races.draw_rows
    yield growth.growth_rows
    yield lambda: [growth.sparse_row()]
    yield memory.memory_rows
    yield beginnings.import_rows
    yield beginnings.first_fit_rows


def main(page: Path = PAGE) -> int:
    """Print and write the table; 1 if a target was missed."""
    compiled = reference.build()
    if compiled is None:
        print("No C++ compiler found (c++, g++ or clang++): our own times only, without ratios.\n")
    print(HEAD, flush=True)
    rows: list[timing.Row] = []
    for measure in measurements(compiled):
        for row in measure():
            print(row.markdown(), flush=True)
            rows.append(row)
    page.parent.mkdir(parents=True, exist_ok=True)
    about = ABOUT.format(cores=os.cpu_count())
    page.write_text(about + "\n".join([HEAD, *(row.markdown() for row in rows)]) + "\n")
    missed = [row.what for row in rows if row.passed is False]
    print(f"\n{len(missed)} of {sum(row.passed is not None for row in rows)} targets missed: {missed or 'none'}")
    return int(bool(missed))


if __name__ == "__main__":
    sys.exit(main())
