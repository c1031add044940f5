"""What a default loses against the best value of a scan around it, on synthetic tables.

Run: .venv/bin/python benchmarks/defaults/scan.py solvers.newton.solver.MOMENT_SHARE
     .venv/bin/python benchmarks/defaults/scan.py            (all of them, one line each)
     .venv/bin/python benchmarks/defaults/scan.py --list

The constant is replaced by each value of a grid, everything else stays. An error is what a model leaves of the way
from the best constant to the optimum of the training objective: 0 is the optimum, 1 a constant. Errors are averaged as
logarithms (geometric means) over seeds; table and noise are drawn anew for each seed, the same for all values. Two
figures result:

    regret         the error of the default over that of the one value which is best over all tables, less 1;
    worst table    the same for the table on which the default loses most, against the value that is best there.

Each comes with its standard error. Both are somewhat too large, the second one more: the best of several noisy means
owes a part of its place to luck. The optimum is read from the rows: scans are not private, and no user's rows are part
of them.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from register import constants
from scans import SCANS, Scan, shown
from tables import FloatArray

LEAST_ERROR = 1e-4  # smaller ones count as this: clipped columns may even fit better than the optimum without clipping


def errors(scan: Scan, seeds: int) -> FloatArray:
    """Logarithms of errors, by value, table and seed."""
    found = np.full((len(scan.values), len(scan.tables), seeds), np.nan)
    for j, table in enumerate(scan.tables):
        for seed in range(seeds):
            measure = scan.measure(table, seed)
            for i, value in enumerate(scan.values):
                with replaced(scan, value) as settings:
                    found[i, j, seed] = np.log(max(measure(**settings), LEAST_ERROR))
    return found


@contextmanager
def replaced(scan: Scan, value: Any) -> Iterator[dict[str, Any]]:
    """The constant with another value, wherever it was imported; yields the settings that a solver then needs."""
    if scan.field is not None:
        yield {scan.field: value}
        return
    home, name = scan.constant.rsplit(".", 1)
    before = getattr(import_module(f"discreet.{home}"), name)
    holders = _holders(name, scan.constant)
    functions = [f for m in holders for f in vars(m).values() if _has_default(f, before)]
    defaults = [f.__defaults__ for f in functions]
    try:
        for module in holders:
            setattr(module, name, value)
        for function in functions:
            function.__defaults__ = tuple(value if d is before else d for d in function.__defaults__)
        yield {}
    finally:
        for module in holders:
            setattr(module, name, before)
        for function, old in zip(functions, defaults, strict=True):
            function.__defaults__ = old


@cache
def _holders(name: str, constant: str) -> list[Any]:
    """The module of the constant, and those that import it; not those that have another one of the same name."""
    others = {other.rsplit(".", 1)[0] for other in constants() if other.endswith(f".{name}") and other != constant}
    loaded = {m.removeprefix("discreet."): module for m, module in sys.modules.items() if m.startswith("discreet.")}
    return [module for m, module in loaded.items() if name in vars(module) and m not in others]


def _has_default(function: Any, value: Any) -> bool:
    return any(default is value for default in getattr(function, "__defaults__", None) or ())


def report(scan: Scan, seeds: int, details: bool) -> None:
    began = time.perf_counter()
    found = errors(scan, seeds)
    means, default = found.mean(axis=2), scan.values.index(scan.default)
    best = best_of(means.mean(axis=1), default)
    worst = int(np.argmax(means[default] - means.min(axis=0)))
    best_there = best_of(means[:, worst], default)
    if details:
        print_table(scan, means, default)
    print(
        f"| `{scan.constant}` | {shown(scan.default)} | {shown(scan.values[best])} | "
        f"{regret(found[default] - found[best])} | "
        f"{regret((found[default] - found[best_there])[worst : worst + 1])} ({scan.tables[worst].name}: "
        f"{shown(scan.values[best_there])}) | {time.perf_counter() - began:.0f} |",
        flush=True,
    )


def best_of(errors: FloatArray, default: int) -> int:
    """The place of the smallest error; the default's where no value does better."""
    return default if errors[default] <= errors.min() + 1e-9 else int(np.argmin(errors))


def regret(differences: FloatArray) -> str:
    """A ratio of geometric means, less 1, and its standard error, which comes from the spread between seeds."""
    tables, seeds = differences.shape
    ratio = np.exp(differences.mean())
    error = np.sqrt(differences.var(axis=1, ddof=1).sum() / seeds) / tables if seeds > 1 else np.nan
    return f"{ratio - 1.0:.0%} +- {ratio * error:.0%}"


def print_table(scan: Scan, means: FloatArray, default: int) -> None:
    """Geometric means over seeds by value and table, and over all tables."""
    print(f"{'value':>36}  {'all':>7}   " + "  ".join(f"{j:>6}" for j in range(len(scan.tables))))
    for i, value in enumerate(scan.values):
        mark = "*" if i == default else " "
        row = "  ".join(f"{error:6.3f}" for error in np.exp(means[i]))
        print(f"{mark}{value!s:>35}  {np.exp(means[i].mean()):7.4f}   {row}")
    print("\n".join(f"  {j}: {table.name}" for j, table in enumerate(scan.tables)))


def main() -> None:
    sys.path.append(str(Path(__file__).resolve().parents[1]))
    from stored_tables import command

    parser = command(__doc__, other="generated: benchmarks/defaults/tables.py")
    parser.add_argument("constants", nargs="*", help="as docs/defaults.md names them; all if none is given")
    parser.add_argument("--seeds", type=int, default=None, help="how many; each scan has its own default")
    parser.add_argument("--list", action="store_true", help="the names of all scans")
    parser.add_argument("--tables", action="store_true", help="print the errors by value and table")
    chosen = parser.parse_args()
    if chosen.list:
        print("\n".join(SCANS))
        return
    warnings.simplefilter("ignore")  # too few rows for this or that: such tables are among those that count
    print("| constant | default | best | regret | worst table (and the value that is best there) | seconds |")
    print("| --- | --- | --- | --- | --- | --- |")
    for name in chosen.constants or SCANS:
        if name not in SCANS:
            sys.exit(f"no scan of {name}; known are those of --list.")
        scan = SCANS[name]
        report(scan, chosen.seeds or scan.seeds, details=chosen.tables or len(chosen.constants) == 1)


if __name__ == "__main__":
    main()
