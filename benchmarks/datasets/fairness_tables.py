"""Census codes of two states, each standardised with the other's means; `load` gives a `fairness.cases.Case`."""

import functools

from fairness.cases import NAMES, census_case
from framework import Dataset

ROWS = {"acsincome_co": 28_175, "acsincome_ne": 9_707}  # that are fitted, so that cells are known without a table

fairness_tables = [
    Dataset(
        f"codes of {name}",
        f"folktables, ACSIncome, {state}",
        functools.partial(census_case, name),
        True,
        ("fairness",),
        name,
        facts={"place": name, "title": state, "rows": ROWS[name], "columns": 9},
    )
    for name, state in NAMES.items()
]
