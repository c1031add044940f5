"""Predictions for Dask tables are Dask arrays that nothing computes before they are asked for."""

from __future__ import annotations

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest

from discreet import LogisticRegression, PoissonRegressor, Ridge

X = np.random.default_rng(0).uniform(-1.0, 1.0, (300, 3))
FRAME = pd.DataFrame(X, columns=list("abc"))
LABELS = np.array(["no", "perhaps", "yes"])[np.arange(300) % 3]
MODELS = [
    (LogisticRegression(classes=["no", "yes"], bounds=(-1.0, 1.0)), np.where(X[:, 0] > 0.0, "yes", "no")),
    (LogisticRegression(classes=["no", "perhaps", "yes"], bounds=(-1.0, 1.0)), LABELS),
    (Ridge(bounds=(-1.0, 1.0), y_bounds=(-1.0, 1.0)), X[:, 0]),
    (PoissonRegressor(bounds=(-1.0, 1.0), y_bounds=(0.0, 5.0)), np.arange(300) % 4),
]
METHODS = ("predict", "decision_function", "predict_proba", "predict_log_proba")


@pytest.mark.filterwarnings("ignore::discreet.UtilityWarning")
@pytest.mark.parametrize(("model", "y"), MODELS, ids=["two", "three", "ridge", "poisson"])
def test_they_are_lazy_and_those_of_the_rows(model, y):
    for rows, table in ((FRAME, dd.from_pandas(FRAME, npartitions=4)), (X, da.from_array(X, chunks=(70, 2)))):
        model.fit(rows, y)
        for name in METHODS:
            if not hasattr(model, name):
                continue
            with dask.config.set(scheduler=refuse):
                lazy = getattr(model, name)(table)
            exact = getattr(model, name)(rows)
            assert isinstance(lazy, da.Array)
            assert lazy.dtype == exact.dtype
            assert lazy.shape[1:] == exact.shape[1:]
            assert (lazy.compute(scheduler="synchronous") == exact).all()
        with dask.config.set(scheduler="synchronous"):
            assert model.score(table, y) == model.score(rows, y)


def refuse(*_, **__):
    raise AssertionError("computed before it was asked for")


def test_empty_partitions_and_other_columns():
    model = MODELS[0][0].fit(FRAME, MODELS[0][1])
    table = dd.from_pandas(FRAME, npartitions=4)
    with dask.config.set(scheduler="synchronous"):
        assert model.predict(table[table.a > 2.0]).compute().shape == (0,)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(table[["a", "b"]])  # at once, not on a worker
