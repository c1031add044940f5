"""Adult (UCI) and ACSIncome of Colorado: whether an income is above 50,000, categories as indicators."""

import functools

from framework import Dataset
from stored_tables import load_benchmark

from discreet.problem.losses import Logistic
from discreet.problem.penalties import L2

SOURCES = {"adult": "UCI Adult", "acsincome_co": "folktables, ACSIncome, Colorado"}


def load(name):
    X, y = load_benchmark(name)
    return X, 2.0 * y - 1.0


incomes = [
    Dataset(
        name,
        source,
        functools.partial(load, name),
        classification=True,
        experiments=("solvers",),
        stored=name,
        facts={"loss": Logistic(), "solvers": {"penalty": L2(1e-4), "declarable": False}},
    )
    for name, source in SOURCES.items()
]
