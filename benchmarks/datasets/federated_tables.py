"""Tables whose rows belong to many holders by nature: incomes by occupation, electricity prices by day.

`load` gives a `federated.holders.HolderTable`.
"""

import numpy as np
from federated.holders import split
from framework import Dataset
from stored_tables import stored_table

NAME = "federated"


def income():
    """Colorado, ordered by occupation code."""
    stored = stored_table("acsincome_co")
    X, y, names = stored["X"], stored["y"], stored["feature_names"].tolist()
    occupation = stored["X_codes"][:, stored["X_codes_names"].tolist().index("OCCP")]
    low, high = np.zeros(len(names)), np.ones(len(names))
    for column, largest in {"AGEP": 99.0, "SCHL": 24.0, "WKHP": 99.0}.items():
        high[names.index(column)] = largest
    return split("income", X, y, occupation, low, high)


def electricity():
    """In time order: 48 rows are a day."""
    stored = stored_table("electricity")
    X, y, names = stored["X"], stored["y"], stored["feature_names"].tolist()
    low, high = np.zeros(len(names)), np.ones(len(names))
    low[names.index("day")], high[names.index("day")] = 1.0, 7.0
    return split("electricity", X, y, np.arange(y.size), low, high)


federated_tables = [
    Dataset(
        "income by occupation",
        "folktables, ACSIncome, Colorado",
        income,
        True,
        (NAME,),
        "acsincome_co",
        facts={"place": "income", "title": "income, by occupation", "clients": (10, 100, 1_000)},
    ),
    Dataset(
        "electricity by day",
        "Elec2, OpenML 151",
        electricity,
        True,
        (NAME, "federated-overhead"),
        "electricity",
        facts={"place": "electricity", "title": "electricity, by day", "clients": (10, 100, 944)},  # 944 days
    ),
]
