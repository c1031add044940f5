"""Copies, clones and workers: a ledger that is copied along with an estimator is still the same ledger."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.model_selection import GridSearchCV

from discreet.privacy.accounting import epsilon_of, gaussian_event, laplace_event
from discreet.privacy.ledger import Ledger
from discreet.privacy.relation import Relation

DELTA = 1e-6
QUARTER = laplace_event(4.0)  # epsilon 0.25 at delta 0


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    made = Ledger(tmp_path / "budget.db")
    made.open("patients", 1.0, DELTA)
    made.open("pure", 1.0, 0.0)
    return made


class Spender(ClassifierMixin, BaseEstimator):
    """Reserves an event in every fit, as the estimators do."""

    def __init__(self, ledger: Any = None, level: int = 0) -> None:
        self.ledger = ledger
        self.level = level

    def fit(self, X: Any, y: Any) -> Spender:
        with Ledger.of(self.ledger).reserve(
            "patients", gaussian_event(40.0), note=f"level {self.level}", relation="replace"
        ):
            self.classes_ = [0, 1]
        return self

    def predict(self, X: Any) -> list[int]:
        return [self.level] * len(X)


def test_copies_and_clones_are_the_same_ledger() -> None:
    ledger = Ledger("sqlite://")
    assert copy.copy(ledger) is ledger
    assert copy.deepcopy([ledger])[0] is ledger
    assert clone(Spender(ledger)).ledger is ledger
    assert Ledger.of(ledger) is ledger


@pytest.mark.slow
@pytest.mark.parametrize("as_url", [False, True])
def test_grid_search_in_workers_pays_for_every_fit(ledger: Ledger, as_url: bool) -> None:
    search = GridSearchCV(Spender(ledger.url if as_url else ledger), {"level": [0, 1]}, cv=3, n_jobs=2)
    search.fit([[0.0], [1.0]] * 6, [0, 1] * 6)
    entries = ledger.entries("patients")
    assert sorted(entry.note for entry in entries[:6]) == ["level 0"] * 3 + ["level 1"] * 3
    assert len(entries) == 7, "six folds and one refit"
    assert {entry.status for entry in entries} == {"committed"}
    seven = gaussian_event(40.0, 7)
    assert ledger.spent("patients") == pytest.approx(epsilon_of(seven, DELTA, Relation.REPLACE), rel=1e-6)


def test_a_pickle_carries_the_address_only(ledger: Ledger) -> None:
    twin = pickle.loads(pickle.dumps(ledger))
    assert twin.url == ledger.url
    twin.reserve("pure", QUARTER, relation="replace")
    assert ledger.spent("pure") == pytest.approx(0.25)
    with pytest.raises(TypeError, match="in-memory ledger cannot be pickled"):
        pickle.dumps(Ledger("sqlite://"))
