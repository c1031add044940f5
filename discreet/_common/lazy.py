"""Names that are imported when they are first used, so that `import discreet` and `discreet --help` stay quick."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy_names(package: str, homes: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` for a package whose names live in the given modules.

    Parameters
    ----------
    package : str
        The package's `__name__`.
    homes : mapping
        For each public name the module that defines it, relative to `package`; a name that maps to itself is a
        module.
    """

    def get(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = import_module(f"{package}.{homes[name]}")
        return module if homes[name] == name else getattr(module, name)

    def names() -> list[str]:
        return sorted(homes)

    return get, names
