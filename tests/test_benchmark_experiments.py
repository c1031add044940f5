"""Experiments of the library's own pages: a page is what its experiment writes, and rows stay with their targets."""

from __future__ import annotations

import importlib
import re
import textwrap
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[1]
NUMBER = re.compile(r"-?\d[\d,]*(\.\d+)?")


def of_persons(cell):
    """As many rows of a person as the page says; with 5, a group of all rows is one of the others."""
    most = {"nlswork, log wage": 15, "nlswork, union member": 12}.get(cell.dataset, 5)
    about = {"persons": 1, "least": 1, "most": most, "columns": 1}
    return about | ({"refused": "why"} if most == 5 and cell.method == "persons: group k" else {"score": 0.1})


MADE_UP = {
    "people": of_persons,
    "counts": lambda cell: {"d2": 0.1, "shape": [1, 1]},
    "one_hot": lambda cell: dict.fromkeys(("accuracy", "log_loss", "rows", "features", "columns", "seconds"), 1),
    "screening": lambda cell: {"ratio": 0.1},
    "warm_starts": lambda cell: {"loss": 0.1},
    "private_search": lambda cell: dict.fromkeys(("accuracy", "log_loss", "grid", "search"), 0.1),
    "admm_forms": lambda cell: {"last": 0.1, "mean": 0.1},
}


@pytest.fixture
def framework(monkeypatch):
    """The frame, as it is where all stored tables are there."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    parts = {name: importlib.import_module(f"framework.{name}") for name in ("kinds", "pages", "registry", "results")}
    monkeypatch.setattr(parts["kinds"], "is_stand_in", lambda name: False)
    return parts | {"store": importlib.import_module("framework.store")}


@pytest.mark.parametrize("name", MADE_UP)
def test_a_page_has_the_rows_and_columns_that_its_experiment_writes(name, framework, tmp_path):
    """With made-up numbers for every cell, all but the numbers is on the page already."""
    pages, registry = framework["pages"], framework["registry"]
    experiment, kept = registry.experiments()[name], framework["store"].Store(tmp_path / "made-up.jsonl")
    for cell in experiment.cells(False):
        kept.numbers[registry.key_of(cell)] = MADE_UP[name](cell)
    sections = pages.sections_of(experiment, framework["results"].Results(experiment, kept), tmp_path)
    text = (pages.FOLDER / experiment.file).read_text()
    written = pages.replaced(text, experiment.file, name, sections[name])
    assert "| " in sections[name]
    assert NUMBER.sub("N", written).splitlines() == NUMBER.sub("N", text).splitlines()


def test_rows_of_persons_keep_their_targets_and_are_as_few_as_asked(framework):
    framework["registry"].experiments()
    people = importlib.import_module("experiments.people")
    persons = np.repeat(np.arange(50), np.arange(1, 51) % 7 + 1)
    X = np.column_stack([np.arange(persons.size), persons]).astype(float)
    draw = people.Draw((X, 2.0 * X[:, 0]), persons, False, seed=0)
    for most, (rows, targets) in draw.capped((2, draw.most)).items():
        assert np.array_equal(targets, 2.0 * rows[:, 0])
        assert len(set(rows[:, 0])) == len(rows)
        counts = np.bincount(rows[:, 1].astype(int), minlength=50)
        assert np.array_equal(counts, np.minimum(most, np.bincount(draw.ids, minlength=50)))
    assert not set(draw.ids) & set(persons[draw.test])


OF_A_RUN = {"error": [0.1, 0.2], "seconds": [0.01, 0.03], "right": [1, 1], "wrong": [0, 0], "clip": 1.0, "step": 1.0}
OF_A_RUN |= {"tuned": 0.1, "tried": 10, "grid": 1000, "way": {key: [0.5, 1.0] for key in ("at", "min", "mean", "max")}}
OF_AN_OPTIMUM = dict.fromkeys(("alpha", "support", "at zero", "rows", "columns"), 1) | {"counts": [1], "edges": [0, 1]}
NEW_FILES = {
    "methods": """
        from framework import Method

        new = Method("new method", "of a new file", lambda problem, setting, seed: {}, ("table2", "table3", "greedy"))
    """,
    "datasets": """
        from framework import Dataset

        new = Dataset("new table", "generated", lambda: None, False, ("table2", "table3", "greedy"))
    """,
}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["table2", "table3", "greedy"])
def test_a_new_table_and_a_new_method_are_on_the_pages_of_the_papers(name, framework, tmp_path, monkeypatch):
    """Files that say no more than they must: the page is written, and both are on it, with their times."""
    registry = framework["registry"]
    for folder, text in NEW_FILES.items():
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "new.py").write_text(textwrap.dedent(text))
    monkeypatch.setenv(registry.ALSO, str(tmp_path))
    cached = (registry.datasets, registry.methods)
    for found in cached:
        found.cache_clear()
    try:
        experiment, kept = registry.experiments()[name], framework["store"].Store(tmp_path / "made-up.jsonl")
        for cell in experiment.cells(False):
            timed = {one.name: [0.01, 0.03] for one in registry.methods_of(name)}
            untuned = {key: value for key, value in OF_A_RUN.items() if key != "way"}
            made_up = {"optimum": OF_AN_OPTIMUM, "in turns": timed, "auto": untuned}.get(cell.method, OF_A_RUN)
            kept.numbers[registry.key_of(cell)] = made_up
        (tmp_path / "pages").mkdir()
        text = experiment.page(framework["results"].Results(experiment, kept), tmp_path / "pages")
    finally:
        for found in cached:
            found.cache_clear()
    assert "new table" in text
    assert "new method" in text
    pictures = {path.name for path in (tmp_path / "pages").glob("*.png")}
    assert set(re.findall(r"\((papers-[^)]*\.png)\)", text)) == pictures


def test_lines_of_results_have_means_of_runs_and_say_stand_in(framework, tmp_path, monkeypatch):
    registry, kinds = framework["registry"], framework["kinds"]
    experiment, kept = registry.experiments()["perturbation"], framework["store"].Store(tmp_path / "made-up.jsonl")
    monkeypatch.setattr(kinds, "is_stand_in", lambda name: name == "adult")
    cells = list(experiment.cells(False))
    for cell in cells:
        kept.numbers[registry.key_of(cell)] = {"error": [0.1, 0.2]}
    lines = framework["results"].Results(experiment, kept).summary().splitlines()
    assert len(lines) == len(cells)
    assert all(line.endswith("error 0.15") for line in lines)
    assert all(("(STAND-IN)" in line) == ("adult" in line) for line in lines)


def test_seconds_are_those_of_runs_without_a_trace(framework):
    tuning, kinds = importlib.import_module("framework.tuning"), framework["kinds"]

    def run(problem, setting, seed):
        traced = bool(setting.get("traced"))
        numbers = {"error": abs(setting["clip"] - 1.0), "seconds": 9.0 if traced else 1.0, "right": 0, "wrong": 0}
        return numbers | ({"trace": [0.2, 0.1]} if traced else {})

    method = kinds.Method("made up", "made up", run, grid={"step": (1.0,)})
    found = tuning.tuned_numbers(method, None, {"passes": 2}, [0.5, 1.0, 2.0], 1, 3)
    assert found["seconds"] == [1.0] * 3
    assert found["way"]["mean"] == [0.2, 0.1]


def test_sets_of_coordinates_stand_beside_auto_as_another_experiment_has_measured_it(framework, tmp_path):
    registry, kept = framework["registry"], framework["store"].Store(tmp_path / "made-up.jsonl")
    sketched, table2 = (registry.experiments()[name] for name in ("sketched", "table2"))
    for cell in sketched.cells(False):
        kept.numbers[registry.key_of(cell)] = {"error": [0.1, 0.2]}
    for cell in table2.cells(False):
        if cell.method == "auto":
            kept.numbers[registry.key_of(cell)] = {"error": [0.03, 0.05]}
    text = sketched.page(framework["results"].Results(sketched, kept), tmp_path)
    assert text.count("auto, untuned") == 1  # log1 is not in Table 2
    assert "| auto, untuned | 0.04 ± 1e-02 |" in text
