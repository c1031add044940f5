"""Over draws of the noise, statements fail at most as often as they say; with a planted fault they fail more often.

The tables are those on which one direction of the noise moves all predictions, so that bounds have no slack to hide a
fault in. Each count of failures is compared with a binomial quantile of level 1e-6: the probability of a false alarm.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

from discreet.fairness.cells import quantities, row_cells
from discreet.fairness.certificates import certify as change
from discreet.fairness.certificates.classifier import Margins, margins_of
from discreet.theory.distance import GaussianDistance, KnownDistance
from tests.fairness_tools import aligned_case, moved, plain_certificate, plain_classifier, random_case, uncovered

FAILURE, DRAWS = 0.1, 300
MOST = int(binom.isf(1e-6, DRAWS, FAILURE))
FEW = 100
MOST_OF_FEW = int(binom.isf(1e-6, FEW, FAILURE))
DEVIATION = 0.2


def noise_draws(model, seed, deviation=DEVIATION, draws=DRAWS):
    return np.random.default_rng(seed).normal(0.0, deviation, (draws, *model.weights.shape))


def law_of(model, deviation):
    outputs, columns = model.weights.shape
    return GaussianDistance(np.ones(columns), outputs, "the model without noise", deviation)


def failures_around_the_twin(case, claimed, classes):
    """How often each statement about the private model fails, for a certificate around the twin."""
    model, X, y, group = case
    law = law_of(model, claimed)
    found = plain_certificate(
        model, X, y, group, distance=law, reference="twin", failure=FAILURE, favourable=1, notions=NAMES
    )
    counts = {}
    for noise in noise_draws(model, classes):
        for about in uncovered(found, y, moved(model, X, noise), group, 1):
            counts[about] = counts.get(about, 0) + 1
    return max(counts.values(), default=0)


def failures_around_the_private(case, claimed, seed):
    """How often each statement about the twin fails, for certificates around private models (fewer draws)."""
    model, X, y, group = case
    predicted = moved(model, X, np.zeros(model.weights.shape))
    counts = {}
    for noise in noise_draws(model, seed, draws=FEW):
        private = plain_classifier(model.weights + noise, model.classes)
        law = law_of(model, claimed)
        found = plain_certificate(private, X, y, group, distance=law, failure=FAILURE, favourable=1, notions=NAMES)
        for about in uncovered(found, y, predicted, group, 1):
            counts[about] = counts.get(about, 0) + 1
    return max(counts.values(), default=0)


NAMES = ["equality of opportunity", "accuracy"]


@pytest.mark.parametrize("classes", [2, 3])
def test_statements_around_the_twin_fail_as_rarely_as_they_say(classes):
    case = aligned_case(classes=classes, columns=3)
    assert failures_around_the_twin(case, DEVIATION, classes) <= MOST
    assert failures_around_the_twin(case, 0.5 * DEVIATION, classes) > MOST


def test_statements_around_the_private_model_fail_as_rarely_as_they_say():
    case = aligned_case(columns=2, rows=200)
    assert failures_around_the_private(case, DEVIATION, 0) <= MOST_OF_FEW
    assert failures_around_the_private(case, 0.4 * DEVIATION, 0) > MOST_OF_FEW


def test_the_form_with_a_share_of_rows_fails_as_rarely_as_it_says():
    case = aligned_case(columns=60, rows=2_500)
    reaches = change.reaches(law_of(case[0], DEVIATION), FAILURE, 2_500)
    assert [reach.share for reach in reaches] == [0.0, change.SHARE]
    assert failures_around_the_private(case, DEVIATION, 1) <= MOST_OF_FEW
    # It holds per row and per share, so that it has slack for this table, where all rows move together.
    assert failures_around_the_private(case, 0.2 * DEVIATION, 1) > MOST_OF_FEW


def noise_bound(margins, rows, quantity, full):
    """The noise form; with `full` False without the rows that are likely to change."""
    probabilities = margins.flip_probabilities(DEVIATION)
    if not full:
        probabilities = np.where(probabilities < 0.5 * FAILURE, probabilities, 0.0)
    return change.noise_interval(quantity, rows, margins.correct, probabilities, FAILURE)


def test_the_noise_form_counts_likely_rows_in_full():
    model, X, y, group = aligned_case(columns=3)
    rows = row_cells(y, group, labels=model.classes)
    margins = margins_of(model, law_of(model, DEVIATION), X, rows.label)
    quantity = quantities(rows.table(margins.correct), "equality of opportunity")[0]
    start = quantity.value(rows.table(margins.correct))
    for full in (True, False):
        low, high = noise_bound(margins, rows, quantity, full)
        values = [quantity.value(rows.table(moved(model, X, noise) == y)) for noise in noise_draws(model, 5)]
        outside = sum(not low - 1e-12 <= value - start <= high + 1e-12 for value in values)
        assert (outside <= MOST) == full


def test_the_noise_form_does_not_grow_with_the_number_of_columns():
    """Columns that no row uses add noise to the parameters, but change no prediction."""
    few, many = (aligned_case(columns=columns, spread=1.0) for columns in (3, 300))
    bounds = []
    for model, X, y, group in (few, many):
        settings = {"distance": law_of(model, 0.05), "notions": "accuracy", "reference": "twin"}
        bounds.append(plain_certificate(model, X, y, group, **settings).of("accuracy")[0])
    assert bounds[0].bound == pytest.approx(bounds[1].bound, abs=1e-3)
    assert bounds[1].bounds["tail"] > 1.5 * bounds[1].bound


def test_forms_of_a_certificate_are_ordered():
    model, X, y, group, _ = random_case(0, rows=2000)
    for reference in ("private", "twin"):
        found = plain_certificate(model, X, y, group, distance=law_of(model, 0.01), reference=reference)
        for s in found.statements:
            assert s.bounds["markov"] >= s.bounds["truncated"] - 1e-12
            assert s.bounds["truncated"] >= s.bounds["tail"] - 1e-12
            assert s.bounds["tail"] >= s.bounds["signed"] - 1e-12
            assert s.printed >= s.bounds["chernoff"] - 1e-12 >= s.bounds["tail"] - 2e-12
            assert s.bound <= s.bounds["signed"] + 1e-12
            assert ("noise" in s.bounds) == (reference == "twin")


def test_all_statements_hold_together_if_asked():
    """The event is one: the ball. So the share of draws with any failure stays below the level."""
    model, X, y, group = aligned_case(columns=2)
    law = law_of(model, DEVIATION)
    found = plain_certificate(
        model, X, y, group, distance=law, reference="twin", failure=FAILURE, simultaneous=True, favourable=1
    )
    assert found.simultaneous
    assert not any("noise" in s.bounds for s in found.statements)
    draws = noise_draws(model, 7)
    wrong = sum(bool(uncovered(found, y, moved(model, X, noise), group, 1)) for noise in draws)
    assert wrong <= MOST
    half = plain_certificate(
        model, X, y, group, distance=KnownDistance(np.ones(2), 1, "half", 0.5 * found.radius), favourable=1
    )
    assert sum(bool(uncovered(half, y, moved(model, X, noise), group, 1)) for noise in draws) > MOST


def test_probabilities_of_margins_with_noise_are_not_used():
    """Around a private model the flip probabilities mean nothing, and no form is built on them."""
    model, X, y, group, _ = random_case(3)
    found = plain_certificate(model, X, y, group, distance=law_of(model, 0.01))
    assert all("noise" not in s.bounds for s in found.statements)
    assert isinstance(margins_of(model, law_of(model, 0.01), X, np.asarray(y)), Margins)
