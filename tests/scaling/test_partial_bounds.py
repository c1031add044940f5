"""Bounds of some columns, or of one side: plans, sensitivities, what is clipped, and models that are no worse for them.

Tests of quality compare seeded runs; with other seeds their margins fail in fewer than one run in a thousand.
"""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pandas as pd
import pytest

from discreet import Budget, LogisticRegression, Relation, Ridge, load_model, save_model, solve
from discreet.audit.replays.replay import replay
from discreet.data.public import Public
from discreet.data.rows import Data
from discreet.estimators.stored_plan import plan_of
from discreet.preprocessing import PrivateQuantiles, PrivateScaler, private_means
from discreet.privacy.random.generator import seeded_generator
from discreet.problem.losses import Logistic
from discreet.problem.penalties import L2
from discreet.problem.problem import Problem
from discreet.scaling.learn import learn_scaling
from discreet.scaling.plan import counted_columns, plan_scaling
from discreet.solvers.run import make_plan

pytestmark = pytest.mark.filterwarnings("ignore::discreet.InsecureRandomnessWarning")

BUDGET = Budget(1.0, 1e-9)
WEAK = Budget(0.5, 1e-6)
OPEN, SOME = (None, None), (0.0, 5.0)
MANY, LIMITS = 400, (0.0, 5.0)  # columns, and their bounds: not 0 and 1


def bounds_of(columns, declared, limits=LIMITS):
    return tuple(np.where(np.arange(columns) < declared, end, np.nan) for end in limits)


def scaling_plan_of(rows, columns, declared, limits=LIMITS, budget=BUDGET):
    public = Public.of(rows, columns, bounds=bounds_of(columns, declared, limits))
    return public, plan_scaling(public, budget, None, True, False)


@pytest.mark.parametrize(
    ("rows", "declared", "limits", "method", "groups"),
    [
        (100_000, 0, LIMITS, "columns", MANY),
        (100_000, 399, LIMITS, "columns", MANY),
        (100_000, 399, (0.0, 1.0), "columns", 1),
        (100_000, 400, LIMITS, "narrowed", MANY),
        (300, 0, LIMITS, "common", MANY),
        (1_500, 0, LIMITS, "soft", MANY),
        (1_500, 200, LIMITS, "soft", 200),
        (1_500, 398, LIMITS, "soft", 2),
        (1_500, 400, LIMITS, "factor", MANY),
    ],
)
def test_plans_count_what_the_rows_can_pay_for(rows, declared, limits, method, groups):
    public, plan = scaling_plan_of(rows, MANY, declared, limits)
    assert plan.method == method
    assert len(counted_columns(public, method)) == groups


def test_declaring_more_bounds_never_costs_more_and_never_means_fewer_scales():
    """The order of methods is by what they know of each column without bounds."""
    rank = {"common": 0, "soft": 1, "columns": 2, "narrowed": 2, "factor": 2, "declared": 2, "moments": 2}
    for rows in (300, 1_500, 5_000, 20_000):
        ranks = [rank[scaling_plan_of(rows, MANY, declared)[1].method] for declared in range(0, MANY + 1, 20)]
        assert ranks == sorted(ranks)


def test_the_cost_does_not_depend_on_which_sides_are_open():
    events = set()
    for sides in itertools.product([OPEN, SOME, (None, 5.0), (0.0, None)], repeat=2):
        low, high = (list(end) for end in zip(*sides, (1.0, 7.0), strict=True))
        public = Public.of(50_000, 3, bounds=(low, high))
        plan = make_plan("cd", Problem(Logistic(), L2(1e-5)), public, BUDGET)
        events.add(repr(plan.event))
        assert plan.scaling_plan.method == ("narrowed" if public.bounded else "columns")
    assert len(events) == 1


def test_scale_share_0_asks_for_every_column():
    public = Public.of(1000, 3, bounds=([0, 0, None], 1))
    with pytest.raises(ValueError, match=r"scale_share=0 needs bounds=\(low, high\) of every column"):
        plan_scaling(public, BUDGET, 0.0, True, False)


# --- sensitivities -----------------------------------------------------------------------------------------------

HOSTILE = ([1e308, -1e308, 1e308], [5e-324, np.nextafter(5.0, 6.0), -1e-310], [-7.0, 1e30, 0.0])


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize("solver", ["newton", "cd", "screened"])
@pytest.mark.parametrize("rows", [60, 3000])
def test_every_release_moves_by_at_most_what_is_claimed(relation, solver, rows):
    """A replay on a neighbour with a hostile row: same releases, same outputs, distances within sensitivities."""
    rng = np.random.default_rng(1)
    X, y = rng.normal(2.0, 1.0, (rows, 3)), np.where(rng.random(rows) < 0.5, -1.0, 1.0)
    bounds = ([0.0, None, None], [5.0, 5.0, None])
    for row in HOSTILE:
        first, second = X.copy(), X.copy()
        first[0], second[0] = row, -np.array(row)
        tables = Data(first, y), Data(second, y)
        if relation is Relation.ZERO_OUT:
            tables = Data(first, y, np.ones(rows)), Data(first, y, np.append(0.0, np.ones(rows - 1)))
        elif relation is Relation.ADD_REMOVE:
            tables = Data(first, y), Data(first[1:], y[1:])
        public = Public.of(rows, 3, relation=relation, bounds=bounds, public_n=rows)
        plan = make_plan(solver, Problem(Logistic(), L2(1e-3)), public, Budget(2.0, 1e-6))
        found = replay(plan, *tables, seeded_generator(3))
        assert found.passed, str(found)


@pytest.mark.parametrize("make", [PrivateScaler, PrivateQuantiles])
def test_transformers_with_open_sides_keep_their_promise(make):
    X = np.random.default_rng(0).normal(2.0, 1.0, (2000, 3))
    other = X.copy()
    other[5] = HOSTILE[0]
    step = make(bounds=([0.0, None, None], [5.0, 5.0, None]))
    found = replay(step, (X, np.zeros(2000)), (other, np.zeros(2000)))
    assert found.passed, str(found)


def test_the_plan_of_screened_does_not_depend_on_which_columns_are_chosen():
    from discreet.solvers.screened import _public_of_fit

    public = Public.of(5000, 6, bounds=([0, 0, 0, None, None, 2], [1, 1, 1, None, 5, 3]))
    for chosen in itertools.combinations(range(6), 2):
        own = _public_of_fit(public, 2, np.array(chosen))
        plans = [plan_scaling(facts, BUDGET, None, True, False) for facts in (own, _public_of_fit(public, 2))]
        assert plans[0] == plans[1]


# --- what is learned ---------------------------------------------------------------------------------------------


def people(rows, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": rng.normal(45.0, 12.0, rows).clip(18.0, 90.0),
            "income": rng.lognormal(10.0, 1.0, rows),
            "smoker": rng.random(rows) < 0.3,
            "pressure": rng.normal(120.0, 15.0, rows),
        }
    )
    risk = (frame.age - 45.0) / 12.0 + frame.smoker + (frame.pressure - 120.0) / 15.0 - 0.3
    return frame, (risk + rng.logistic(size=rows) > 0.0).astype(int)


NAMED = {"age": (0, 120), "income": (0, None)}


def test_declared_sides_clip_and_the_others_are_learned():
    X, y = people(20_000)
    model = LogisticRegression(bounds=NAMED, classes=[0, 1], random_state=0).fit(X, y)
    (low, high), facts = model.ranges_, model.plan_.public
    assert facts.low.tolist() == [0.0, 0.0, 0.0, -np.inf]
    assert facts.high.tolist() == [120.0, np.inf, 1.0, np.inf]
    assert (low[1], low[2], high[2]) == (0.0, 0.0, 1.0)
    assert 18.0 < high[0] <= 120.0
    assert 1e4 < high[1] < 1e7
    assert -400.0 < low[3] < 100.0
    assert 140.0 < high[3] < 400.0
    assert model.guarantee_.epsilon == 1.0


def test_a_side_that_is_declared_is_never_crossed_whatever_the_noise_says():
    X = np.random.default_rng(0).normal(0.0, 1.0, (300, 3))
    for seed in range(20):
        plan = make_plan("cd", Problem(Logistic(), L2(1e-3)), Public.of(300, 3, bounds=([0, None, -2], None)), WEAK)
        scaling = learn_scaling(plan.scaling_plan, Data(X, np.ones(300)), plan.public, seeded_generator(seed))
        assert scaling.low[0] >= 0.0
        assert scaling.low[2] >= -2.0
        assert np.isfinite([scaling.low, scaling.high, scaling.shift, scaling.scale]).all()


def mean_score(rows, seeds, epsilon, columns=40, **declared):
    """Mean accuracy on fresh rows of models with bounds of some columns."""
    scores = []
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        scale = 10.0 ** rng.uniform(-1.0, 3.0, columns)
        X = rng.uniform(-1.0, 1.0, (rows + 2000, columns))
        y = (X[:, :5].sum(axis=1) + 0.3 * rng.standard_normal(rows + 2000) > 0.0).astype(int)
        known = rng.random(columns) < declared["share"]
        bounds = np.where(known, -scale, np.nan), np.where(known, scale, np.nan)
        model = LogisticRegression(epsilon=epsilon, bounds=bounds, classes=[0, 1], random_state=seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(X[:rows] * scale, y[:rows])
        scores.append(model.score(X[rows:] * scale, y[rows:]))
    return float(np.mean(scores))


@pytest.mark.parametrize(("rows", "epsilon"), [(800, 1.0), (4000, 1.0)])
def test_true_bounds_of_some_columns_never_make_the_model_clearly_worse(rows, epsilon):
    """Uneven columns, with too few rows for a scale each (800) and with enough (4000)."""
    scores = [mean_score(rows, 8, epsilon, share=share) for share in (0.0, 0.5, 0.95)]
    assert scores[1] > scores[0] - 0.02
    assert scores[2] > scores[1] - 0.02
    if rows == 800:
        assert scores[2] > scores[0] + 0.03  # columns with bounds have scales of their own


# --- interfaces --------------------------------------------------------------------------------------------------


def test_names_reach_all_interfaces():
    X, y = people(3000)
    ends = {"epsilon": 1.0, "random_state": 0}
    pairs = ([0, 0, 0, None], [120, None, 1, None])
    by_name = Ridge(bounds=NAMED, y_bounds=(0, 1), **ends).fit(X, y)
    by_pair = Ridge(bounds=pairs, y_bounds=(0, 1), **ends).fit(X.astype(float), y)
    np.testing.assert_array_equal(by_name.coef_, by_pair.coef_)
    planned = Ridge(bounds=NAMED, y_bounds=(0, 1)).plan(3000, 4, feature_names=list(X.columns))
    assert planned.public.low.tolist() == [0.0, 0.0, -np.inf, -np.inf]
    problem = Problem(Logistic(), L2(1e-3))
    solved = [solve(problem, table, 2 * y - 1, bounds=bounds, random_state=0).w for table, bounds in
              ((X, NAMED), (X.to_numpy(dtype=float), pairs))]  # fmt: skip
    np.testing.assert_array_equal(*solved)
    scaler = PrivateScaler(bounds=NAMED, random_state=0).fit(X)
    assert (scaler.low_[0], scaler.high_[0]) == (0.0, 120.0)
    assert 0.0 <= scaler.low_[1] < 1e4
    assert (scaler.low_[2], scaler.high_[2]) == (0.0, 1.0)
    assert 128.0 <= scaler.high_[3] <= 512.0
    assert scaler.plan(3000, 4).event is not None
    means = private_means(X[["age"]], {"age": (0, 120)}, random_state=0).values
    assert 40.0 < means[0] < 50.0
    with pytest.raises(ValueError, match="bounds must have both ends here, low and high; column 'income' lacks one"):
        private_means(X, NAMED)
    with pytest.raises(ValueError, match="bounds by name needs columns with names"):
        Ridge(bounds=NAMED).fit(X.to_numpy(dtype=float), y)
    with pytest.raises(ValueError, match=r"scale_share=0 needs bounds=.*of every column"):
        LogisticRegression(bounds=NAMED, classes=[0, 1], public_n=3000).partial_fit(X, y)


def test_the_booleans_of_a_frame_change_the_plan_and_nothing_that_the_values_say():
    X, y = people(3000)
    plans = [
        LogisticRegression(classes=[0, 1], random_state=0).fit(table, y).plan_
        for table in (X, X.assign(smoker=False), X.assign(smoker=X.smoker.astype(float)))
    ]
    assert plans[0].digest == plans[1].digest
    assert plans[0].digest != plans[2].digest
    assert plans[2].public.low is None


@pytest.mark.parametrize("bounds", [NAMED, None, ([0, None, np.nan, -np.inf], [120, 1e6, 1, np.inf])])
def test_models_come_back_from_files_with_their_bounds_and_plan(bounds, tmp_path):
    X, y = people(2000)
    model = LogisticRegression(bounds=bounds, classes=[0, 1], random_state=0).fit(X, y)
    save_model(model, tmp_path / "model.json")
    again = load_model(tmp_path / "model.json")
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert plan_of(again).digest == model.plan_.digest
    if isinstance(bounds, dict) or bounds is None:
        assert again.bounds == bounds
    save_model(again, tmp_path / "again.json")
    assert (tmp_path / "again.json").read_text() == (tmp_path / "model.json").read_text()
