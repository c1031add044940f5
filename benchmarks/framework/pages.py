"""Writes the pages of a suite: each experiment is a section of the page that it names."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from framework import registry
from framework.kinds import Experiment
from framework.results import Results
from framework.store import Store

FOLDER = registry.ROOT.parent / "docs" / "benchmarks"


def write(suite: str, store: Store, only: Sequence[str] | None = None, folder: Path = FOLDER) -> list[Path]:
    """Replace the sections between their markers, and draw the plots; what is around the markers is left alone."""
    written = []
    known = [one for one in registry.experiments().values() if one.suite == suite and one.page is not None and one.file]
    for one in sorted(known, key=lambda one: (one.file, one.order)):
        if only and one.name not in only:
            continue
        path = folder / one.file
        text = path.read_text()
        for name, part in sections_of(one, Results(one, store), folder).items():
            text = replaced(text, one.file, name, part)
        path.write_text(text)
        written.append(path)
    return list(dict.fromkeys(written))


def sections_of(experiment: Experiment, results: Results, folder: Path) -> dict[str, str]:
    """The Markdown of an experiment by section, with a sentence about what is missing or failed."""
    assert experiment.page is not None
    found = experiment.page(results, folder)
    if isinstance(found, dict):  # sections of its own, those that are complete
        return found
    told = []
    if results.missing:
        told.append(f"**Incomplete:** {len(results.missing)} of {len(results.cells)} cells have not been measured.")
    for cell, why in results.failures:
        told.append(f"Failed: {cell.describe()}: {why}.")
    return {experiment.name: "\n\n".join([found, *told])}


def replaced(text: str, file: str, name: str, section: str) -> str:
    """The page with another section between the markers of this name."""
    begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
    if begin not in text or end not in text:
        raise ValueError(f"{file} has no place for {name}: add {begin.strip()} and {end}.")
    before, after = text.index(begin) + len(begin), text.index(end)
    return f"{text[:before]}\n{section}\n\n{text[after:]}"
