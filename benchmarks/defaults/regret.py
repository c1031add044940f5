"""What a default loses against the best value of a scan, from the logarithms of errors by value, table and seed."""

from __future__ import annotations

from typing import Any

import numpy as np
from framework.markdown import table

from defaults.scans import shown
from defaults.tables import FloatArray

HEAD = ["constant", "default", "best", "regret", "worst table (and the value that is best there)"]


def regret_table(constant: str, values: tuple[Any, ...], default: int, tables: list[str], found: FloatArray) -> str:
    """The line of docs/defaults.md, and the geometric means over seeds that it comes from."""
    means = found.mean(axis=2)
    best = best_of(means.mean(axis=1), default)
    worst = int(np.argmax(means[default] - means.min(axis=0)))
    best_there = best_of(means[:, worst], default)
    lost_there = regret((found[default] - found[best_there])[worst : worst + 1])
    there = f"{lost_there} ({tables[worst]}: {shown(values[best_there])})"
    named = [f"`{constant}`", shown(values[default]), shown(values[best])]
    line = table(HEAD, [[*named, regret(found[default] - found[best]), there]])
    rows = [[name, *(f"{error:.3f}" for error in np.exp(means[:, j]))] for j, name in enumerate(tables)]
    rows.append(["all", *(f"{error:.4f}" for error in np.exp(means.mean(axis=1)))])
    return f"{line}\n\n{table(['mean error with', *map(shown, values)], rows)}"


def best_of(errors: FloatArray, default: int) -> int:
    """The place of the smallest error; the default's where no value does better."""
    return default if errors[default] <= errors.min() + 1e-9 else int(np.argmin(errors))


def regret(differences: FloatArray) -> str:
    """A ratio of geometric means, less 1, and its standard error, which comes from the spread between seeds."""
    tables, seeds = differences.shape
    ratio = np.exp(differences.mean())
    if seeds == 1:
        return f"{ratio - 1.0:.0%}"
    error = np.sqrt(differences.var(axis=1, ddof=1).sum() / seeds) / tables
    return f"{ratio - 1.0:.0%} +- {ratio * error:.0%}"
