"""Neighbouring raw tables, one with a row that cannot be read: the same releases, and none moves further than claimed.

A replay tests the noise at the level 1e-6; with the 60 replays here the chance of a false alarm is below 1e-4.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.base import clone

from discreet import LogisticRegression, Ridge
from discreet.audit.replays.replay import replay
from discreet.audit.targets import Target, numbers_of
from discreet.data import loading
from discreet.data.rows import Data
from discreet.metrics import evaluate
from discreet.preprocessing import PrivateBounds, PrivateImputer, PrivateScaler
from discreet.privacy.relation import relation_from

ROWS, AT = 240, 31
RELATIONS = ["replace", "zero_out", "add_remove"]


def raw_table():
    """Entries as objects, labels as a list, weights: everything that a hostile row may spoil."""
    rng = np.random.default_rng(7)
    X = rng.uniform(-1.0, 1.0, (ROWS, 3))
    return X.astype(object), (X[:, 0] > 0.0).astype(int).tolist(), np.ones(ROWS).tolist()


def entry(value):
    def spoil(X, y, weight):
        X[AT, 1] = value

    return spoil


def label(value):
    def spoil(X, y, weight):
        y[AT] = value

    return spoil


def weight_of(value):
    def spoil(X, y, weight):
        weight[AT] = value

    return spoil


HOSTILE = {
    "NaN": entry(np.nan),
    "infinity": entry(np.inf),
    "text": entry("HIV positive"),
    "no number": entry({}),
    "unknown label": label("maybe"),
    "missing label": label(None),
    "bad weight": weight_of(1e308),
    "weight of text": weight_of("much"),
}
NO_NULL_ROW = "unknown label", "zero_out"


def neighbours(spoil, relation):
    """Two raw tables: with the row as it was or a large one, and with the row that cannot be read."""
    plain, hostile = raw_table(), raw_table()
    plain[0][AT] = [1e308, -1e308, 5e-324]
    spoil(*hostile)
    if relation != "add_remove":
        return plain, hostile
    return hostile, tuple([*part[:AT], *part[AT + 1 :]] for part in raw_table())


def as_raw(table):
    X, y, weight = table
    found = np.empty((len(X), 3), dtype=object)
    found[:] = [list(row) for row in X]
    return found, y, weight


def target_for(run, relation, guarantee_for=lambda data: None):
    """A target that is told which of two raw tables to read by stand-ins, which have as many rows."""
    raws = {}

    def fitted(data, rng):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            told = dict(run(*raws[id(data)], rng))
        return told | {"warnings": np.array(sorted(str(each.message) for each in caught))}

    def stand_ins(first, second):
        table = Data(np.arange(float(len(first[1])))[:, None], np.zeros(len(first[1])))
        other = np.arange(float(len(first[1])))
        other = np.delete(other, AT) if len(second[1]) < len(first[1]) else other
        pair = table, Data(other[:, None], np.zeros(other.size))
        raws.update({id(stand_in): as_raw(raw) for stand_in, raw in zip(pair, (first, second), strict=True)})
        return pair

    return Target(fitted, relation_from(relation), "raw rows", guarantee_for), stand_ins


def replayed(estimator, spoil):
    """The replay of a fit on both tables, the one that can be read first."""

    def run(X, y, weight, rng):
        model = clone(estimator).set_params(random_state=rng, invalid_rows="neutral")
        target = (
            y
            if model.__class__.__name__ != "Ridge"
            else [float(one == 1) if isinstance(one, int) else one for one in y]
        )
        return numbers_of("", model.fit(X, target, sample_weight=weight))

    relation = estimator.relation
    target, stand_ins = target_for(run, relation, lambda data: getattr(estimator.plan(ROWS, 3), "guarantee", None))
    return replay(target, *stand_ins(*neighbours(spoil, relation)))


def settings(relation):
    return {"relation": relation} | ({"public_n": ROWS} if relation == "add_remove" else {})


def classifier(relation, **parameters):
    return LogisticRegression(bounds=(-1.0, 1.0), classes=[0, 1], **settings(relation), **parameters)


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("name", HOSTILE)
def test_a_row_that_cannot_be_read_moves_no_release_further_than_any_row_may(name, relation):
    found = replayed(classifier(relation), HOSTILE[name])
    assert found.passed, str(found)
    assert found.releases


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("solver", ["gd", "sgd", "cd", "svrg", "admm"])
def test_so_it_is_with_every_way_to_sum_over_rows(solver, relation):
    assert replayed(classifier(relation, solver=solver), HOSTILE["text"]).passed


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize(
    "make",
    [
        lambda **how: Ridge(bounds=(-1.0, 1.0), y_bounds=(0.0, 1.0), solver="sufficient-statistics", **how),
        lambda **how: LogisticRegression(classes=[0, 1], **how),
        PrivateScaler,
        PrivateBounds,
        lambda **how: PrivateImputer(bounds=(-1.0, 1.0), **how),
    ],
    ids=["statistics", "learned scales", "scaler", "bounds", "imputer"],
)
def test_so_it_is_with_what_is_learned_about_columns(make, relation):
    assert replayed(make(**settings(relation)), HOSTILE["text"]).passed


# A label that the model does not know counts as predicted wrongly, so that its row is no null row.
EVALUATED = [(name, relation) for name in HOSTILE for relation in RELATIONS if (name, relation) != NO_NULL_ROW]


@pytest.mark.parametrize(("name", "relation"), EVALUATED)
def test_so_it_is_with_an_evaluation(name, relation):
    X, y, _ = raw_table()
    model = LogisticRegression(bounds=(-1.0, 1.0), classes=[0, 1]).fit(X.astype(float), y)

    def run(X, y, weight, rng):
        options = {"sample_weight": weight, "invalid_rows": "neutral", "random_state": rng}
        return {"values": evaluate(model, X, y, 1.0, 1e-6, **settings(relation), **options).released.values}

    target, stand_ins = target_for(run, relation)
    found = replay(target, *stand_ins(*neighbours(HOSTILE[name], relation)))
    assert found.passed, str(found)


def planted_drop(*arguments, **keywords):
    """A fault: the row is left out, and with it the public number of rows changes."""
    X, y, given = loading_read_rows(*arguments, **keywords)
    keep = given["sample_weight"] > 0.0
    return X[keep], None if y is None else y[keep], given | {"sample_weight": given["sample_weight"][keep]}


def planted_state(*arguments, **keywords):
    """A fault: there are weights only where a row could not be read."""
    X, y, given = loading_read_rows(*arguments, **keywords)
    return (X, y, given) if (given["sample_weight"] < 1.0).any() else (X, y, given | {"sample_weight": None})


loading_read_rows = loading.read_rows


@pytest.mark.parametrize("fault", [planted_drop, planted_state])
@pytest.mark.parametrize("name", ["NaN", "unknown label", "bad weight"])
def test_a_planted_fault_is_found_under_replace(name, fault, monkeypatch):
    monkeypatch.setattr(loading, "read_rows", fault)
    assert not replayed(classifier("replace"), HOSTILE[name]).passed
