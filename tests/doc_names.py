"""Finds the names that pages quote in backticks, and says which of them the package does not have."""

from __future__ import annotations

import ast
import pkgutil
import re
from collections import defaultdict
from functools import cache
from pathlib import Path

import discreet

PACKAGE = Path(discreet.__file__).parent
ROOT = PACKAGE.parent

# Quoted on the pages and not names of this package: mathematics, Python, other projects, file names of the reader.
ALLOWED = {"None", "True", "False", "len", "exp", "log", "erf", "erfc", "float", "sklearn", "dp_accounting"}
ALLOWED |= {
    "GridSearchCV",
    "KFold",
    "StratifiedKFold",
    "StandardScaler",
    "check_estimator",
    "n_jobs",
    "TimeoutError",
    "copy",
    "deepcopy",
}
QUOTED = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
NAME = re.compile(r"\.?[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*(\(.*\)|\[.*\])?(\.[a-z_]+)?")
PATH = re.compile(r"[\w./-]+(/|\.py|\.md|\.cpp|\.toml)")


class Names:
    """Every name that the package defines, and what classes and modules hold."""

    def __init__(self) -> None:
        self.members: dict[str, set[str]] = defaultdict(set)  # of classes and modules, by their name
        self.parents: dict[str, set[str]] = defaultdict(set)
        self.types: dict[str, set[str]] = defaultdict(set)  # of parameters and attributes, where annotated
        self.parameters: set[str] = set()
        self.settings: set[str] = set()  # texts that code compares with, such as "replace"
        for path in PACKAGE.rglob("*.py"):
            self._read(path)
        self.all = set(self.members) | self.parameters | {name for held in self.members.values() for name in held}

    def _read(self, path: Path) -> None:
        package = path.name == "__init__.py"
        module = path.parent.name if package else path.stem
        self.members[path.parent.parent.name if package else path.parent.name].add(module)
        tree = ast.parse(path.read_text())
        self.members[module] |= _assigned(tree.body)
        for node in ast.walk(tree):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                for argument in (*node.args.args, *node.args.kwonlyargs):
                    self.parameters.add(argument.arg)
                    self.types[argument.arg] |= _words(argument.annotation)
                self.types[node.name] |= _words(node.returns)
            if isinstance(node, ast.AnnAssign):
                self.types[_last(node.target)] |= _words(node.annotation)
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.isidentifier():
                self.settings.add(node.value)
            if isinstance(node, ast.ImportFrom) and package:
                self.members[module] |= {alias.asname or alias.name for alias in node.names}
            if isinstance(node, ast.ClassDef):
                self.members[node.name] |= _assigned(node.body) | _set_on_self(node)
                self.parents[node.name] |= {_last(base) for base in node.bases}

    def holds(self, owner: str, name: str) -> bool:
        """Whether a class (or one of its parents) or a module has a member of that name."""
        return name in self.members[owner] or any(self.holds(p, name) for p in self.parents[owner] if p in self.members)

    def has(self, dotted: str) -> bool:
        """Whether `a.b.c` exists: each part is a member of the module or class before it, or of its annotated type."""
        first, *rest = dotted.split(".")
        if not rest and first in self.settings | ALLOWED:
            return True
        if first and first not in self.all | ALLOWED:
            return False
        return all(self._leads_to(owner, name) for owner, name in zip([first, *rest], rest, strict=False))

    def _leads_to(self, owner: str, name: str) -> bool:
        owners = {owner, *self.types[owner]} & set(self.members)
        if owner in ALLOWED or any(self.holds(one, name) for one in owners):
            return True
        return not owners and name in self.all


def _assigned(body: list[ast.stmt]) -> set[str]:
    """Names that the statements of a module or of a class define."""
    found: set[str] = set()
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found.add(node.name)
        elif isinstance(node, ast.AnnAssign):
            found.add(_last(node.target))
        elif isinstance(node, ast.Assign):
            targets = [t for target in node.targets for t in getattr(target, "elts", [target])]
            found |= {_last(target) for target in targets}
        elif isinstance(node, (ast.If, ast.Try)):
            found |= _assigned(node.body)
    return found


def _set_on_self(node: ast.ClassDef) -> set[str]:
    stored = (n for n in ast.walk(node) if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store))
    return {n.attr for n in stored if getattr(n.value, "id", "") == "self"}


def _words(annotation: ast.expr | None) -> set[str]:
    return set(re.findall(r"\w+", ast.unparse(annotation))) if annotation is not None else set()


def _last(node: ast.expr) -> str:
    return getattr(node, "attr", None) or getattr(node, "id", "")


@cache
def names() -> Names:
    return Names()


def quoted(text: str) -> list[str]:
    """What stands in backticks, outside blocks of code."""
    return QUOTED.findall(re.sub(r"```.*?```", "", text, flags=re.DOTALL))


def unknown_names(text: str) -> list[str]:
    """Quoted names, dotted names and calls of which the package lacks a part."""
    found = [q for q in quoted(text) if not PATH.fullmatch(q) and NAME.fullmatch(q)]
    return [q for q in found if not all(names().has(name) for name in _names_of(q))]


def _names_of(code: str) -> list[str]:
    """The dotted names in an expression, keywords of calls included; `a().b` counts as `.b`."""
    try:
        tree = ast.parse(("_" + code if code.startswith(".") else code).replace("(...)", "()"))
    except SyntaxError:
        return []
    inner: set[int] = set()
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and id(node) not in inner:
            dotted = ast.unparse(node)
            inner |= {id(n) for n in ast.walk(node) if isinstance(n, (ast.Attribute, ast.Name))}
            found.append(dotted if re.fullmatch(r"[\w.]+", dotted) else "." + node.attr)
        elif isinstance(node, ast.keyword) and node.arg:
            found.append(node.arg)
        elif isinstance(node, ast.Name) and id(node) not in inner and len(node.id) > 1:
            found.append(node.id)
    return [name.removeprefix("_") if name.startswith("_.") else name for name in found]


def unknown_paths(text: str, folder: Path) -> list[str]:
    """Quoted paths and links that lead nowhere.

    A path starts at the root, in the package, at the page, or is inside a folder that the page quotes too.
    """
    wanted = [q for q in quoted(text) if PATH.fullmatch(q)]
    bases = [ROOT, PACKAGE, folder]
    folders = [base / q for q in wanted if q.endswith("/") for base in bases if (base / q).is_dir()]
    lost = [q for q in wanted if not any((base / q).exists() for base in bases)]
    lost = [q for q in lost if not any(found for inside in folders for found in inside.rglob(q))]
    links = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text)
    return lost + [link for link in links if "://" not in link and not (folder / link).exists()]


def unknown_modules(text: str) -> list[str]:
    """Quoted names that begin with `discreet.` and cannot be imported."""
    found = [q for q in quoted(text) if q.startswith("discreet.") and NAME.fullmatch(q)]
    return [q for q in found if not _can_be_imported(q.partition("(")[0])]


def _can_be_imported(dotted: str) -> bool:
    try:
        pkgutil.resolve_name(dotted)
    except (ImportError, AttributeError, ValueError):
        return False
    return True


def unknown_targets(text: str) -> list[str]:
    """Quoted `make` commands without a target in the Makefile."""
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    return [q for q in quoted(text) if q.startswith("make ") and not set(q.split()[1:]) <= targets]
