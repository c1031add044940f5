"""Indicator rows, with columns that are used evenly and with columns of which a few are in most rows."""

import functools

import numpy as np
import scipy.sparse as sp
from framework import Dataset

ROWS, COLUMNS, PER_ROW = 10_000, 100_000, 20


def load(skew, rows=ROWS, columns=COLUMNS):
    """About PER_ROW ones in a row; column j is drawn with probability proportional to (j + 10)^-skew.

    The first twenty columns decide the labels, with weights of 2 and alternating signs.
    """
    rng = np.random.default_rng(0)
    popularity = (np.arange(columns) + 10.0) ** -skew
    chosen = rng.choice(columns, rows * PER_ROW, p=popularity / popularity.sum())
    X = sp.csr_array((np.ones(chosen.size), (np.repeat(np.arange(rows), PER_ROW), chosen)), (rows, columns))
    X.sum_duplicates()
    X.data[:] = 1.0
    margins = 2.0 * np.asarray(X[:, :20:2].sum(axis=1) - X[:, 1:20:2].sum(axis=1)).ravel()
    return X, np.where(margins + rng.logistic(size=rows) > 0.0, 1.0, -1.0)


sparse_labels = [
    Dataset(
        f"used {how}", f"generated, columns used {how}", functools.partial(load, skew), True, ("frank-wolfe-speed",)
    )
    for how, skew in (("evenly", 0.0), ("unevenly", 1.0))
]
