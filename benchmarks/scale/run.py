"""All measurements of scale: memory bandwidth, the default fit in memory, growth, Dask with and without faults.

Each part runs in a process of its own and keeps its figures in build/bench-scale, as JSON; a part that is there is not
run again unless --again is given. Figures of a GPU come from gpu.py, on a machine that has one. All tables are
generated with fixed seeds. `--write` makes docs/benchmarks/scale.md of the figures.
"""

from __future__ import annotations

import argparse
import importlib
import json
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parent))
from stored_tables import command

ROOT = Path(__file__).parents[2]
FIGURES = ROOT / "build" / "bench-scale"
PARTS = ("bandwidth", "in_memory", "growth", "dask_overhead", "dask_faults")


def main() -> None:
    parser = command(__doc__, other="all are generated with fixed seeds")
    parser.add_argument("--only", choices=PARTS, action="append", help="this part alone; may be repeated")
    parser.add_argument("--quick", action="store_true", help="small tables, to see that it works; nothing is kept")
    parser.add_argument("--again", action="store_true", help="run parts again whose figures are there")
    parser.add_argument("--write", action="store_true", help="write the page from the figures")
    parser.add_argument("--part", choices=PARTS, help=argparse.SUPPRESS)  # what a process of its own is told
    options = parser.parse_args()
    if options.part:
        print(json.dumps(importlib.import_module(options.part).measure(options.quick)))
        return
    for part in options.only or PARTS:
        kept = FIGURES / f"{part}.json"
        if kept.exists() and not options.again and not options.quick:
            print(f"{part}: figures are there")
            continue
        print(f"{part} ...", flush=True)
        start = time.perf_counter()
        found = measured(part, options.quick)
        print(f"{json.dumps(found, indent=1)}\n{part}: {time.perf_counter() - start:.0f} s", flush=True)
        if not options.quick:
            FIGURES.mkdir(parents=True, exist_ok=True)
            kept.write_text(json.dumps(found, indent=1))
    if options.write:
        from page import write_page

        print(write_page(FIGURES, ROOT / "docs" / "benchmarks" / "scale.md"))


def measured(part: str, quick: bool) -> object:
    """The figures of one part, from a fresh process."""
    command = [sys.executable, __file__, "--part", part, *(["--quick"] if quick else [])]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout.splitlines()[-1])


if __name__ == "__main__":
    main()
