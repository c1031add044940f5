"""Four columns of incomes, sorted by occupation: cut into parts they make nodes that differ."""

import numpy as np
from framework import Dataset
from stored_tables import stored_table


def load():
    """Age, schooling, hours of work, sex."""
    table = stored_table("acsincome_co")
    order = np.argsort(table["X_codes"][:, 4], kind="stable")  # by occupation
    X = np.asarray(table["X"], float)[order][:, [0, 1, 2, -1]]
    return X, np.where(table["y"][order] == 1, 1.0, -1.0)


incomes_of_nodes = Dataset(
    "incomes of nodes", "folktables, ACSIncome, Colorado, four columns", load, True, ("decentralised",), "acsincome_co"
)
