"""Categories: which value is which, encoders that learn nothing, and frequent categories by noisy counts.

The statistical test has two arms and a fixed seed; with other seeds it raises a false alarm once in 1e4 runs.
"""

from __future__ import annotations

import itertools
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import make_pipeline

from discreet import Budget, Ledger, LogisticRegression, Relation
from discreet._common.exceptions import BudgetExceededError, UtilityWarning
from discreet.data.pipeline_steps import why_refused
from discreet.data.public import Public
from discreet.data.rows import Data
from discreet.preprocessing import (
    DeclaredImputer,
    DeclaredOneHotEncoder,
    PrivateFrequentCategories,
    check_pipeline,
    pipeline_guarantee,
)
from discreet.preprocessing.categories import (
    FALSE_CATEGORIES,
    MISSING,
    OTHER,
    _column_counts,
    category_codes,
    category_lists,
    learn_counts,
    one_hot,
    plan_counts,
)
from discreet.privacy import accounting, mechanisms
from discreet.privacy.random.generator import seeded_generator

pytestmark = pytest.mark.filterwarnings("ignore::discreet.InsecureRandomnessWarning")

VALUES = [1, 1.0, "1", np.float32(1.0), np.int8(1), True, None, np.nan, np.float32("nan"), pd.NA, pd.NaT, "", "a", b"a",
          ["a"], {"a": 1}, 1e308, float("inf"), "x" * 10_000, object]  # fmt: skip


def test_a_value_is_compared_as_text_and_anything_may_come():
    table = np.empty((len(VALUES), 1), dtype=object)
    table[:, 0] = VALUES
    codes = category_codes(table, [["1", "a"]])[:, 0].tolist()
    assert codes[:5] == [0] * 5
    assert codes[5] == OTHER
    assert codes[6:12] == [MISSING] * 6
    assert codes[12] == 1
    assert set(codes[13:]) == {OTHER}


@settings(max_examples=50)
@given(st.lists(st.sampled_from(["a", "b", "c", "", None, 3]), min_size=1, max_size=8), st.booleans(), st.booleans())
def test_encoding_treats_every_row_on_its_own(values, other, missing):
    table = np.array(values, dtype=object)[:, None]
    encoder = DeclaredOneHotEncoder(categories=["a", "b"], other=other, missing_indicator=missing, baseline=None).fit(
        table[:1]
    )
    whole = encoder.transform(table)
    assert whole.dtype == bool
    assert (whole.sum(axis=1) <= 1).all()
    assert not other or (whole.sum(axis=1) == 1).all()
    np.testing.assert_array_equal(whole, np.vstack([encoder.transform(table[i : i + 1]) for i in range(len(values))]))
    assert whole.shape[1] == len(encoder.get_feature_names_out()) == 2 + other + missing


def test_fit_reads_no_value():
    first, second = (pd.DataFrame({"c": values}) for values in (["a", "b"], [None, "z"]))
    encoders = [
        DeclaredOneHotEncoder(categories={"c": ["a", "b"]}, baseline=None).fit(table) for table in (first, second)
    ]
    assert vars(encoders[0]).keys() == vars(encoders[1]).keys()
    np.testing.assert_array_equal(*(encoder.transform(first) for encoder in encoders))
    assert clone(encoders[0]).get_params() == encoders[0].get_params()


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame])
def test_names_and_types_of_frames(make):
    frame = make({"c": ["a", None, "q"], "d": [1, 2, 1]})
    encoder = DeclaredOneHotEncoder(categories={"d": [1, 2], "c": ["a"]}, missing_indicator=True, baseline=None).fit(
        frame
    )
    names = ["c_a", "c_other", "c_missing", "d_1", "d_2", "d_other", "d_missing"]
    assert encoder.get_feature_names_out().tolist() == names
    table = encoder.set_output(transform="pandas").transform(frame)
    assert list(table.columns) == names
    assert set(map(str, table.dtypes)) == {"bool"}
    np.testing.assert_array_equal(table.to_numpy().astype(int)[:, :3], [[1, 0, 0], [0, 0, 1], [0, 1, 0]])


@pytest.mark.parametrize(
    ("categories", "message"),
    [
        (None, "categories must be a list"),
        ([], "categories must be a list"),
        ("ab", "categories must be a list"),
        ([["a"]], "for each of the 2 columns"),
        ([["a"], []], "for each of the 2 columns"),
        ([["a"], "b"], "for each of the 2 columns"),
        (["a", "a"], "lists 'a' twice"),
        ([[1, "1"], [2]], "lists '1' twice"),
        ({"x": ["a"]}, "must list every column of the table once; check y"),
        ({"x": ["a"], "y": ["b"], "zz": ["c"]}, "check zz"),
        ([["other"], ["a"]], "two columns would be called 'x_other'"),
    ],
)
def test_mistakes_in_declarations_are_told_in_one_line(categories, message):
    frame = pd.DataFrame({"x": ["a"], "y": ["b"]})
    for kind in (DeclaredOneHotEncoder, PrivateFrequentCategories):
        with pytest.raises(ValueError, match=message) as error:
            kind(categories=categories).fit(frame)
        assert "\n" not in str(error.value)
    if isinstance(categories, dict):
        with pytest.raises(ValueError, match="by name needs a table with column names"):
            DeclaredOneHotEncoder(categories=categories).fit(frame.to_numpy())


def test_a_model_behind_declared_steps_costs_what_it_costs_alone():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"c": rng.choice(["a", "b", "z"], 2000), "x": rng.normal(size=2000)})
    frame.loc[::7, "x"] = np.nan
    y = (frame.c == "a").astype(int)
    encode = ("c", DeclaredOneHotEncoder(categories=["a", "b"], baseline=None), ["c"])
    steps = ColumnTransformer([encode, ("x", DeclaredImputer(add_indicator=True), ["x"])], sparse_threshold=0)
    model = LogisticRegression(classes=[0, 1], random_state=0)
    pipeline = make_pipeline(steps.set_output(transform="pandas"), model)
    check_pipeline(pipeline)
    pipeline.fit(frame, y)
    assert pipeline_guarantee(pipeline).epsilon == pytest.approx(1.0)
    facts = pipeline[-1].plan_.public
    assert facts.declared.tolist() == [True] * 3 + [False, False]  # bool columns are known
    assert pipeline.score(frame, y) > 0.9

    class Learns(DeclaredOneHotEncoder):
        pass

    assert why_refused(Learns(categories=["a"])) is not None  # a subclass may do anything


# --- frequent categories -----------------------------------------------------------------------------------------

CANDIDATES = [["a", "b", "c"], ["x", "y"]]
ANY = ["a", "b", "c", "x", "y", "other", None]


def counts_of(table, weight):
    codes = category_codes(table, CANDIDATES)
    return np.concatenate([_column_counts(codes[:, j], weight, len(CANDIDATES[j])) for j in range(2)])


@pytest.mark.parametrize("relation", list(Relation))
def test_counts_move_by_at_most_their_sensitivity_and_attain_it(relation):
    """All pairs of rows; weights 0, 1/2 and 1 for the row that changes."""
    rest = np.array([["a", "x"], ["b", "q"]], dtype=object)
    claimed, largest = mechanisms.one_hot_counts(relation, 2), 0.0
    rows = list(itertools.product(ANY, repeat=2))
    for first, second in itertools.product(rows, rows if relation is Relation.REPLACE else [None]):
        for weight in (0.5, 1.0):
            tables = [np.vstack([rest, np.array([row], dtype=object)]) for row in (first, second) if row is not None]
            weights = np.array([1.0, 1.0, weight])
            found = [counts_of(table, weights) for table in tables]
            if relation is Relation.ZERO_OUT:
                found.append(counts_of(tables[0], np.array([1.0, 1.0, 0.0])))
            elif relation is Relation.ADD_REMOVE:
                found.append(counts_of(rest, weights[:2]))
            move = found[0] - found[1]
            assert np.linalg.norm(move) <= claimed.l2 * (1 + 1e-12)
            assert np.abs(move).sum() <= claimed.l1 * (1 + 1e-12)
            largest = max(largest, float(np.linalg.norm(move)))
    assert largest == pytest.approx(claimed.l2)


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize("budget", [Budget(1.0, 1e-9), Budget.pure(0.5), Budget.gdp(0.3)], ids=str)
def test_counts_cost_the_whole_budget_and_no_more(relation, budget):
    step = PrivateFrequentCategories(categories=["a"], epsilon=budget, relation=relation, public_n=1000)
    event = step.plan(1000, 2).event
    assert accounting.fits(event, budget, relation)
    assert not accounting.fits(event, budget.part(0.99), relation)


def people(rows=20_000, seed=0):
    rng = np.random.default_rng(seed)
    return rng.choice(["a", "b", "c", "unlisted"], (rows, 1), p=[0.5, 0.3, 0.0005, 0.1995])


def test_frequent_categories_are_kept_and_rare_ones_are_not():
    step = PrivateFrequentCategories(categories=["a", "b", "c", "never"], random_state=0).fit(people())
    assert step.categories_ == [["a", "b"]]
    assert step.get_feature_names_out().tolist() == ["x0_a", "x0_b", "x0_other"]
    np.testing.assert_allclose(step.counts_[0], [10_000, 6_000, 10, 0], atol=300)
    encoded = step.transform([["a"], ["c"], ["unlisted"], [None]]).astype(int)
    np.testing.assert_array_equal(encoded, [[1, 0, 0], [0, 0, 1], [0, 0, 1], [0, 0, 1]])
    one = PrivateFrequentCategories(categories=["a", "b", "c"], max_categories=1, random_state=0).fit(people())
    assert one.categories_ == [["a"]]
    with pytest.warns(UtilityWarning, match="no category is as frequent"):
        PrivateFrequentCategories(categories=["never"], random_state=0).fit(people())


@pytest.mark.parametrize(
    ("settings_", "message"), [({"min_frequency": 1.0}, "min_freq"), ({"max_categories": 0}, "max_cat")]
)
def test_settings_are_checked_before_a_row_is_counted(settings_, message):
    with pytest.raises(ValueError, match=message):
        PrivateFrequentCategories(categories=["a"], **settings_).plan(10, 1)


def test_the_ledger_pays_first(tmp_path):
    ledger = Ledger(f"sqlite:///{tmp_path / 'book.db'}")
    ledger.open("people", epsilon=1.0, delta=1e-6)
    step = PrivateFrequentCategories(categories=["a"], delta=1e-7, ledger=ledger, dataset="people")
    step.fit(people(2000))
    assert ledger.spent("people") == pytest.approx(step.guarantee_.epsilon_at(1e-6), rel=1e-3)
    with pytest.raises(BudgetExceededError):
        clone(step).fit(people(2000))


@pytest.mark.parametrize(("noise", "fails"), [(1.0, False), (3.0, True)])
def test_candidates_that_nobody_has_are_seldom_kept(noise, fails):
    """With noise of the claimed size 1e-3 false ones are expected in a fit; with three times as much, dozens."""
    plan, rng, found = plan_counts(Public.of(5000, 1), Budget(1.0, 1e-9)), seeded_generator(7), 0
    data = Data(np.full((5000, 1), -1.0), np.zeros(5000))
    mechanism = replace(plan.mechanism, multiplier=noise * plan.mechanism.multiplier)
    louder = replace(plan, mechanisms={"mechanism": mechanism})
    for _ in range(100):
        level = learn_counts(plan, data, [500], rng)[1]
        found += int((learn_counts(louder, data, [500], rng)[0][0] > level).sum())
    # Poisson with mean 0.1 (truth): 4 or more has probability 4e-6.
    assert (found >= 4) == fails
    assert FALSE_CATEGORIES == 1e-3


def test_one_category_of_each_column_is_the_baseline():
    frame = pd.DataFrame({"c": ["a", "b", "z"], "d": [1, 2, 3]})
    lists = {"c": ["a", "b"], "d": [1, 2]}
    for baseline, names in [
        ("first", ["c_b", "c_other", "d_2", "d_other"]),
        (None, ["c_a", "c_b", "c_other", "d_1", "d_2", "d_other"]),
        (["b", 1], ["c_a", "c_other", "d_2", "d_other"]),
        ({"d": 2, "c": "a"}, ["c_b", "c_other", "d_1", "d_other"]),
    ]:
        encoder = DeclaredOneHotEncoder(categories=lists, baseline=baseline).fit(frame)
        assert encoder.get_feature_names_out().tolist() == names
        encoded = encoder.transform(frame)
        assert encoded.shape == (3, len(names))
        full = DeclaredOneHotEncoder(categories=lists, baseline=None).fit(frame)
        places = [full.get_feature_names_out().tolist().index(name) for name in names]
        np.testing.assert_array_equal(encoded, full.transform(frame)[:, places])
        first = np.column_stack([np.ones(3), encoded[:, : len(names) // 2]])
        assert bool(np.linalg.matrix_rank(first) == first.shape[1]) is (
            baseline is not None
        )  # three values, three columns
    for wrong in ("last", ["a"], ["a", "zz"], {"c": "a"}):
        with pytest.raises(ValueError, match="baseline"):
            DeclaredOneHotEncoder(categories=lists, baseline=wrong).fit(frame)


def test_lists_for_all_columns_and_sizes_of_blocks():
    assert category_lists([1, 2.0], 2) == [["1", "2"]] * 2
    codes = np.array([[0, OTHER], [MISSING, 1]])
    np.testing.assert_array_equal(one_hot(codes, [[0], [0, 1]], True, False), [[1, 0, 0, 0, 1], [0, 1, 0, 1, 0]])
    np.testing.assert_array_equal(one_hot(codes, [[0], [0, 1]], False, True), [[1, 0, 0, 0, 0], [0, 1, 0, 1, 0]])


def test_pipelines_compose_the_cost():
    frame = pd.DataFrame(people(3000), columns=["c"])
    y = (frame.c == "a").astype(int)
    step = PrivateFrequentCategories(categories=["a", "b", "c"], epsilon=0.5, random_state=0)
    pipeline = make_pipeline(step, LogisticRegression(epsilon=0.5, classes=[0, 1], random_state=1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UtilityWarning)
        pipeline.fit(frame, y)
    assert 0.5 < pipeline_guarantee(pipeline).epsilon <= 1.0
    assert pipeline[-1].plan_.public.bounded  # what comes out of the encoder has the type bool
    assert pipeline.score(frame, y) > 0.95


def test_a_number_that_is_too_long_for_a_text_is_another_value():
    rows = np.array([["a"], [10**5000], [-(10**5000)]], dtype=object)
    encoded = DeclaredOneHotEncoder(categories=["a"], baseline=None).fit_transform(rows)
    np.testing.assert_array_equal(encoded, [[1, 0], [0, 1], [0, 1]])
