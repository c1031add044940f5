"""Fits with a seed: reproducible for one plan, named as a leak, refused by ledgers, and never in a pickle."""

from __future__ import annotations

import copy
import json
import pickle
import warnings
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone

from discreet import (
    InsecureRandomnessWarning,
    Ledger,
    LogisticRegression,
    Problem,
    Ridge,
    pause_stream,
    resume_stream,
    solve,
)
from discreet._common.digest import digest_of
from discreet.data.files import open_table
from discreet.data.schema import skeleton
from discreet.estimators.table_fit import FitRequest, fit_table
from discreet.model_selection import PrivateGridSearch
from discreet.preprocessing import PrivateScaler, pipeline_guarantee, private_means, private_smoothness
from discreet.privacy.guarantee import SEEDED
from discreet.privacy.random.generator import secure_generator, seeded_generator
from discreet.problem import L1Ball, L2Ball
from discreet.problem.losses import Huber, Logistic, Squared
from discreet.problem.penalties import L1, L2
from discreet.solvers import CoordinateDescent, GradientDescent
from tests.stream_tools import classifier, feed, rows_of

pytestmark = pytest.mark.filterwarnings("ignore::discreet.UtilityWarning")  # small tables

SEEDS = {
    "integer": lambda: 7,
    "NumPy generator": np.random.default_rng,
    "NumPy state": np.random.RandomState,
    "seeded generator": lambda: seeded_generator(7),
}
SECURE = {"none": lambda: None, "secure generator": secure_generator}
FACTS = {"n_samples": 500, "n_features": 3}


def quiet(task, *arguments, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InsecureRandomnessWarning)
        return task(*arguments, **options)


def ridge(**options):
    return Ridge(**{"bounds": (-1.0, 1.0), "y_bounds": (-1.0, 1.0), **options})


def rows():
    X = rows_of()[0]
    return X, X[:, 0]


def search(**options):
    return PrivateGridSearch(ridge(), {"alpha": [0.1, 1.0]}, **options)


# Every way to a release: what is fitted with a random_state, and perhaps booked.
WAYS = {
    "estimator": lambda **options: ridge(**options).fit(*rows()).guarantee_,
    "solve": lambda **options: (
        solve(Problem(Squared()), *rows(), bounds=(-1, 1), y_bounds=(-1, 1), **options).guarantee
    ),
    "stream": lambda **options: ridge(public_n=240, **options).partial_fit(*rows()).guarantee_,
    "transformer": lambda **options: PrivateScaler(bounds=(-1, 1), **options).fit(rows()[0]).guarantee_,
    "search": lambda **options: search(**options).fit(*rows()).guarantee_,
    "means": lambda **options: private_means(rows()[0], (-1, 1), **options).guarantee,
    "smoothness": lambda **options: private_smoothness(rows()[0], Logistic(), (-1, 1), **options).guarantee,
}


@pytest.mark.parametrize("way", WAYS)
def test_a_seed_is_named_as_a_leak_and_secure_noise_is_not(way):
    for make in SEEDS.values():
        promise = quiet(WAYS[way], random_state=make())
        assert promise.leaks == (SEEDED,)
        assert SEEDED in " ".join(promise.statement().split())
        assert SEEDED in json.dumps(promise.to_dict())
    for make in SECURE.values():
        assert WAYS[way](random_state=make()).leaks == ()


@pytest.mark.parametrize("way", WAYS)
def test_a_ledger_refuses_seeds_unless_it_allows_them(way, tmp_path):
    ledger = Ledger(tmp_path / "budget.db")
    ledger.open("people", 10.0, 1e-3)
    booking = {"ledger": ledger, "dataset": "people"}
    for make in SEEDS.values():
        with pytest.raises(ValueError, match=r"from a seed .*ledger=Ledger\(url, allow_seeded=True\)"):
            quiet(WAYS[way], random_state=make(), **booking)
    assert ledger.entries("people") == []
    assert WAYS[way](random_state=None, **booking).leaks == ()
    allowing = Ledger(tmp_path / "budget.db", allow_seeded=True)
    assert quiet(WAYS[way], random_state=7, ledger=allowing, dataset="people").leaks == (SEEDED,)
    assert [entry.note.endswith("(seeded)") for entry in ledger.entries("people")] == [False, True]
    assert pickle.loads(pickle.dumps(allowing)).allow_seeded
    assert not pickle.loads(pickle.dumps(ledger)).allow_seeded


def table_file(folder, seed, **parameters):
    X, y = rows_of(400)
    path = folder / "table.csv"
    np.savetxt(path, np.column_stack([X, y]), delimiter=",", header="a,b,c,y", comments="")
    with open_table(path) as file:
        schema = skeleton(dict.fromkeys(file.kinds, "number"))
        schema = replace(schema, target=replace(schema.target, name="y"))
        request = FitRequest(schema, None, None, {"epsilon": 5.0, "random_state": seed, **parameters})
        return quiet(fit_table, file, request).model


def test_a_fit_that_asks_for_the_task_names_the_seed_and_keeps_no_generator(tmp_path):
    model = table_file(tmp_path, 7)
    assert model.guarantee_.leaks == (SEEDED,)
    assert model.random_state == 7
    np.testing.assert_array_equal(table_file(tmp_path, 7).coef_, model.coef_)
    assert table_file(tmp_path, None).guarantee_.leaks == ()
    ledger = Ledger(tmp_path / "budget.db")
    ledger.open("people", 10.0, 1e-3)
    with pytest.raises(ValueError, match="allow_seeded=True"):
        table_file(tmp_path, 7, ledger=ledger, dataset="people")
    assert ledger.entries("people") == []


def test_a_pipeline_names_the_seed_of_a_step():
    scaler = quiet(PrivateScaler(bounds=(-1, 1), random_state=1).fit, rows()[0])
    assert pipeline_guarantee(ridge().fit(*rows()), also=[scaler]).leaks == (SEEDED,)


def test_a_stream_stays_seeded_after_a_pause(tmp_path):
    X, y = rows_of()
    begun = feed(classifier(random_state=7), X[:100], y[:100])
    pause_stream(begun, tmp_path / "seeded.stream")
    assert resume_stream(tmp_path / "seeded.stream").partial_fit(X[100:], y[100:]).guarantee_.leaks == (SEEDED,)
    fresh = feed(classifier(), X[:100], y[:100])
    pause_stream(fresh, tmp_path / "fresh.stream")
    resumed = quiet(resume_stream, tmp_path / "fresh.stream", random_state=7)
    assert feed(resumed, X[100:], y[100:]).guarantee_.leaks == (SEEDED,)


def test_a_ledger_lets_no_stream_go_on_with_a_seed(tmp_path):
    X, y = rows_of()
    ledger = Ledger(tmp_path / "budget.db")
    ledger.open("people", 10.0, 1e-3)
    pause_stream(feed(classifier(ledger=ledger, dataset="people"), X[:100], y[:100]), tmp_path / "some.stream")
    with pytest.raises(ValueError, match="allow_seeded=True"):
        quiet(resume_stream, tmp_path / "some.stream", ledger=ledger, dataset="people", random_state=7)
    resume_stream(tmp_path / "some.stream", ledger=ledger, dataset="people")  # the refusal has not used it up


@pytest.mark.parametrize("make", [np.random.default_rng, np.random.RandomState, secure_generator])
@pytest.mark.parametrize("copied", [copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))])
def test_no_copy_of_an_estimator_carries_a_generator(make, copied):
    scaler = PrivateScaler(bounds=(-1, 1), random_state=make())
    for model in (ridge(random_state=make()), scaler, search(random_state=make())):
        assert copied(model).random_state is None
        fitted = quiet(model.fit, *rows())
        again = copied(fitted)
        assert again.random_state is None
        assert again.guarantee_.leaks == fitted.guarantee_.leaks
        assert fitted.random_state is not None


def test_a_pickle_of_a_fitted_model_has_no_seed_and_one_of_parameters_keeps_it():
    secret = 8_234_567_890_123
    model = ridge(random_state=secret)
    assert pickle.loads(pickle.dumps(model)).random_state == secret  # for the workers of a grid search
    pickled = pickle.dumps(quiet(model.fit, *rows()))
    assert pickle.loads(pickled).random_state is None
    assert secret.to_bytes(6, "little") not in pickled
    assert clone(model).random_state == secret


def digests(plans):
    return {plan.digest for plan in plans}


def test_every_difference_between_plans_changes_their_digest():
    plan = ridge().plan(**FACTS)
    models = [
        ridge(epsilon=1.0000001),
        ridge(delta=1e-7),
        ridge(solver="gd"),
        ridge(solver=GradientDescent(steps=7)),
        ridge(solver=CoordinateDescent(passes=3)),
        ridge(solver=CoordinateDescent(passes=3, clip=1.0, smoothness=[1.0, 2.0, 3.0, 4.0])),
        ridge(alpha=0.5),
        ridge(fit_intercept=False),
        ridge(relation="zero_out"),
        ridge(relation="add_remove", public_n=500),
        ridge(bounds=(-1.0, 1.5)),
        ridge(bounds=([-1.0, -1.0, -1.0], [1.0, 1.0, 1.0000000001])),
        ridge(y_bounds=(-1.0, 2.0)),
        ridge(constraint=L1Ball(3.0)),
        ridge(constraint=L2Ball(3.0)),
        LogisticRegression(bounds=(-1.0, 1.0), classes=[0, 1]),
    ]
    others = [model.plan(**FACTS) for model in models]
    others += [ridge().plan(501, 3), ridge().plan(500, 4), ridge().plan(**FACTS, sparse=True)]
    others += [
        replace(plan, problem=Problem(loss, penalty))
        for loss in (Squared(), Huber(1.0))
        for penalty in (L1(0.1), L2(0.1))
    ]
    assert len(digests([plan, *others])) == 1 + len(others)


def test_equal_plans_have_equal_digests():
    plan = ridge(epsilon=1.0, alpha=1.0).plan(**FACTS)
    str(plan), plan.releases, plan.guarantee  # what is computed later and kept is no part of it
    same = [ridge(epsilon=np.float64(1.0), alpha=1), ridge(alpha=1.0, random_state=3, verbose=1, dataset="x")]
    assert digests([plan, *(model.plan(**FACTS) for model in same)]) == {plan.digest}
    assert replace(plan, public=replace(plan.public, stored=True)).digest == plan.digest


def test_digests_tell_contents_apart():
    class Plain:
        def __init__(self, size):
            self.size = size

    values = [None, True, 1, 1.5, "1", b"1", [1], [[1]], [1, 1], {1: 2}, {1}, (), "", np.ones(1), np.ones((1, 1)), len]
    values += [Plain(1), Plain(2), Plain, -0.5, float("inf"), ["a", "b"], ["ab"], [["a"], "b"]]
    assert len({digest_of(value) for value in values}) == len(values)
    assert digest_of("a", "b") != digest_of("ab")
    assert digest_of(Plain(2)) == digest_of(Plain(2.0))


@pytest.mark.parametrize("make", SEEDS.values(), ids=SEEDS)
def test_the_same_seed_and_plan_give_the_same_model_bit_for_bit(make):
    state = make()
    copies = (seeded_generator(7), seeded_generator(7)) if state.__class__.__name__ == "RandomGenerator" else None
    first, second = (
        quiet(ridge(random_state=one).fit, *rows()) for one in copies or (copy.deepcopy(state), copy.deepcopy(state))
    )
    np.testing.assert_array_equal(first.coef_, second.coef_)
    assert not np.array_equal(ridge().fit(*rows()).coef_, first.coef_)
