"""Imports go down only, siblings keep out of each other's insides, and the public surface stays small."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from functools import cache
from importlib.machinery import PathFinder
from pathlib import Path

import discreet
from discreet.estimators.names import CLASSIFIERS, REGRESSORS

PACKAGE = Path(discreet.__file__).parent
TESTS = Path(__file__).parent

# From the ground up: a room imports itself and the rooms before it.
ROOMS = [
    "_common",
    "kernels",
    "privacy",
    "theory",
    "data",
    "problem",
    "scaling",
    "inference",
    "solvers",
    "estimators",
    "preprocessing",
    "metrics",
    "report",
    "model_selection",
    "fairness",
    "federated",
    "audit",
    "testing",
    "demo",
    "cli",
]
HEIGHT = {room: height for height, room in enumerate(ROOMS)}
# What a solver may import of its own room: what all solvers share, and its own folder.
SHARED_BY_SOLVERS = {"base", "plan", "run", "_shared"}
# What knows all solvers: the table, the choice, and what is looked up by their type, by plans and not by solvers.
ABOVE_SOLVERS = {"__init__", "table", "run"}
LOOKED_UP = {"theory"}
MOST_ENTRIES = 22
# Draws that a privacy cost rests on: mechanisms make them, next to the event that states the cost.
PRICED_DRAWS = {
    *("normal", "laplace", "gumbel", "rounded_draws", "gumbel_argmax"),
    *("poisson_batches", "bernoulli_indices"),
}
# Samples of coordinates, not of rows: they are released as they are, and no cost rests on them.
UNPRICED_DRAWS = [("solvers.sketched.sketches", "poisson_batches")]


parsed = cache(ast.parse)  # most tests look at all files


@cache
def imports_of(path):
    """Dotted names that a file imports, also inside functions, but not for type checking only."""
    return list(_imports_in(parsed(path.read_text())))


def _imports_in(tree):
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


def inner_imports(path):
    """Parts of the dotted names that a file imports from discreet: ["solvers", "base", "Plan"]."""
    parts = (name.split(".") for name in imports_of(path))
    yield from (rest for first, *rest in parts if first == "discreet" and rest)


def modules():
    """Every file with the path that leads to it inside the package."""
    for path in sorted(PACKAGE.rglob("*.py")):
        relative = path.relative_to(PACKAGE)
        if relative.parts != ("__init__.py",):
            yield [part.removesuffix(".py") for part in relative.parts], path


def entries():
    return [path for path in PACKAGE.iterdir() if path.name not in ("__pycache__", "__init__.pyi")]


def test_every_room_is_known_and_there_are_few():
    assert {parts[0] for parts, _ in modules()} == set(HEIGHT)
    assert len(entries()) <= MOST_ENTRIES


def test_the_page_for_contributors_lists_every_room_in_the_order_of_imports():
    page = (PACKAGE.parent / "CONTRIBUTING.md").read_text()
    assert re.findall(r"^\| `(\w+)(?:/|\.py)` \|", page, re.MULTILINE) == ROOMS


def upward(found):
    """Imports of a room by a lower one."""
    return [
        f"{'.'.join(parts)} imports {'.'.join(target)}"
        for parts, targets in found
        for target in targets
        if target[0] in HEIGHT and HEIGHT[target[0]] > HEIGHT[parts[0]]
    ]


def sideways(found):
    """Imports of one solver by another, or by what all solvers share."""

    def allowed(module):
        own = set() if module in SHARED_BY_SOLVERS else {module}
        return SHARED_BY_SOLVERS | own | (LOOKED_UP if module == "plan" else set())

    return [
        f"{'.'.join(parts)} imports {'.'.join(target)}"
        for parts, targets in found
        if parts[0] == "solvers" and parts[1] not in ABOVE_SOLVERS | LOOKED_UP
        for target in targets
        if target[0] == "solvers" and len(target) > 2 and target[1] not in allowed(parts[1])
    ]


def all_imports():
    return [(parts, list(inner_imports(path))) for parts, path in modules()]


def test_imports_go_down_only():
    assert upward(all_imports()) == []
    assert upward([(["problem", "problem"], [["solvers", "base", "Plan"]])])  # the test can fail


def test_a_solver_does_not_import_another_solver():
    assert sideways(all_imports()) == []
    planted = [(["solvers", "newton"], [["solvers", "gradient_descent", "GradientDescent"]])]
    assert sideways(planted)
    assert sideways([(["solvers", "newton"], [["solvers", "theory", "bound_of"]])])


def test_only_privacy_knows_the_accountants():
    users = {
        tuple(parts[:2])
        for parts, path in modules()
        for target in imports_of(path)
        if target.split(".")[0] == "dp_accounting"
    }
    assert users <= {("privacy", "accounting"), ("privacy", "mechanisms")}


@cache
def priced_draws(source):
    """The draws of noise and of rows that a piece of code asks for by itself."""
    calls = (node for node in ast.walk(parsed(source)) if isinstance(node, ast.Call))
    names = (call.func.attr for call in calls if isinstance(call.func, ast.Attribute))
    return [name for name in names if name in PRICED_DRAWS]


def test_only_mechanisms_draw_noise_and_rows():
    """One object draws and states the cost: elsewhere a draw could differ from what is booked.

    Audits and the checks for outsiders release nothing: they make random tables, and smaller noise as a planted fault.
    """
    outside = [
        (parts, path.read_text()) for parts, path in modules() if parts[0] not in ("privacy", "audit", "testing")
    ]
    found = [(".".join(parts), name) for parts, source in outside for name in priced_draws(source)]
    assert found == UNPRICED_DRAWS
    assert priced_draws("sums += run.rng.normal(sums.shape) * deviation")  # the test can fail
    users = {parts[0] for parts, path in modules() for target in inner_imports(path) if "sampling" in target[:2]}
    assert users <= {"privacy", "kernels"}


def factors(source):
    """Uses of the factor 2 of the replace relation."""
    attributes = (node for node in ast.walk(parsed(source)) if isinstance(node, ast.Attribute))
    return [node for node in attributes if node.attr == "factor" and "relation" in ast.unparse(node.value).lower()]


def test_the_factor_of_a_relation_is_applied_in_one_place():
    """Sensitivities have it; so has the Poisson pair, which is stated for the clip of one row."""
    users = {".".join(parts[:3]) for parts, path in modules() if factors(path.read_text())}
    assert users <= {"privacy.relation", "privacy.accounting.releases"}
    assert factors("deviation = plan.public.relation.factor * clip")  # the test can fail


def test_no_test_imports_a_test():
    wrong = [
        f"{path.relative_to(TESTS)} imports {name}"
        for path in sorted(TESTS.rglob("*.py"))
        for name in imports_of(path)
        if any(part.startswith("test_") for part in name.split(".")[:-1])
    ]
    assert wrong == []


def test_the_tests_mirror_the_package():
    folders = {path: path.relative_to(TESTS).parent for path in TESTS.rglob("test_*.py")}
    mirrored = {path: folder for path, folder in folders.items() if folder.parts[:1] != ("frozen",)}  # of all rooms
    assert {folder.parts[0] for folder in mirrored.values() if folder.parts} <= set(ROOMS)
    for path, folder in mirrored.items():
        assert (PACKAGE / folder).is_dir(), f"{path.relative_to(TESTS)} has no room in the package"


def is_quick(test):
    """Whether `make test-quick` runs a test."""
    return test.name.startswith("test_") and not any("mark.slow" in ast.unparse(mark) for mark in test.decorator_list)


def rooms_with_quick_tests(sources):
    """Rooms of which a file of tests, by its path, holds a quick one."""
    nodes = ((path, node) for path, text in sources for node in ast.walk(parsed(text)))
    return {path.parts[0] for path, node in nodes if isinstance(node, ast.FunctionDef) and is_quick(node)}


def test_every_room_has_a_quick_test():
    sources = [(path.relative_to(TESTS), path.read_text()) for path in TESTS.rglob("test_*.py")]
    without_a_folder = {"_common", "demo"}  # what all rooms use, and a command
    assert set(ROOMS) - rooms_with_quick_tests(sources) == without_a_folder
    slow = "import pytest\n\n@pytest.mark.slow\ndef test_all():\n    pass\n"
    assert rooms_with_quick_tests([(Path("audit/test_audit.py"), slow)]) == set()  # the test can fail


def test_the_public_surface_is_small_and_complete():
    others = set(discreet.__all__) - set(
        CLASSIFIERS + REGRESSORS
    )  # there may be as many estimators as there are models
    assert len(others) <= 21
    for name in discreet.__all__:
        assert getattr(discreet, name) is not None


ONLY_ON_THE_GRID = {"normal", "laplace", "rounded_draws"}
# A selection by Laplace noise, offered for comparison, tells an index and no number.
NOT_ON_THE_GRID = [("privacy.mechanisms.selections", "laplace")]


def test_numbers_get_their_noise_on_a_grid_and_nowhere_else():
    """Noise that is not an integer number of steps would show in the low bits of what is released."""
    allowed = [["privacy", "random"], ["privacy", "mechanisms", "additive"]]
    found = [
        (".".join(parts), name)
        for parts, path in modules()
        if parts[0] not in ("audit", "testing") and not any(list(parts)[: len(a)] == a for a in allowed)
        for name in priced_draws(path.read_text())
        if name in ONLY_ON_THE_GRID
    ]
    assert found == NOT_ON_THE_GRID


def test_importing_discreet_does_not_pay_for_heavy_modules():
    heavy = {"numba", "dp_accounting", "sqlalchemy", "pandas", "typer", "sklearn", "scipy"}
    code = "import sys, discreet; print(' '.join(m for m in sys.modules if '.' not in m))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert not heavy & set(found.split())
    code = "import sys; from discreet import LogisticRegression; print(' '.join(m for m in sys.modules))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"numba", "dp_accounting", "sqlalchemy", "typer"} & set(found)
    # What plans and runs a fit is imported by the first one, with the one solver that it takes.
    late = ("discreet.solvers.", "discreet.scaling.", "discreet.privacy.accounting.", "discreet.privacy.mechanisms.")
    assert [name for name in found if name.startswith(late) and name != "discreet.solvers.ftrl"] == []
    assert sum(name.startswith("discreet") for name in found) < 80


def test_every_solver_has_a_guarantee_page():
    from discreet.solvers import SOLVERS

    pages = PACKAGE.parent / "docs" / "guarantees"
    for name in SOLVERS:
        assert (pages / f"{name}.md").exists(), f"docs/guarantees/{name}.md is missing"


def test_child_processes_import_the_tests_of_this_repository(tmp_path):
    """They get the path of their parent, on which libraries may have installed a package called tests as well."""
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "__init__.py").touch()
    found = PathFinder.find_spec("tests", [sys.path[0], str(tmp_path), *sys.path[1:]])
    assert found is not None
    assert found.origin == str(TESTS / "__init__.py")


def reserving(found):
    """Files outside the ledger that ask a ledger for its budget."""
    return sorted(
        ".".join(parts)
        for parts, source in found
        if parts[:2] != ["privacy", "ledger"]
        for node in ast.walk(parsed(source))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "reserve"
    )


def test_one_place_books_every_release():
    assert reserving([(parts, path.read_text()) for parts, path in modules()]) == ["privacy.release"]
    assert reserving([(["solvers", "run"], "ledger.reserve('patients', event)")])  # the test can fail


def plan_classes(found):
    """Classes that are named after a plan: what will be released is one idea, not one class for each release."""
    names = (node.name for source in found for node in ast.walk(parsed(source)) if isinstance(node, ast.ClassDef))
    return {name for name in names if name.endswith("Plan")}


def test_there_are_four_kinds_of_plans():
    found = plan_classes(path.read_text() for _, path in modules())
    assert found == {"Plan", "ReleasePlan", "FederatedPlan", "ScalingPlan"}
    assert plan_classes(["class MeanPlan: ..."]) == {"MeanPlan"}  # the test can fail
