"""Dask tables with a row that cannot be read give the fits of a null row."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from discreet import LogisticRegression

dask = pytest.importorskip("dask")
dataframe = pytest.importorskip("dask.dataframe")
ROWS, AT = 900, 50
pytestmark = pytest.mark.filterwarnings("ignore::discreet.InsecureRandomnessWarning")


@pytest.mark.parametrize("convert", [True, False], ids=["texts of Arrow", "objects"])
@pytest.mark.parametrize("bad", [np.inf, None, "HIV", 10**400], ids=["infinity", "None", "text", "beyond floats"])
def test_objects_and_gaps_are_read_one_by_one(bad, convert):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, (ROWS, 3))
    y = (X[:, 0] > 0.0).astype(int)
    weight = (np.arange(ROWS) != AT).astype(float)
    model = LogisticRegression(bounds=(-1.0, 1.0), classes=[0, 1], random_state=0)
    wanted = model.fit(pd.DataFrame(X, columns=list("abc")), y, sample_weight=weight).coef_
    rows = pd.DataFrame(X, columns=list("abc")).assign(y=y)
    rows["b"] = rows["b"].astype(object)
    rows.loc[AT, "b"] = bad
    with dask.config.set({"dataframe.convert-string": convert}):
        found = model.set_params(invalid_rows="neutral").fit(dataframe.from_pandas(rows, npartitions=3), "y")
    assert found.coef_.tobytes() == wanted.tobytes()
    assert found.weighted_
