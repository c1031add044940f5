"""The numeric constants of the code, and the page that says where each of them comes from.

Run: .venv/bin/python benchmarks/defaults/register.py
prints how many constants there are of each kind, and every difference between the code and docs/defaults.md.
tests/test_defaults.py holds that there is none.
"""

from __future__ import annotations

import ast
import importlib
import re
import sys
from collections import Counter
from collections.abc import Iterator
from numbers import Real
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "defaults.md"
PACKAGE = ROOT / "discreet"
FEDERATED = ("federated/plan.py", "federated/planning.py")
PLACES = (
    "solvers",
    "scaling",
    "inference",
    "preprocessing",
    "estimators/task.py",
    *FEDERATED,
)  # of the package, on the page
KINDS = ("derived", "measured", "numerical safety", "convention")
UPPER_CASE = re.compile(r"_?[A-Z][A-Z0-9_]*")
FIGURE = re.compile(r"\| `(?P<name>[^`]+)` \| (?P<default>[^`|]+) \|.*\|")
ROW = re.compile(r"\| `(?P<name>[^`]+)` \| `(?P<value>[^`]+)` \| (?P<kind>[^|]+) \| (?P<reason>.*) \|")


class Row(NamedTuple):
    """One line of the page."""

    name: str  # as in "solvers.newton.planning.MOMENT_SHARE", without the name of the package
    value: str  # the expression of the source
    kind: str
    reason: str


def constants() -> dict[str, str]:
    """Every upper-case numeric constant and every numeric default of a dataclass field, with its expression."""
    return {
        ".".join((*_parts(path), name)): expression
        for path in source_files()
        for name, expression in constants_in(ast.parse(path.read_text()), _names(path))
    }


def constants_in(tree: ast.Module, names: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """The same for one file, given what its names stand for."""
    yield from (pair for node in tree.body for pair in _assigned(node, names))
    yield from _field_defaults(tree)


def names_numbers(path: Path, node: ast.stmt) -> bool:
    """Whether a statement of a file gives a number to an upper-case name."""
    return any(True for _ in _assigned(node, _names(path)))


def rows(page: str) -> list[Row]:
    """The lines of all tables of the page; values as `ast.unparse` writes them."""
    lines = (ROW.fullmatch(line) for line in page.splitlines())
    return [Row(m["name"], normal(m["value"]), m["kind"].strip(), m["reason"]) for m in lines if m]


def figures(page: str) -> dict[str, str]:
    """The constants whose regret the page gives, with the default for which it was measured."""
    lines = (FIGURE.fullmatch(line) for line in page.splitlines())
    return {m["name"]: m["default"].strip() for m in lines if m}


def differences(code: dict[str, str], page: list[Row]) -> list[str]:
    """What is in the code and not on the page, or the other way round, or there with another value."""
    listed = {row.name: row.value for row in page}
    twice = [name for name, count in Counter(row.name for row in page).items() if count > 1]
    return [
        *(f"{name} = {value} is not on the page" for name, value in code.items() if name not in listed),
        *(f"{name} is on the page and not in the code" for name in listed if name not in code),
        *(
            f"{name} is {code[name]} in the code and {value} on the page"
            for name, value in listed.items()
            if name in code and code[name] != value
        ),
        *(f"{name} is on the page twice" for name in twice),
    ]


def scripts(page: str) -> set[str]:
    """The scripts of this repository that the page names."""
    return set(re.findall(r"benchmarks/[\w/]+\.py", page))


def normal(expression: str) -> str:
    """An expression without what only its layout says, such as the underscore of 1_000."""
    return ast.unparse(ast.parse(expression, mode="eval"))


def source_files() -> Iterator[Path]:
    """The files of the package that the page covers."""
    for place in PLACES:
        path = PACKAGE / place
        yield from [path] if path.is_file() else sorted(path.rglob("*.py"))


def _parts(path: Path) -> tuple[str, ...]:
    return path.relative_to(PACKAGE).with_suffix("").parts


def _names(path: Path) -> dict[str, Any]:
    return vars(importlib.import_module(".".join(("discreet", *_parts(path))).removesuffix(".__init__")))


def _assigned(node: ast.stmt, names: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Upper-case names to which a statement gives a number, a tuple of numbers or a dict of numbers."""
    if not isinstance(node, (ast.Assign, ast.AnnAssign)):
        return
    for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
        for name, expression in _pairs(target, node.value, names):
            if UPPER_CASE.fullmatch(name) and _is_numeric(names[name]):
                yield name, expression


def _pairs(target: ast.expr, value: ast.expr | None, names: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Names with their expressions; of `A, B = 1, 2` each with its own."""
    if isinstance(target, ast.Name) and value is not None:
        yield target.id, ast.unparse(value)
    elif isinstance(target, ast.Tuple):
        expressions = value.elts if isinstance(value, ast.Tuple) else [None] * len(target.elts)
        for part, expression in zip(target.elts, expressions, strict=True):
            if isinstance(part, ast.Name):
                yield part.id, repr(names[part.id]) if expression is None else ast.unparse(expression)


def _field_defaults(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Fields of dataclasses whose default is written as a number; one that names a constant is listed there."""
    for node in tree.body:
        if not (isinstance(node, ast.ClassDef) and any("dataclass" in ast.unparse(d) for d in node.decorator_list)):
            continue
        for field in node.body:
            if (
                isinstance(field, ast.AnnAssign)
                and field.value is not None
                and "ClassVar" not in ast.unparse(field.annotation)
            ):
                try:
                    default = ast.literal_eval(field.value)
                except ValueError:
                    continue
                if _is_numeric(default):
                    yield f"{node.name}.{ast.unparse(field.target)}", ast.unparse(field.value)


def _is_numeric(value: Any) -> bool:
    if isinstance(value, dict):
        value = tuple(value.values())
    if isinstance(value, tuple):
        return len(value) > 0 and all(_is_numeric(part) for part in value)
    return isinstance(value, Real) and not isinstance(value, bool)


def main() -> None:
    sys.path.append(str(Path(__file__).resolve().parents[1]))
    from stored_tables import command

    command(__doc__, other="none").parse_args()
    text = PAGE.read_text() if PAGE.exists() else ""
    code, page = constants(), rows(text)
    print(f"{len(code)} constants; on the page:", dict(Counter(row.kind for row in page)))
    print("\n".join(differences(code, page)))


if __name__ == "__main__":
    main()
