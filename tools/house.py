"""How large the package is, and how long the road of a fit: `python tools/house.py`.

Lines of code are lines with code on them: blank lines, comments and docstrings do not count. The road of a call is made
of the modules of the package whose functions it runs, in the main thread.
"""

from __future__ import annotations

import ast
import contextlib
import io
import re
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

PACKAGE = Path(__file__).resolve().parent.parent / "discreet"
sys.path.insert(0, str(PACKAGE.parent))


def code_lines(source: str) -> int:
    """Lines that hold a statement or a part of one."""
    tree = ast.parse(source)
    kinds = ast.Module | ast.ClassDef | ast.FunctionDef
    documented = [node for node in ast.walk(tree) if isinstance(node, kinds) and ast.get_docstring(node) is not None]
    texts = (node.body[0] for node in documented)
    docstrings = {line for text in texts for line in range(text.lineno, (text.end_lineno or text.lineno) + 1)}
    lines = enumerate(source.splitlines(), start=1)
    return sum(bool(line.strip()) and not line.strip().startswith("#") and i not in docstrings for i, line in lines)


def sizes() -> Iterator[tuple[str, int]]:
    """What there is of modules, classes, functions and lines of code, and the lines by room."""
    totals, rooms = Counter[str](), Counter[str]()
    for path in sorted(PACKAGE.rglob("*.py")):
        source = path.read_text()
        nodes = list(ast.walk(ast.parse(source)))
        lines = code_lines(source)
        totals["modules"] += path.name != "__init__.py" or lines > 0
        totals["classes"] += sum(isinstance(node, ast.ClassDef) for node in nodes)
        totals["functions"] += sum(isinstance(node, ast.FunctionDef) for node in nodes)
        totals["lines of code"] += lines
        totals["plan classes"] += len(re.findall(r"^class \w*Plan\b", source, re.MULTILINE))
        totals["files that reserve"] += bool(re.search(r"\.reserve\(", source)) and "ledger" not in path.parts
        rooms[path.relative_to(PACKAGE).parts[0]] += lines
    yield from totals.items()
    yield from ((f"  {room}", lines) for room, lines in rooms.most_common())


def road(task: Callable[[], object]) -> tuple[int, int, int]:
    """Modules and functions of the package that a call runs, and its deepest stack of them."""
    functions: set[tuple[str, str]] = set()
    depth = deepest = 0

    def notice(frame, event, _):
        nonlocal depth, deepest
        if event not in ("call", "return") or not frame.f_code.co_filename.startswith(str(PACKAGE)):
            return
        if event == "return":
            depth -= 1
            return
        depth += 1
        deepest = max(deepest, depth)
        functions.add((frame.f_code.co_filename, frame.f_code.co_qualname))

    sys.setprofile(notice)
    try:
        task()
    finally:
        sys.setprofile(None)
    return len({file for file, _ in functions}), len(functions), deepest


def roads() -> Iterator[tuple[str, tuple[int, int, int]]]:
    """The road of a fit in Python and of one on the command line, for 3,000 rows of 5 columns."""
    from typer.testing import CliRunner

    from discreet import LogisticRegression
    from discreet.cli.app import app

    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 5))
    y = (X[:, 0] > 0.0).astype(int)
    model = LogisticRegression(epsilon=1.0, classes=[0, 1])
    model.fit(X, y)  # what is imported and compiled at the first fit is no part of the road
    yield "fit: modules, functions, depth", road(lambda: model.fit(X, y))
    with tempfile.TemporaryDirectory() as folder:
        np.savetxt(f"{folder}/t.csv", np.column_stack([X, y]), delimiter=",", header="a,b,c,d,e,y", comments="")
        command = ["fit", f"{folder}/t.csv", "--target", "y", "--out", f"{folder}/m.json", "--force"]
        CliRunner().invoke(app, command)
        yield "discreet fit: modules, functions, depth", road(lambda: CliRunner().invoke(app, command))


def members_of_a_solver() -> int:
    """What a solver has or may have: attributes, properties and methods of the base class."""
    from discreet.solvers.base import Solver

    names = set(vars(Solver)) | set(Solver.__annotations__)
    return len([name for name in names if not re.fullmatch(r"__\w+__|_abc_impl|_is_protocol", name)])


def main() -> None:
    warnings.simplefilter("ignore")
    for name, number in sizes():
        print(f"{name:42}{number:8,}")
    print(f"{'members of a solver':42}{members_of_a_solver():8}")
    with contextlib.redirect_stderr(io.StringIO()):
        for name, numbers in roads():
            print(f"{name:42}" + "".join(f"{number:8}" for number in numbers))


if __name__ == "__main__":
    main()
