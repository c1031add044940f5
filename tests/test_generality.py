"""The benchmark on public tables: its halves share no table, the second runs if asked for, ratios are right."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "benchmarks"))
from framework import registry
from generality import cells, measure, page, sections, settings, summary, tables

sys.path.pop(0)
ROOT = Path(__file__).resolve().parents[1]


def table(name, rows=1000, seed=0):
    rng = np.random.default_rng(seed)
    return tables.Table(name, rng.normal(size=(rows, 3)), rng.normal(size=rows), 0, tables.is_kept_back(name))


def test_a_copy_of_a_table_to_develop_on_is_not_kept_back(monkeypatch):
    names = {True: [], False: []}
    for number in range(20):
        names[tables.is_kept_back(f"package/{number}")].append(f"package/{number}")
    shared, own = names[True][:2]
    halves = {False: [table(names[False][0], seed=1)], True: [table(shared, seed=1), table(own, seed=2)]}
    monkeypatch.setattr(tables, "accepted", lambda kept_back: iter(halves[kept_back]))
    assert [found.name for found in tables.tables(kept_back=True)] == [own]
    assert [found.name for found in tables.tables(kept_back=False)] == [names[False][0]]


def test_each_number_of_rows_takes_the_first_tables_that_have_enough():
    found = cells.sizes_of([table("small", 200), table("large", 2_000), table("larger", 3_000)], most=2)
    assert found == {"small": [100], "large": [100, 300, 1_000], "larger": [300, 1_000]}


def results(losses):
    about = {"table": "a", "rows": 100, "epsilon": 1.0, "classes": 2}
    return pd.DataFrame([about | {"model": model, "loss": loss} for model, loss in losses.items()])


def test_ratios_compare_models_that_know_the_same():
    losses = {"private constant": 2.0, "private constant, told": 1.0, "constant without privacy": 0.9}
    frame = summary.with_ratios(
        results(losses | {"auto": 1.0, "auto, told": 2.0, "AdaSSP": 6.0, "diffprivlib": math.inf})
    )
    found = frame.set_index("model")
    assert found["ratio"].to_dict()["auto"] == 0.5
    assert found["ratio"].to_dict()["auto, told"] == 2.0
    assert found["to_best"].to_dict()["AdaSSP"] == 6.0
    assert found["lost"].to_dict()["AdaSSP"]
    assert found["lost"].to_dict()["diffprivlib"]
    assert not found["lost"].to_dict()["auto, told"]


def test_gaps_below_two_percent_of_the_constant_count_as_those():
    row = {
        "table": "a",
        "rows": 100,
        "epsilon": 1.0,
        "setting": "newton steps=4",
        "without privacy": 0.5,
        "constant": 1.0,
    }
    frame = pd.DataFrame([row | {"auto": 0.51, "best": 0.501}, row | {"auto": 0.60, "best": 0.55}])
    found = summary.tuned_figures(frame)
    assert found["gap_near"] == 0.5
    assert found["near"] == 1.0
    assert found["solvers"] == {"newton": 1.0}


def test_every_tuned_setting_is_one_that_its_solver_takes():
    found = [name for name, _, _ in settings.settings()]
    assert len(found) == len(set(found)) > 40


def test_the_page_is_what_the_kept_figures_give():
    text = (ROOT / "docs" / "benchmarks" / "generality.md").read_text()
    found = sections.sections(page.kept())
    assert len(found) == 18
    for name, content in found.items():
        begin, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
        assert text.partition(begin)[2].partition(end)[0].strip() == content.strip()


@pytest.fixture
def benchmarks(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))  # files import one another


@pytest.fixture
def stand_ins(monkeypatch, benchmarks):
    monkeypatch.setattr(tables, "is_stand_in", lambda name: True)
    measure.half.cache_clear()
    tables.table_of.cache_clear()
    yield
    measure.half.cache_clear()
    tables.table_of.cache_clear()


def test_a_cell_of_the_half_to_develop_on_gives_a_row_and_refuses_the_other_half(stand_ins):
    known = registry.experiments()
    found = {name: one for name, one in known.items() if one.suite == "generality"}
    assert {name: one.kept_back for name, one in found.items()} == {
        f"{half}-{part}": half == "final" for half in page.HALVES for part in measure.PARTS
    }
    cell = next(iter(known["development-rivals"].cells(True)))
    assert not tables.is_kept_back(cell.dataset)
    row = known["development-rivals"].measure(cell)
    assert row["table"] == cell.dataset
    assert row["loss"] > 0.0
    with pytest.raises(ValueError, match="the other half"):
        known["final-rivals"].measure(cell)


def test_rivals_are_the_methods_of_the_scoreboard(benchmarks):
    rivals = measure.models_of("rivals")
    assert {"AdaSSP", "BoostedAdaSSP", "diffprivlib", "opacus", *summary.NOT_PRIVATE} == set(rivals)
    assert {method for method, _ in rivals.values()} <= set(registry.methods())
    assert rivals["opacus"] == ("Opacus", {"relation": "add_remove", "step": 0.5})


def run(tmp_path, *options):
    command = [sys.executable, str(ROOT / "benchmarks" / "run.py"), "generality", *options]
    env = os.environ | {"PYTHONPATH": str(ROOT), "DISCREET_BENCHMARK_RESULTS": str(tmp_path)}
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.slow
def test_what_is_kept_back_needs_the_switch(tmp_path):
    """By name without `--final`, or in a quick run, it is refused before a table is read."""
    told = run(tmp_path, "--only", "final-auto")
    assert told.returncode == 2
    assert "no such experiment: final-auto; there are development-rivals" in told.stderr
    told = run(tmp_path, "--final", "--quick")
    assert told.returncode == 2
    assert "kept back for one run at the end" in told.stderr
    assert not list(tmp_path.iterdir())
