"""Pipelines, ONNX graphs and SQL answer as `predict` does, on every row; and none can leave out the clipping."""

import json
import pickle
import sqlite3
import sys

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.inspection import partial_dependence, permutation_importance
from sklearn.utils.estimator_checks import check_estimator

from discreet import LogisticRegression, Ridge, load_model, save_model
from discreet.data.files import read_table
from discreet.data.schema import Column, Schema, Target
from discreet.estimators.reading.linear_form import LinearForm
from discreet.estimators.reading.sql import sql_query
from discreet.preprocessing import ColumnClipper, check_pipeline
from tests.postgres import postgres_server
from tests.reading_tools import KINDS, NAMES, fitted, rows_that_leave_the_ranges

pytestmark = [
    pytest.mark.filterwarnings("ignore::discreet.InsecureRandomnessWarning"),
    pytest.mark.filterwarnings("ignore::discreet.UtilityWarning"),
]
CLOSE = {"rtol": 1e-12, "atol": 1e-12}


@pytest.fixture(scope="module", params=KINDS)
def model(request):
    return fitted(request.param)


@pytest.fixture(scope="module")
def rows(model):
    return rows_that_leave_the_ranges(model)


def unclipped(model, rows):
    """What somebody gets who reads `coef_` and forgets the ranges."""
    return rows.to_numpy() @ np.atleast_2d(model.coef_).T + model.intercept_


def scores_of(model, rows):
    """What is linear in the clipped entries: of counts and amounts the logarithm of the prediction."""
    if hasattr(model, "decision_function"):
        return model.decision_function(rows)
    return np.log(model.predict(rows)) if model._log_link else model.predict(rows)


def check_scores(model, rows, predicted):
    """Predictions of numbers are the model's, but for the order in which the terms of a score are added.

    A sum of k terms and an intercept differs between two orders by at most (k + 1) eps times the sum of their sizes; an
    exponential and its logarithm add an eps each.
    """
    clipped = np.clip(rows.to_numpy(np.float64), *model.ranges_)
    sizes = np.abs(clipped) @ np.abs(np.ravel(model.coef_)) + np.abs(model.intercept_)
    scores, found = scores_of(model, rows), np.log(predicted) if model._log_link else predicted
    rounding = (len(NAMES) + 1) * sizes + (2.0 + 2.0 * np.abs(scores) if model._log_link else 0.0)
    assert (np.abs(found - scores) <= np.finfo(np.float64).eps * rounding).all()


def test_predict_clips_to_the_ranges_and_these_are_shown(model, rows):
    low, high = model.ranges_
    inside = pd.DataFrame(np.clip(rows.to_numpy(), low, high), columns=NAMES)
    np.testing.assert_array_equal(scores_of(model, rows), scores_of(model, inside))
    np.testing.assert_allclose(scores_of(model, inside), np.squeeze(unclipped(model, inside)), **CLOSE)
    assert not np.allclose(scores_of(model, rows[5:]), np.squeeze(unclipped(model, rows[5:])))


def test_the_pipeline_predicts_the_same(model, rows):
    pipeline = pickle.loads(pickle.dumps(model.to_pipeline()))
    for table in (rows, rows.clip(-1e30, 1e30).astype(np.float32)):
        if hasattr(model, "classes_"):
            np.testing.assert_array_equal(pipeline.predict(table), model.predict(table))
        else:
            check_scores(model, table, pipeline.predict(table))
        for method in ("decision_function", "predict_proba"):
            assert hasattr(pipeline, method) == hasattr(model, method)
            if hasattr(model, method):
                np.testing.assert_allclose(getattr(pipeline, method)(table), getattr(model, method)(table), **CLOSE)
    with pytest.raises(ValueError, match="feature names should match"):
        pipeline.predict(rows[NAMES[::-1]])


def test_the_second_step_is_linear_in_what_the_first_returns(model, rows):
    """What linear explainers rest on: contributions coef x (entry - mean) add up to the score, exactly."""
    clip, linear = model.to_pipeline()[0], model.to_pipeline()[1]
    clipped = clip.transform(rows)
    background = clipped.mean(axis=0)
    coef = np.atleast_2d(linear.coef_)
    explained = np.einsum("nj,kj->nk", clipped - background, coef) + background @ coef.T + linear.intercept_
    scores = np.reshape(scores_of(model, rows), explained.shape)
    np.testing.assert_allclose(explained, scores, rtol=1e-10, atol=1e-10)


def test_scikit_learns_inspection_sees_the_model_itself():
    model = fitted("two classes")
    pipeline, rows = model.to_pipeline(), rows_that_leave_the_ranges(model)
    target = model.predict(rows)
    found = [permutation_importance(one, rows, target, n_repeats=3, random_state=0) for one in (model, pipeline)]
    np.testing.assert_array_equal(found[0].importances, found[1].importances)
    assert found[0].importances_mean.max() > 0.0
    curves = [partial_dependence(one, rows[5:], [0], grid_resolution=10)["average"] for one in (model, pipeline)]
    np.testing.assert_allclose(curves[0], curves[1], **CLOSE)
    assert np.ptp(curves[0]) > 0.0


def test_sparse_rows_go_through_the_pipeline():
    X = sp.random_array((400, 5), density=0.3, random_state=0, format="csr")
    y = np.asarray(X.sum(axis=1)).ravel()
    model = Ridge(bounds=(-0.5, 0.5), y_bounds=(0.0, 5.0), random_state=0, epsilon=5.0).fit(X, y)
    np.testing.assert_allclose(model.to_pipeline().predict(X), model.predict(X), **CLOSE)


def test_the_onnx_graph_scores_the_same(model, rows, tmp_path):
    runtime = pytest.importorskip("onnxruntime")
    made = model.to_onnx(tmp_path / "model.onnx")
    assert (tmp_path / "model.onnx").read_bytes() == made.SerializeToString()
    session = runtime.InferenceSession(str(tmp_path / "model.onnx"), providers=["CPUExecutionProvider"])
    found = dict(zip([o.name for o in session.get_outputs()], session.run(None, {"X": rows.to_numpy()}), strict=True))
    if "prediction" in found:
        np.testing.assert_allclose(found["prediction"], model.predict(rows), **CLOSE)
        return
    np.testing.assert_array_equal(found["label"], model.predict(rows))
    np.testing.assert_allclose(found["score"], model.decision_function(rows), **CLOSE)
    assert ("probabilities" in found) == hasattr(model, "predict_proba")
    if "probabilities" in found:
        np.testing.assert_allclose(found["probabilities"], model.predict_proba(rows), **CLOSE)


def test_the_onnx_file_names_the_columns_and_the_promise():
    model = fitted("regression")
    told = {entry.key: entry.value for entry in model.to_onnx().metadata_props}
    assert told["epsilon"] == "5.0"
    assert told["relation"] == "replace"
    assert json.loads(told["leaks"]) == list(model.guarantee_.leaks) != []  # a seed
    assert all(f'"{name}"'.replace('"', "")[:3] in told["columns"] for name in NAMES)


def test_without_onnx_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(RuntimeError, match=r"pip install 'discreet\[onnx\]'"):
        fitted("regression").to_onnx()


def database_of(rows, table="people"):
    """SQLite with the rows, and one more row of NULLs."""
    database = sqlite3.connect(":memory:")
    quoted = ['"' + name.replace('"', '""') + '"' for name in rows.columns]
    place = '"' + table.replace('"', '""') + '"'
    database.execute(f"CREATE TABLE {place} (id INTEGER, {', '.join(f'{name} REAL' for name in quoted)})")
    holes = ", ".join("?" * (1 + len(quoted)))
    values = [(i, *row) for i, row in enumerate(rows.to_numpy().tolist())]
    values.append((len(values), *[None] * len(quoted)))
    database.executemany(f"INSERT INTO {place} VALUES ({holes})", values)
    return database


def test_sql_scores_the_same_and_leaves_null_alone(model, rows):
    database = database_of(rows)
    classifier, proba = hasattr(model, "classes_"), hasattr(model, "predict_proba")
    query = model.to_sql("people", keep="id", score=classifier, proba=proba) + " ORDER BY id"
    found = pd.read_sql_query(query, database)
    assert found["id"].tolist() == list(range(len(rows) + 1))
    assert found.drop(columns="id").iloc[-1].isna().all()
    found, wanted = found.iloc[:-1], model.predict(rows)
    if not classifier:
        np.testing.assert_allclose(found["prediction"], wanted, **CLOSE)
        return
    np.testing.assert_array_equal(found["prediction"].astype(wanted.dtype), wanted)
    scores = found[[name for name in found if name.startswith("score")]].to_numpy()
    np.testing.assert_allclose(np.squeeze(scores), model.decision_function(rows), **CLOSE)
    if proba:
        names = [f"probability_{label}" for label in model.classes_.tolist()]
        np.testing.assert_allclose(found[names].to_numpy(dtype=float), model.predict_proba(rows), **CLOSE)


@pytest.mark.parametrize("name", ['"; DROP TABLE people; --', "a'b", 'x"."y', "sélect", "a\nb", "/*", "t"])
def test_no_name_can_end_its_quotes(name):
    model = fitted("two classes")
    rows = rows_that_leave_the_ranges(model)
    rows.columns = [name, "b", "c"]
    database = database_of(rows, table=name)
    found = database.execute(model.to_sql(name, columns=[name, "b", "c"], keep=["id", name])).fetchall()
    assert [row[2] for row in found[:-1]] == model.predict(rows.set_axis(NAMES, axis=1)).tolist()
    assert database.execute("SELECT name FROM sqlite_master").fetchall() == [(name,)]


@pytest.mark.parametrize("text", ["\\", "ill\\' OR 1 = 1 --", "a\0b"])
def test_a_label_or_category_that_some_database_reads_as_an_escape_is_refused(text):
    model = fitted("two classes")
    model.classes_ = np.array(["ill", text])
    with pytest.raises(ValueError, match="without NUL and without backslashes"):
        model.to_sql("people")
    rows = Schema((Column("c", "category", categories=("a", text)),))
    form = LinearForm(None, np.full(2, -np.inf), np.full(2, np.inf), np.ones((1, 2)), np.zeros(1), None, "none")
    with pytest.raises(ValueError, match="without NUL and without backslashes"):
        sql_query(form, "people", schema=rows)


def test_a_column_that_the_table_lacks_is_an_error_and_not_a_text():
    model = fitted("regression")
    database = database_of(rows_that_leave_the_ranges(model))
    with pytest.raises(sqlite3.OperationalError, match="no such column"):
        database.execute(model.to_sql("people", columns=["age", "b", "c"]))


def test_wrong_arguments_of_sql_are_told_in_one_line():
    model, plain = fitted("two classes"), Ridge(epsilon=5.0, bounds=(-1.0, 1.0), y_bounds=(-1.0, 1.0), random_state=0)
    plain.fit(np.zeros((500, 2)), np.zeros(500))
    wrong = [
        (plain, {"table": "t"}, r"pass columns=\[\.\.\.\]"),
        (plain, {"table": "t", "columns": ["a"]}, "columns has 1 names, but the model has 2"),
        (plain, {"table": "t", "columns": ["a", "b"], "proba": True}, "no probabilities"),
        (model, {"table": ""}, "not be empty"),
        (model, {"table": "a\0b"}, "without NUL"),
        (model, {"table": "a\\"}, "without backslashes"),
        (model, {"table": "t", "columns": ["a", "b\\", "c"]}, "without backslashes"),
        (model, {"table": "t", "keep": ["a\\' --"]}, "without backslashes"),
        (model, {"table": ()}, "table must be the name"),
        (model, {"table": "t", "keep": ["Prediction"]}, "two columns of the result"),
        (model, {"table": "t", "columns": ["a", 3, "c"]}, "must be texts"),
    ]
    for estimator, arguments, message in wrong:
        with pytest.raises(ValueError, match=message) as error:
            estimator.to_sql(**arguments)
        assert "\n" not in str(error.value)


def test_sql_takes_many_columns_and_skips_those_without_a_coefficient():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, (50, 1_500))
    model = Ridge(epsilon=1.0, bounds=(-1.0, 1.0), y_bounds=(-1.0, 1.0), solver="gd", random_state=0).fit(X, X[:, 0])
    model.coef_[700] = 0.0
    names = [f"c{j}" for j in range(1_500)]
    database = database_of(pd.DataFrame(X, columns=names))
    query = model.to_sql("people", columns=names)
    assert '"c700"' not in query
    found = [value for (value,) in database.execute(query)][:-1]
    np.testing.assert_allclose(found, model.predict(X), rtol=1e-10, atol=1e-10)


def test_a_constant_model_needs_no_column():
    model = fitted("two classes")
    model.coef_ = np.zeros_like(model.coef_)
    rows = rows_that_leave_the_ranges(model)
    found = database_of(rows).execute(model.to_sql("people", proba=True)).fetchall()
    assert {label for label, *_ in found} == set(model.predict(rows).tolist())


def test_exports_of_a_loaded_model_are_those_of_the_fitted_one(tmp_path):
    model = fitted("softmax")
    save_model(model, tmp_path / "model.json")
    loaded = load_model(tmp_path / "model.json")
    assert loaded.to_sql("t", proba=True) == model.to_sql("t", proba=True)
    assert loaded.to_onnx().SerializeToString() == model.to_onnx().SerializeToString()


def test_huge_scores_give_probabilities_in_sql():
    model = fitted("one against the rest")
    model.coef_ = 1e4 * model.coef_
    rows = rows_that_leave_the_ranges(model)
    found = np.array(database_of(rows).execute(model.to_sql("people", proba=True)).fetchall()[:-1], dtype=float)
    np.testing.assert_allclose(found[:, 1:].sum(axis=1), 1.0, rtol=1e-12)
    np.testing.assert_array_equal(found[:, 0], model.predict(rows))


def test_ends_that_only_guard_against_overflow_are_kept_everywhere():
    model = fitted("regression")
    model.ranges_ = (np.full(3, -1e100), np.full(3, 1e100))
    rows = rows_that_leave_the_ranges(fitted("regression"))
    found = [value for (value,) in database_of(rows).execute(model.to_sql("people"))][:-1]
    np.testing.assert_allclose(found, model.predict(rows), rtol=1e-12)


def test_postgresql_scores_the_same():
    psycopg = pytest.importorskip("psycopg")
    with postgres_server() as address, psycopg.connect(address, autocommit=True) as database:
        database.execute("CREATE SCHEMA clinic")
        quoted = ", ".join('"' + name.replace('"', '""') + '" DOUBLE PRECISION' for name in NAMES)
        database.execute(f"CREATE TABLE clinic.people (id INTEGER, {quoted})")
        rows = rows_that_leave_the_ranges(fitted("regression"))
        values = [(i, *row) for i, row in enumerate(rows.to_numpy().tolist())]
        database.cursor().executemany("INSERT INTO clinic.people VALUES (%s, %s, %s, %s)", values)
        database.execute("INSERT INTO clinic.people VALUES (1000, NULL, NULL, NULL)")
        for kind in KINDS:
            model = fitted(kind)
            proba = hasattr(model, "predict_proba")
            for factor in (1.0, 1e4):  # the second makes scores that EXP alone could not take
                model.coef_ = factor * model.coef_
                query = model.to_sql(("clinic", "people"), keep="id", proba=proba)
                *found, missing = database.execute(f"{query} ORDER BY id").fetchall()
                assert set(missing[1:]) == {None}
                predicted = np.array([row[1] for row in found])
                if hasattr(model, "classes_"):
                    assert predicted.tolist() == model.predict(rows).tolist()
                else:
                    check_scores(model, rows, predicted)
                if proba and model.multi_class == "multinomial":
                    chances = np.array([row[2:] for row in found], dtype=float)
                    np.testing.assert_allclose(chances, model.predict_proba(rows), **CLOSE)


def test_an_unfitted_model_has_nothing_to_export():
    for method, arguments in (("to_pipeline", ()), ("to_onnx", ()), ("to_sql", ("t",)), ("summary", ())):
        with pytest.raises(ValueError, match="not fitted"):
            getattr(LogisticRegression(), method)(*arguments)


def test_the_clipper_is_a_good_transformer():
    results = check_estimator(ColumnClipper(low=-1e6, high=1e6), on_fail=None, on_skip=None)
    assert [r["check_name"] for r in results if r["status"] == "failed"] == []
    for low, high, message in ((1.0, 0.0, "above high"), ([0.0], [1.0, 2.0], "high must be"), (np.nan, 1.0, "NaN")):
        with pytest.raises(ValueError, match=message):
            ColumnClipper(low, high).fit(np.zeros((2, 3)))


def test_the_clipper_may_stand_before_a_private_model():
    from sklearn.pipeline import make_pipeline

    check_pipeline(make_pipeline(ColumnClipper(low=0.0), Ridge()))


def test_sql_fills_gaps_as_the_schema_says(tmp_path):
    path = tmp_path / "people.csv"
    words = ["x", "y", "", "NA", "z", "None"]
    lines = [f"{'' if k % 7 == 0 else k % 10},{words[k % 6]},{words[(k + k // 6) % 6]},{k % 5}" for k in range(420)]
    path.write_text("a,c,e,t\n" + "\n".join(lines) + "\n")
    number, kind = Column("a", low=0, high=9, missing=4), "category"
    for columns in (
        (number, Column("c", kind, categories=("x", "y"), missing="y")),
        (Column("a", missing="indicator"), Column("c", kind, categories=("x", "NA"), missing="indicator")),
        (number, Column("c", kind, categories=("x", "")), Column("e", kind, categories=("y",))),
        (number, Column("e", kind, categories=("y", ""), missing="y")),
    ):
        schema = Schema(columns, Target("t", low=0, high=4))
        table = read_table(path, schema, target=True)
        model = Ridge(bounds=schema.bounds, y_bounds=(0, 4), epsilon=5.0, random_state=0).fit(table, None)
        database = sqlite3.connect(":memory:")
        rows = pd.read_csv(path, keep_default_na=False, na_values={"a": [""], "c": [], "e": []})
        rows["c"] = rows["c"].where(rows["c"] != "", None)  # a database has NULL where a file has nothing
        rows.to_sql("people", database, index=False)
        found = [value for (value,) in database.execute(model.to_sql("people", schema=schema))]
        np.testing.assert_allclose(found, model.predict(table), **CLOSE)


def test_sql_refuses_dates_by_name():
    schema = Schema((Column("a"), Column("born", "date")))
    with pytest.raises(ValueError, match="column 'born' is a date"):
        fitted("regression").to_sql("people", schema=schema)
