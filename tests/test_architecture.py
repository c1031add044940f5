"""Imports go down only, and the public surface stays small."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import discreet

PACKAGE = Path(discreet.__file__).parent

# From the ground floor up; a module may import its own floor and those below.
FLOORS = [
    {"exceptions", "relation", "losses", "penalties", "constraints", "kernels", "randomness"},
    {
        "accounting",
        "mechanisms",
        "data",
        "frame",
        "summaries",
        "extents",
        "scales",
        "guarantee",
    },
    {"problem", "framed", "sweeps", "gradients", "optimum", "ledger"},
    {"solvers"},
    {"fitting", "streams", "stream_learner", "progress", "audit", "task", "datasets"},
    {"estimators", "preprocessing"},
    {"model_file", "stream_file", "schema", "tables", "table_fit"},
    {"cli", "commands", "console", "demo"},
]
HEIGHT = {module: height for height, floor in enumerate(FLOORS) for module in floor}


def imports_of(path):
    """Dotted names that a file imports, also inside functions, but not for type checking only."""
    tree = ast.parse(path.read_text())
    hidden = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if id(node) in hidden:
            continue
        if isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def imported_by(path):
    """Modules of discreet that a file imports."""
    parts = (name.split(".") for name in imports_of(path))
    yield from (rest[0] for first, *rest in parts if first == "discreet" and rest)


def modules():
    for path in sorted(PACKAGE.rglob("*.py")):
        relative = path.relative_to(PACKAGE)
        if relative.name != "__init__.py" or len(relative.parts) > 1:
            yield relative.parts[0].removesuffix(".py"), path


def test_every_module_has_a_floor():
    assert {name for name, _ in modules()} == set(HEIGHT)


def test_imports_go_down_only():
    wrong = [
        f"{path.relative_to(PACKAGE)} imports {target}"
        for name, path in modules()
        for target in imported_by(path)
        if HEIGHT.get(target, -1) > HEIGHT[name]
    ]
    assert wrong == []


def test_only_accounting_and_mechanisms_know_the_accountants():
    users = {name for name, path in modules() for target in imports_of(path) if target.split(".")[0] == "dp_accounting"}
    assert users <= {"accounting", "mechanisms"}


def test_the_public_surface_is_small_and_complete():
    assert len(discreet.__all__) <= 30
    for name in discreet.__all__:
        assert getattr(discreet, name) is not None


def test_importing_discreet_does_not_pay_for_heavy_modules():
    heavy = {"numba", "dp_accounting", "sqlalchemy", "pandas", "typer", "sklearn", "scipy"}
    code = "import sys, discreet; print(' '.join(m for m in sys.modules if '.' not in m))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert not heavy & set(found.split())
    code = "import sys; from discreet import LogisticRegression; print(' '.join(m for m in sys.modules))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert not {"numba", "dp_accounting", "sqlalchemy", "typer"} & set(found.split())


def test_every_solver_has_a_guarantee_page():
    from discreet.solvers import SOLVERS

    pages = PACKAGE.parent / "docs" / "guarantees"
    for name in SOLVERS:
        assert (pages / f"{name}.md").exists(), f"docs/guarantees/{name}.md is missing"
