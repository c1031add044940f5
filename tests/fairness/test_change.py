"""The forms of the bounds are ordered as the theorem says, and finite for all margins."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import chi2, norm

from discreet.fairness.cells import row_cells
from discreet.fairness.certificates import certify as change
from discreet.fairness.certificates.classifier import Margins, gaps_of
from discreet.theory.distance import GaussianDistance, KnownDistance


def random_margins(seed, rows=200):
    rng = np.random.default_rng(seed)
    margin = rng.normal(size=rows) * rng.choice([0.01, 1.0, 100.0], rows)
    margin[:5] = 0.0
    speed = rng.exponential(size=rows)
    speed[5:8] = 0.0  # rows of zeros: their scores never move
    cells = row_cells(rng.integers(3, size=rows), rng.choice(["a", "b"], rows), groups=["a", "b", "nobody"])
    return cells, Margins(margin[:, None], margin > 0.0, speed)


@pytest.mark.parametrize("radius", [0.0, 1e-300, 0.01, 0.5, 3.0, 1e4, math.inf])
@pytest.mark.parametrize("seed", range(5))
def test_the_tail_is_the_smallest_form(seed, radius):
    cells, margins = random_margins(seed)
    found = {name: form(cells, margins, radius) for name, form in change.FORMS.items()}
    assert all(np.isfinite(values).all() and (values <= 1.0).all() for values in found.values())
    assert (found["markov"] >= found["truncated"] - 1e-12).all()
    assert (found["truncated"] >= found["tail"] - 1e-12).all()
    assert (found["chernoff"] >= found["tail"] - 1e-12).all()
    loss, gain = change.sides(cells, margins, radius)
    np.testing.assert_allclose(loss + gain, found["tail"], atol=1e-12)
    assert (found["tail"][:, 2] == 0.0).all()  # nobody is there


def test_chernoffs_bound_is_the_least_over_a_fine_grid_of_exponents():
    needed = np.random.default_rng(1).exponential(size=300)
    for radius in (0.05, 0.3, 0.8):
        exponents = np.geomspace(1e-3, 1e4, 4000)
        grid = min(1.0, *(math.exp(t * radius) * np.exp(-t * needed).mean() for t in exponents if t * radius < 700))
        assert change.chernoff_bound(needed, radius) == pytest.approx(grid, rel=1e-4)
    assert change.chernoff_bound(needed, 2.0) == 1.0  # the mean is below the radius
    assert change.chernoff_bound(needed + 1.0, 0.5) == 0.0


def test_a_row_that_cannot_move_never_changes():
    _, margins = random_margins(0)
    assert np.isinf(margins.needed[5:8]).all()
    assert (margins.flip_probabilities(10.0, 10.0)[5:8] == 0.0).all()


@pytest.mark.parametrize("classes", [2, 3, 5])
def test_flip_probabilities_bound_those_of_simulated_noise(classes):
    """Two classes: equal to them. False alarms: 60 rows at a level of 1e-7 each."""
    rng = np.random.default_rng(classes)
    outputs, rows, draws, deviation = 1 if classes == 2 else classes, 60, 20_000, 0.7
    X, weights = rng.normal(size=(rows, 3)), rng.normal(size=(outputs, 3))
    label = rng.integers(classes, size=rows)
    gaps, correct = gaps_of(X @ weights.T, label)
    speed = (1.0 if classes == 2 else math.sqrt(2.0)) * np.linalg.norm(X, axis=1)
    probabilities = Margins(gaps, correct, speed).flip_probabilities(deviation)
    flips = np.zeros(rows)
    for noise in rng.normal(0.0, deviation, (draws, outputs, 3)):
        flips += gaps_of(X @ (weights + noise).T, label)[1] != correct
    slack = -norm.ppf(1e-7) * np.sqrt(probabilities * (1.0 - probabilities) / draws) + 20.0 / draws
    assert (flips / draws <= probabilities + slack).all()
    if classes == 2:
        assert (flips / draws >= probabilities - slack).all()
    # A planted fault: a speed without the square root of 2, or of half the rows' norms.
    slower = Margins(gaps, correct, 0.5 * speed).flip_probabilities(deviation)
    assert (flips / draws > slower + slack).any()


def test_errors_count_against_the_margin():
    margins = Margins(np.array([[1.0], [-1.0], [0.2]]), np.array([True, False, True]), np.ones(3))
    wanted = norm.cdf(-(np.array([1.0, 1.0, 0.2]) - 0.3) / 0.5)
    np.testing.assert_allclose(margins.flip_probabilities(0.5, 0.3), wanted)
    np.testing.assert_array_equal(margins.flip_probabilities(0.0, 0.3), [0.0, 0.0, 1.0])
    np.testing.assert_allclose(replace(margins, rounding=0.1).needed, [0.9, 0.9, 0.1])


def test_reaches_are_chosen_before_margins_are_known():
    wide = GaussianDistance(np.ones(300), 1, "the twin", 1.0)
    few, many = change.reaches(wide, 0.01, rows=500), change.reaches(wide, 0.01, rows=10**6)
    assert [reach.share for reach in few] == [0.0]
    assert few[0].radius == pytest.approx(-norm.ppf(0.01 / 1000.0))
    assert few[0].radius < wide.radius(0.01)
    assert [reach.share for reach in many] == [0.0, change.SHARE]
    assert many[1].radius == pytest.approx(-norm.ppf(change.SHARE * 0.005 / 2.0))
    assert many[1].radius < many[0].radius
    assert len(change.reaches(wide, 0.01, rows=10**6, simultaneous=True)) == 1
    narrow = GaussianDistance(np.ones(2), 1, "the twin", 1.0, error=0.5)
    assert change.reaches(narrow, 0.01, rows=10**6) == [change.Reach(narrow.radius(0.01))]
    known = KnownDistance(np.ones(300), 1, "the twin", 2.0)
    assert change.reaches(known, 0.01, rows=500) == [change.Reach(2.0)]
    three = GaussianDistance(np.ones(300), 3, "the twin", 1.0)
    assert change.all_rows_reach(three, 0.01, 500, rivals=2) == pytest.approx(-norm.ppf(0.01 / 2000.0))


def test_the_printed_distance():
    """sqrt(32 p Lam^2 ln(1.25 / delta) ln(2 / failure)) / (mu n epsilon) is s sqrt(4 p ln(2 / failure)).

    With the same s, the quantile of the chi distribution is 3.0 and 3.6 times smaller for 10 and 39 parameters.
    """
    lipschitz, convexity, rows, epsilon, delta, failure = 2.0, 0.1, 1000, 0.5, 1e-6, 0.01
    deviation = math.sqrt(8.0 * lipschitz**2 * math.log(1.25 / delta)) / (convexity * rows * epsilon)
    for size, ratio in ((10, 3.0), (39, 3.6)):
        printed = math.sqrt(32.0 * size * lipschitz**2 * math.log(1.25 / delta) * math.log(2.0 / failure))
        printed /= convexity * rows * epsilon
        assert change.printed_radius(deviation, size, failure) == pytest.approx(printed, rel=1e-12)
        ours = GaussianDistance(np.ones(size), 1, "the twin", deviation).radius(failure)
        assert ours == pytest.approx(deviation * math.sqrt(chi2.isf(failure, size)))
        assert round(printed / ours, 1) == ratio
