"""A model is called better than a constant only if it is: constants, and models whose errors were clipped, are not."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from discreet import Ridge
from discreet.metrics import evaluate
from discreet.metrics.classification import ClassifierMeasure, _constant_losses, log_losses
from discreet.metrics.released_sums import Counts
from tests.metrics_tools import noisy_sums

pytestmark = pytest.mark.filterwarnings("ignore::discreet.UtilityWarning")


class Constant:
    """Predicts the same probabilities for all rows."""

    def __init__(self, chances):
        self.chances = np.array(chances)
        self.classes_ = np.arange(self.chances.size)

    def predict(self, X):
        return np.full(len(X), self.chances.argmax())

    def predict_proba(self, X):
        return np.tile(self.chances, (len(X), 1))


def loss(rates, chances, floor):
    return -float(rates @ np.log(np.maximum(chances, floor)))


@pytest.mark.parametrize(
    ("floor", "rates"), [(0.01, [0.99, 0.01]), (0.01, [0.98, 0.02]), (0.05, [0.7, 0.2, 0.1]), (0.5, [0.5, 0.5])]
)
def test_no_constant_is_better_than_the_best_constant(floor, rates):
    """Constants that give up rare labels lose less than the base rates; exact counts, next to no noise."""
    rates, rows, rng = np.array(rates), 50_000, np.random.default_rng(0)
    y = np.repeat(np.arange(rates.size), np.rint(rates * rows).astype(int))
    giving_up = np.eye(rates.size)[0]
    assert loss(rates, giving_up, floor) < loss(rates, rates, floor) or rates.size > 2
    for chances in (giving_up, rates, np.full(rates.size, 1.0 / rates.size)):
        measure = ClassifierMeasure(Constant(chances), tuple(range(rates.size)), None, floor)
        sums = noisy_sums(measure, np.zeros((rows, 1)), y, 1e-3, rng)
        found = log_losses(sums, rates.size, floor, 0.05)
        assert found["log_loss_gain"].value < 1e-6
        assert found["log_loss_gain"].low < 0.0


@pytest.mark.parametrize("seed", range(5))
def test_the_best_constant_is_the_best_of_all_sets_of_labels(seed):
    rng = np.random.default_rng(seed)
    rates, floor = rng.dirichlet(np.full(5, 0.4)), float(rng.choice([0.01, 0.1, 0.3]))
    found = []
    for kept in (list(some) for size in range(1, 6) for some in combinations(range(5), size)):
        chances = np.zeros(5)
        chances[kept] = rates[kept] / rates[kept].sum()
        found.append(loss(rates, chances, floor))
    counts = Counts(np.append(np.repeat(200.0 * rates, 5), 0.0), 0.0, False, None)
    told = -np.log(floor) * float(rates @ _constant_losses(counts, 5, floor))
    assert told == pytest.approx(min(found), rel=1e-9)


def test_clipped_errors_do_not_make_a_bad_model_better_than_a_constant():
    """Errors of model and constant are clipped alike: with a small limit a good model is still better."""
    X = np.random.default_rng(0).uniform(0.0, 1.0, (3_000, 2))
    model = Ridge(bounds=(0.0, 1.0), y_bounds=(0.0, 1.0)).fit(X, X[:, 0])
    for clip in (None, 0.05):
        assert evaluate(model, X, X[:, 0], 5.0, largest_error=clip).beats_constant is True
        bad = evaluate(model, X, 1.0 - X[:, 0], 5.0, largest_error=clip)
        assert bad.beats_constant is not True
        assert bad["mean_squared_error_gain"].value < 0.0
        assert bad["r2"].value < 0.0
    assert "clipped alike" in str(bad)
