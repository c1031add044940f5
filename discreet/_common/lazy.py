"""Names that are imported when they are first used, so that `import discreet` and `discreet --help` stay quick."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any


def lazy_names(package: str, file: str) -> tuple[list[str], Callable[[str], Any], Callable[[], list[str]]]:
    """`__all__`, `__getattr__` and `__dir__` of a package whose stub, the `.pyi` file beside `file`, imports its names.

    Type checkers read the same stub, so that every name is written once.
    """
    stub = ast.parse(Path(file).with_suffix(".pyi").read_text(encoding="utf-8"))
    imports = [node for node in stub.body if isinstance(node, ast.ImportFrom)]
    homes = {alias.name: str(node.module) for node in imports for alias in node.names}

    def get(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        if homes[name] == package:
            return import_module(f"{package}.{name}")
        return getattr(import_module(homes[name]), name)

    return list(homes), get, lambda: sorted(homes)


class LazyTable(Mapping[str, Any]):
    """Names of a package under other names; each is imported when it is looked up."""

    def __init__(self, package: str, names: dict[str, str]) -> None:
        self._package = package
        self._names = names

    def __getitem__(self, key: str) -> Any:
        return getattr(import_module(self._package), self._names[key])

    def __contains__(self, key: object) -> bool:
        return key in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)
