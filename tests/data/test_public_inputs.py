"""Public models and public tables: what is accepted, what is refused, and that they travel with an estimator."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression as PlainLogistic

from discreet import LogisticRegression, Problem, PublicModel, PublicTable, Ridge, load_model, save_model, solve
from discreet._common.digest import digest_of
from discreet.data.public import Public
from discreet.problem.losses import Logistic

RNG = np.random.default_rng(0)
X = RNG.normal(size=(400, 3)) * [1.0, 20.0, 0.1]
Y = (X[:, 0] + 0.3 * RNG.normal(size=400) > 0.0).astype(int)
DECLARED = {"classes": [0, 1], "epsilon": 1.0, "delta": 1e-6}


def names(*columns):
    return pd.DataFrame(X, columns=list(columns))


def test_a_fitted_model_gives_its_coefficients_labels_and_names():
    plain = PlainLogistic().fit(names("a", "b", "c"), Y)
    start = PublicModel.of(plain)
    np.testing.assert_array_equal(start.coef, plain.coef_[0])
    assert (float(start.intercept), start.classes) == (float(plain.intercept_[0]), (0, 1))
    assert start.feature_names == ("a", "b", "c")


def test_several_classes_keep_one_row_each():
    plain = PlainLogistic().fit(X, RNG.integers(0, 3, 400))
    assert PublicModel.of(plain).coef.shape == (3, 3)
    np.testing.assert_array_equal(PublicModel(np.ones((3, 2))).intercept, np.zeros(3))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: PublicModel.of(PlainLogistic()), "has no coef_"),
        (lambda: PublicModel([1.0, np.nan]), "finite"),
        (lambda: PublicModel([1.0, 2.0], [1.0, 2.0]), "one intercept per row"),
        (lambda: PublicModel(1.0), "one or two dimensions"),
        (lambda: PublicTable(X[:1]), "at least 2 rows"),
        (lambda: PublicTable(X, Y[:-1]), "one value per row"),
        (lambda: PublicTable(X, np.full(400, np.nan)), "NaN"),
        (lambda: LogisticRegression(start=[1.0]).plan(100, 1), r"PublicModel.of\(fitted_model\)"),
        (lambda: LogisticRegression(public_table=X).plan(400, 3), "must be a PublicTable"),
        (lambda: LogisticRegression(start=PublicModel([1.0])).plan(100, 2), "start has 1 columns"),
        (lambda: Ridge(public_table=PublicTable(X)).plan(100, 2), "public_table has 3 columns"),
        (lambda: Ridge(start=PublicModel([1.0], classes=[0, 1])).plan(100, 1), "start is a classifier, but"),
        (lambda: Ridge(public_table=PublicTable(X, Y.astype(str))).plan(100, 3), "must be numbers"),
        (lambda: LogisticRegression(start=PublicModel([1.0], classes="ny"), classes=[0, 1]).plan(100, 1),
         r"classes \['n', 'y'\], but this model has \[0, 1\]"),
        (lambda: LogisticRegression(start=PublicModel([1.0]), classes=[0, 1, 2]).plan(100, 1, 3), r"needs \(3, 1\)"),
        (lambda: Ridge(start=PublicModel([1.0], 2.0), fit_intercept=False).plan(100, 1), "has an intercept"),
        (lambda: LogisticRegression(public_table=PublicTable(X, Y), classes=[1, 2]).plan(100, 3), "not in classes"),
        (lambda: PublicTable(np.where(X > 1.0, np.nan, X)), "the public table contains NaN; remove those rows or fill"),
        (lambda: PublicTable(X, feature_names=["a"]), "1 names for 3 columns"),
        (lambda: PublicModel([1.0, 2.0], feature_names=["a"]), "1 names for 2 columns"),
        (lambda: Ridge(public_table=PublicTable(X), bounds=(1e3, 2e3)).plan(100, 3), "column 0 of public_table"),
        (lambda: Ridge(public_table=PublicTable(X, Y), y_bounds=(5, 9)).plan(100, 3), "outside y_bounds"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused_in_one_line(make, words):
    with pytest.raises(ValueError, match=words) as refused:
        make()
    assert "\n" not in str(refused.value)


def test_columns_of_other_names_are_refused():
    start = PublicModel([1.0, 2.0, 3.0], feature_names=["a", "b", "z"])
    with pytest.raises(ValueError, match=r"start must have the same columns .* is 'z' / 'c'"):
        LogisticRegression(start=start, **DECLARED).fit(names("a", "b", "c"), Y)
    with pytest.raises(ValueError, match=r"public_table must have the same columns .* is 'c' / 'a'"):
        LogisticRegression(public_table=PublicTable(names("c", "b", "a")), **DECLARED).fit(names("a", "b", "c"), Y)


@pytest.mark.parametrize(
    "same", [(X, X), (X, X[100:]), (X[:300], X[200:]), (sp.csr_array(X),) * 2, (names("a", "b", "c"),) * 2]
)
def test_the_private_rows_as_a_public_table_are_refused(same):
    given, private = same
    with pytest.raises(ValueError, match="holds the private rows themselves"):
        LogisticRegression(public_table=PublicTable(given), **DECLARED).fit(private, Y[: private.shape[0]])
    with pytest.raises(ValueError, match="holds the private rows themselves"):
        solve(Problem(Logistic()), private, Y[: private.shape[0]] * 2.0 - 1.0, public_table=PublicTable(given))


def test_other_rows_of_the_same_array_are_no_private_rows():
    for public, private in ((X[:200], X[200:]), (X[::2], X[1::2]), (X.copy(), X)):
        assert not PublicTable(public).is_made_of(private)
    assert not pickle.loads(pickle.dumps(PublicTable(X))).is_made_of(X)


def test_streams_take_no_public_inputs():
    model = LogisticRegression(start=PublicModel([1.0]), bounds=(0, 1), public_n=100, **DECLARED)
    with pytest.raises(AttributeError, match="takes no public inputs"):
        model.partial_fit(X[:, :1], Y)


def test_a_public_table_is_a_copy_that_its_owner_cannot_change():
    rows = X.copy()
    table = PublicTable(rows, Y)
    rows[:] = 7.0
    np.testing.assert_array_equal(table.X, X)


def test_clones_and_model_files_keep_the_start(tmp_path):
    start = PublicModel([1.0, 0.0, 3.0], 0.5, classes=[0, 1])
    model = LogisticRegression(start=start, bounds=(-100.0, 100.0), **DECLARED)
    assert clone(model).start == start
    assert start != PublicModel([1.0, 0.0, 3.0], 0.25, classes=[0, 1])
    fitted = model.fit(X, Y)
    save_model(fitted, tmp_path / "model.json")
    loaded = load_model(tmp_path / "model.json")
    assert loaded.start == start
    assert loaded.guarantee_.public_inputs == ("the coefficients from which the fit started",)
    assert fitted.guarantee_.to_dict() == loaded.guarantee_.to_dict()


def test_model_files_tell_of_a_public_table_and_do_not_hold_it(tmp_path):
    fitted = LogisticRegression(public_table=PublicTable(X[:100], Y[:100]), **DECLARED).fit(X[100:], Y[100:])
    save_model(fitted, tmp_path / "model.json")
    loaded = load_model(tmp_path / "model.json")
    assert loaded.public_table is None
    assert loaded.guarantee_.public_inputs == ("a second table, of 100 rows and their targets",)
    assert "A second table, of 100 rows and their targets: taken as public." in " ".join(str(loaded.guarantee_).split())


def test_a_plan_without_public_inputs_has_the_digest_of_its_other_facts():
    facts = Public.of(100, 2)
    given = Public.of(100, 2, start=PublicModel([1.0, 2.0]))
    other = Public.of(100, 2, start=PublicModel([1.0, 2.5]))
    assert digest_of(facts) == digest_of(Public.of(100, 2, start=None, table=None))
    assert len({digest_of(facts), digest_of(given), digest_of(other)}) == 3
