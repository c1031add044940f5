"""Finds what the files of a folder define; a new file is found without being listed anywhere."""

from __future__ import annotations

import importlib.util
import os
import sys
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import TypeVar

from framework.cells import Cell
from framework.kinds import Dataset, Experiment, Method

ROOT = Path(__file__).resolve().parents[1]
ALSO = "DISCREET_BENCHMARKS"  # folders of one's own with datasets/, methods/ or experiments/ in them
OWN = {"discreet", *(path.stem for path in ROOT.iterdir())}  # what is missing there is a mistake, not a package
K = TypeVar("K", Dataset, Method, Experiment)


def roots() -> list[Path]:
    """Where folders of files are looked for: here, and where `run.py --also` says."""
    also = os.environ.get(ALSO, "")
    return [ROOT, *(Path(folder) for folder in also.split(os.pathsep) if folder)]


def found(kind: type[K], folder: str) -> dict[str, K]:
    """All instances of a kind in the modules of a folder, by name; two of one name are an error."""
    named: dict[str, K] = {}
    for path in [path for root in roots() for path in sorted((root / folder).glob("*.py"))]:
        for value in vars(_module_if_possible(path)).values():
            for item in value if isinstance(value, (list, tuple)) else [value]:
                if isinstance(item, kind) and named.setdefault(item.name, item) is not item:
                    raise ValueError(f"two of {folder}/ are called {item.name!r}; rename the one in {path.name}.")
    return named


@cache
def datasets() -> dict[str, Dataset]:
    return found(Dataset, "datasets")


@cache
def methods() -> dict[str, Method]:
    return found(Method, "methods")


@cache
def experiments() -> dict[str, Experiment]:
    return found(Experiment, "experiments")


def datasets_of(experiment: str) -> list[Dataset]:
    """Those that say that they take part."""
    return [one for one in datasets().values() if experiment in one.experiments]


def methods_of(experiment: str) -> list[Method]:
    return [one for one in methods().values() if experiment in one.experiments]


def key_of(cell: Cell) -> str:
    """The key under which the numbers of a cell are kept: another version of its parts, or a stand-in, has another."""
    experiment = experiments()[cell.experiment]
    dataset, method = datasets().get(cell.dataset), methods().get(cell.method)
    versions = [experiment.version, getattr(dataset, "version", 0), getattr(method, "version", 0)]
    stand_in = dataset is not None and dataset.is_stand_in
    return cell.key(f"{versions} stand-in" if stand_in else str(versions))


def _module_if_possible(path: Path) -> ModuleType:
    """The module of a file, or an empty one where a package that it needs is not installed: others can still run."""
    try:
        return _module(path)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] in OWN:
            raise
        print(f"{path.parent.name}/{path.name} is left out: {error.name} is not installed.", file=sys.stderr)
        sys.modules.pop(f"{path.parent.name}.{path.stem}", None)
        return ModuleType(path.stem)


def _module(path: Path) -> ModuleType:
    """The module of a file, loaded once under a name of its folder."""
    name = f"{path.parent.name}.{path.stem}"
    known = sys.modules.get(name)
    if known is not None and getattr(known, "__file__", None) == str(path):
        return known  # imported by another file as well
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
