"""Speed and memory, as ratios within one run on one core. Run: make bench-speed.

Prints a table of what was measured, what it was measured against and the target; with --write it also puts the
table into docs/benchmarks/speed.md, where every line is explained.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable

import timing
from stored_tables import command, may_write

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
BEGIN, END = "<!-- table -->\n", "<!-- end of table -->\n"


def measurements(compiled: reference.Reference | None) -> Iterable[Callable[[], list[timing.Row]]]:
    """In the order of the table."""
    yield lambda: races.race_rows(compiled)
    yield races.draw_rows
    yield growth.growth_rows
    yield lambda: [growth.sparse_row()]
    yield memory.memory_rows
    yield beginnings.import_rows
    yield beginnings.first_fit_rows


def write(table: str) -> None:
    """Replace the table of the page and leave its prose alone."""
    page = PAGE.read_text()
    before, after = page.index(BEGIN) + len(BEGIN), page.index(END)
    PAGE.write_text(f"{page[:before]}\n{table}\n\n{page[after:]}")


def main() -> int:
    """Print the table; 1 if a target was missed."""
    parser = command(__doc__, "dorothea", other="all others are generated")
    parser.add_argument("--write", action="store_true", help="put the table into docs/benchmarks/speed.md")
    asked = parser.parse_args()
    write_page = asked.write and may_write("dorothea")
    compiled = reference.build()
    if compiled is None:
        print("No C++ compiler found (c++, g++ or clang++): our own times only, without ratios.\n")
    print(HEAD, flush=True)
    rows: list[timing.Row] = []
    for measure in measurements(compiled):
        for row in measure():
            print(row.markdown(), flush=True)
            rows.append(row)
    if write_page:
        write("\n".join([HEAD, *(row.markdown() for row in rows)]))
    missed = [row.what for row in rows if row.passed is False]
    print(f"\n{len(missed)} of {sum(row.passed is not None for row in rows)} targets missed: {missed or 'none'}")
    return int(bool(missed))


if __name__ == "__main__":
    sys.exit(main())
