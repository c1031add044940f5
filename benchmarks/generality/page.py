"""The figures, sections and plots of docs/benchmarks/generality.md.

The figures of each half are kept in results/, so that a run of one half leaves the other's alone, and the page can be
made without any run.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd

from generality import changes, plots, sections
from generality.measure import PARTS
from generality.summary import KINDS, Figures, for_each_epsilon, later, summarised

KEPT = Path(__file__).resolve().parent / "results"
HALVES = ("development", "final")


def sections_and_plots(results: Any, folder: Path) -> dict[str, str]:
    """What `page` of an experiment gives, after the figures of its half have been renewed from the cells at hand."""
    half = "final" if results.experiment.kept_back else "development"
    renew(half, {part: results.beside(f"{half}-{part}") for part in PARTS})
    summaries = kept()
    for kind in KINDS.values():
        plots.ratio_to_constant(summaries, kind, folder / f"generality-constant-{kind}.png")
        plots.ratio_to_best(summaries, kind, folder / f"generality-best-{kind}.png")
    return sections.sections(summaries)


def kept(folder: Path = KEPT) -> dict[str, Figures]:
    paths = {half: folder / f"{half}.json" for half in HALVES}
    return {half: json.loads(path.read_text()) for half, path in paths.items() if path.exists()}


def renew(half: str, parts: dict[str, Any], folder: Path = KEPT) -> None:
    """All figures of a half where no part lacks a cell; else those after the last change, if these parts are whole."""
    path = folder / f"{half}.json"
    rows = {part: pd.DataFrame() if one.missing else rows_of(one) for part, one in parts.items()}
    if all(len(frame) for frame in rows.values()):
        models = for_each_epsilon(pd.concat([rows[part] for part in PARTS if part != "tuned"], ignore_index=True))
        found = summarised(models, rows["tuned"])
        if changes.BEFORE.exists() and half == "development":
            found["changes"] = changes.compared(models)
        path.write_text(json.dumps(rounded(found), indent=1) + "\n")
    elif path.exists() and (newer := later(rows["auto"], rows["constants"], rows["tuned"])):
        path.write_text(json.dumps(json.loads(path.read_text()) | {"later": rounded(newer)}, indent=1) + "\n")


def rows_of(results: Any) -> pd.DataFrame:
    return pd.DataFrame([numbers for _, numbers in results.select() if "skipped" not in numbers])


def rounded(value: object) -> object:
    """Numbers with five digits, so that a file of figures stays small."""
    if isinstance(value, dict):
        return {key: rounded(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(item) for item in value]
    return float(f"{value:.5g}") if isinstance(value, float) else value
