"""Experiments of the library's own pages: a page is what its experiment writes, and rows stay with their targets."""

from __future__ import annotations

import importlib
import re
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
