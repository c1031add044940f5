"""Every numeric default is on docs/defaults.md with its value and where it comes from, and nothing else is."""

from __future__ import annotations

import ast
import importlib
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "benchmarks"


@pytest.fixture(scope="module")
def register():
    return load("register")


@pytest.fixture(scope="module")
def scans():
    return load("scans")


def load(name):
    """A module of benchmarks/defaults."""
    sys.path.insert(0, str(FOLDER))
    try:
        return importlib.import_module(f"defaults.{name}")
    finally:
        sys.path.remove(str(FOLDER))


def test_the_page_and_the_code_name_the_same_constants_with_the_same_values(register):
    code, page = register.constants(), register.rows(register.PAGE.read_text())
    assert len(code) > 150
    assert register.differences(code, page) == []


def test_the_page_counts_its_rows_right(register):
    page = register.PAGE.read_text()
    kinds = Counter(row.kind for row in register.rows(page))
    counts = ", ".join(f"{kinds[kind]} {kind}" for kind in register.KINDS)
    assert f"There are {kinds.total()}: {counts}." in page


def test_every_row_has_a_known_kind_and_a_sentence(register):
    for row in register.rows(register.PAGE.read_text()):
        assert row.kind in register.KINDS, row.name
        assert row.reason.rstrip().endswith("."), row.name


def test_every_script_that_the_page_names_exists(register):
    named = register.scripts(register.PAGE.read_text())
    assert "benchmarks/run.py" in named
    assert [script for script in named if not (ROOT / script).exists()] == []


def test_every_measured_constant_has_a_scan_or_names_its_script(register, scans):
    rows = register.rows(register.PAGE.read_text())
    measured = [row for row in rows if row.kind == "measured"]
    assert [row.name for row in measured if row.name not in scans.SCANS and not register.scripts(row.reason)] == []
    assert sorted(set(scans.SCANS) - {row.name for row in rows}) == []


def test_a_scan_tries_the_default_and_other_values(scans):
    for scan in scans.SCANS.values():
        assert scan.default in scan.values, scan.constant
        assert len(set(scan.values)) >= 3, scan.constant


def test_every_figure_of_the_page_is_for_the_current_default(register, scans):
    figures = register.figures(register.PAGE.read_text())
    assert len(figures) > 30
    assert figures == {name: scans.shown(scans.SCANS[name].default) for name in figures}


def test_a_regret_is_over_the_value_that_is_best_on_all_tables():
    """Errors 1, 2 and 4 with the default in the middle: it loses a factor of 2 to the first value; the last, none."""
    regret = load("regret")
    found = np.log(np.array([1.0, 2.0, 4.0]))[:, None, None] * np.ones((3, 2, 3))
    shown = regret.regret_table("room.A", (10, 20, 40), 1, ["one", "two"], found)
    assert "| `room.A` | 20 | 10 | 100% +- 0% | 100% +- 0% (one: 10) |" in shown
    assert "| all | 1.0000 | 2.0000 | 4.0000 |" in shown
    best = regret.regret_table("room.A", (10, 20, 40), 0, ["one", "two"], found)
    assert "| `room.A` | 10 | 10 | 0% +- 0% | 0% +- 0% (one: 10) |" in best


def test_a_scan_replaces_a_constant_wherever_it_was_imported_and_puts_it_back(scans):
    from discreet.solvers.newton import planning

    scan, before = scans.SCANS["solvers.newton.planning.GROWTH"], planning.GROWTH
    with load("replaced").replaced(scan, 7.5) as settings:
        assert planning.GROWTH == 7.5
        assert settings == {}
    assert before == planning.GROWTH


def test_every_constant_has_a_comment_beside_it(register):
    """On its own line, or on the line above the group it stands in."""
    bare = []
    for path in register.source_files():
        lines = path.read_text().splitlines()
        for node in ast.parse("\n".join(lines)).body:
            if isinstance(node, ast.Assign) and register.names_numbers(path, node):
                group = node.lineno - 1
                while group > 0 and lines[group - 1].strip() and not lines[group - 1].startswith("#"):
                    group -= 1
                above = group > 0 and lines[group - 1].startswith("#")
                if not above and "#" not in lines[node.end_lineno - 1]:
                    bare.append(f"{path.name}: {lines[node.lineno - 1]}")
    assert bare == []


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("| `room.A` | `1` | derived | Why. |", []),
        ("| `room.A` | `2` | derived | Why. |", ["room.A is 1 in the code and 2 on the page"]),
        (
            "| `room.B` | `1` | derived | Why. |",
            ["room.A = 1 is not on the page", "room.B is on the page and not in the code"],
        ),
        ("| `room.A` | `1` | derived | Why. |\n" * 2, ["room.A is on the page twice"]),
    ],
)
def test_a_wrong_page_is_found(register, line, complaint):
    assert register.differences({"room.A": "1"}, register.rows(line)) == complaint


def test_constants_of_all_forms_are_found(register):
    source = (
        "A, B = 1, -2.0\nC = (1, 2)\nD: dict = {'x': 3}\nE, F = range(2)\n_G = 1 / 12\n"
        "name = 4\nTEXT = 'five'\nFLAG = True\nKINDS = ('a', 'b')\n"
        "@dataclass(frozen=True)\nclass S:\n    x: float = 1.9\n    y: bool = True\n"
        "    z: ClassVar[int] = 3\n    k: float = A\n"
    )
    names = {"A": 1, "B": -2.0, "C": (1, 2), "D": {"x": 3}, "E": 0, "F": 1, "_G": 1 / 12}
    names |= {"name": 4, "TEXT": "five", "FLAG": True, "KINDS": ("a", "b")}
    found = dict(register.constants_in(ast.parse(source), names))
    wanted = {"A": "1", "B": "-2.0", "C": "(1, 2)", "D": "{'x': 3}", "E": "0", "F": "1", "_G": "1 / 12", "S.x": "1.9"}
    assert found == wanted
