"""What the first mistakes of a user meet: one line that says what to do, and that quotes no entry of the rows."""

from __future__ import annotations

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pytest

from discreet import GammaRegressor, LogisticRegression, PoissonRegressor, Ridge
from discreet.model_selection import PrivateSearchCV, cross_val_score_private
from discreet.preprocessing import PrivateScaler

MODEL = LogisticRegression(classes=[0, 1], bounds=(-1.0, 1.0), solver="gd")
RIDGE = Ridge(bounds=(-1.0, 1.0), y_bounds=(-1.0, 1.0))
X = np.random.default_rng(0).uniform(-1.0, 1.0, (400, 3))
Y = (X[:, 0] > 0.0).astype(int)
FRAME = pd.DataFrame(X, columns=list("abc")).assign(status=Y)
SECRET = "1959-11-23"  # of one row alone


def with_entry(value, dtype=float):
    rows = X.astype(dtype)
    rows[7, 1] = value
    return rows


DAY = datetime.date.fromisoformat(SECRET)
DATES = pd.DataFrame({"a": X[:, 0], "day": pd.to_datetime([SECRET] * 400)})
REFUSED = {
    "NaN": (lambda: MODEL.fit(with_entry(np.nan), Y), r"X contains NaN .*DeclaredImputer.*PrivateImputer"),
    "infinity": (lambda: MODEL.fit(with_entry(np.inf), Y), r"X contains NaN or infinity"),
    "NaN in a frame": (lambda: MODEL.fit(pd.DataFrame(with_entry(np.nan)), Y), "X contains NaN"),
    "NaN at prediction": (lambda: MODEL.fit(X, Y).predict(with_entry(np.nan)), "X contains NaN"),
    "NaN in a step": (lambda: PrivateScaler(bounds=(-1.0, 1.0)).fit(with_entry(np.nan)), "X contains NaN"),
    "NaN as a target": (lambda: RIDGE.fit(X, with_entry(np.nan)[:, 1]), "y contains NaN .*invalid_rows=.neutral"),
    "dates": (
        lambda: MODEL.fit(DATES, Y),
        "column 'day' of X holds dates or times: make them numbers by a public rule",
    ),
    "only dates": (lambda: MODEL.fit(DATES[["day"]], Y), "column 'day' of X holds dates"),
    "durations": (lambda: MODEL.fit(DATES[["day"]] - DATES.day[0], Y), "column 'day' of X holds dates or times"),
    "dates of Polars": (lambda: MODEL.fit(pl.DataFrame({"day": [DAY] * 400}), Y), "column 'day' of X holds dates"),
    "dates of NumPy": (lambda: MODEL.fit(np.full((400, 1), SECRET, "datetime64[D]"), Y), "X holds dates"),
    "dates as objects": (lambda: MODEL.fit(with_entry(DAY, object), Y), "a column of X holds dates"),
    "dates as a target": (lambda: RIDGE.fit(X, DATES.day), "y holds dates"),
    "no target": (lambda: MODEL.fit(X, None), r"the target y is None: fit\(X, y\)"),
    "another name": (lambda: MODEL.fit(FRAME, "staus"), "X has no column 'staus'; did you mean 'status'"),
    "a name without names": (lambda: MODEL.fit(X, "status"), "X has no names: pass a data frame"),
    "a file to predict": (lambda: MODEL.fit(X, Y).predict("big.parquet"), "not the name of one"),
    "a CSV file": (lambda: MODEL.fit(__file__, "status"), "is no Parquet file; read it first"),
    "negative limits": (
        lambda: PoissonRegressor(bounds=(-1.0, 1.0), y_bounds=(-1.0, 5.0)).fit(X, Y),
        r"y_bounds of PoissonRegressor must not be negative: pass y_bounds=\(0, high\)",
    ),
    "negative amounts": (
        lambda: GammaRegressor(bounds=(-1.0, 1.0), y_bounds=(-1.0, 5.0)).plan(100, 3),
        "y_bounds of GammaRegressor must not be negative",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_mistake_meets_one_line_that_says_what_to_do(case):
    call, words = REFUSED[case]
    with pytest.raises(ValueError, match=words) as refused:
        call()
    told = str(refused.value)
    assert "\n" not in told
    assert SECRET not in told
    assert "1959" not in told
    # Imputers of scikit-learn, or leaving rows out, would void the guarantee.
    assert "scikit-learn" not in told
    assert "drop" not in told


def test_a_file_that_is_not_there():
    with pytest.raises(FileNotFoundError, match=r"gone\.parquet does not exist"):
        MODEL.fit("gone.parquet", "status")


@pytest.mark.parametrize("library", [pd, pl], ids=["pandas", "polars"])
def test_y_may_name_a_column_of_a_data_frame(library):
    frame = FRAME if library is pd else pl.from_pandas(FRAME)
    one = LogisticRegression(classes=[0, 1], bounds=(-1.0, 1.0), random_state=0)
    with pytest.warns(UserWarning, match="seed"):
        named, apart = (one.fit(*given).coef_.copy() for given in ((frame, "status"), (FRAME[list("abc")], Y)))
    assert (named == apart).all()
    assert one.feature_names_in_.tolist() == list("abc")


def test_searches_take_the_name_of_a_column_too():
    assert PrivateSearchCV(MODEL, {"alpha": [1.0]}, n_iter=2).fit(FRAME, "status").guarantee_.epsilon == 1.0
    assert len(cross_val_score_private(MODEL, FRAME, "status", cv=2).scores) == 2


def test_a_parquet_file_or_folder_is_read_block_by_block(tmp_path):
    FRAME[:200].to_parquet(tmp_path / "1.parquet")
    FRAME[200:].to_parquet(tmp_path / "2.parquet")
    FRAME.to_parquet(tmp_path / "all.pq")
    for path in (tmp_path, str(tmp_path / "*.parquet"), tmp_path / "all.pq"):
        model = LogisticRegression(classes=[0, 1], bounds=(-1.0, 1.0), solver="gd").fit(path, "status")
        assert model.plan_.public.stored
        assert model.plan_.public.rows == 400
        assert model.feature_names_in_.tolist() == list("abc")


def test_negative_counts_count_as_zero_and_no_error_tells_of_them():
    model = PoissonRegressor(bounds=(-1.0, 1.0), y_bounds=(0.0, 5.0)).fit(X, Y - 3)
    assert np.isfinite(model.coef_).all()
