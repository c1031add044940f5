"""A look and the sums that follow from it: R2 and D2 hold as often as they say, and are no wider than they must be.

Rows are drawn from laws and from real tables (with replacement, so that the table is the population), the answers are
those of the population at the clipping that each look has led to. A share of 0.1 of 80 intervals may miss: more than 20
misses have probability below 1e-4 in each case. Widths are held against the errors that were seen, whose spread has a
relative error of 8 % with 80 draws.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LinearRegression

from discreet.data.public import Public
from discreet.metrics.deviances import GAMMA, POISSON, SQUARED
from discreet.metrics.regression import LOOK_SHARE, RegressorMeasure, regression_figures
from discreet.metrics.released_sums import look_noise, plan_sums, release_sums, totals_of
from discreet.privacy.budget import Budget
from discreet.privacy.random.generator import generator_from
from tests.metrics_tools import StubRegressor

pytestmark = pytest.mark.filterwarnings("ignore::discreet.InsecureRandomnessWarning")
FAILURE, DRAWS, MOST_MISSES, ROWS = 0.1, 80, 20, 6_000
NORMAL = 1.645  # of the quantile that FAILURE belongs to


def normal(rng, rows):
    signal = rng.normal(size=rows)
    return signal, signal + 1.5 * rng.normal(size=rows)


def wages(rng, rows):
    signal = rng.normal(size=rows)
    return np.maximum(450.0 + 130.0 * signal, 50.0), np.exp(6.0 + 0.3 * signal + 0.45 * rng.normal(size=rows))


def diabetes(rng, rows):
    X, y = load_diabetes(return_X_y=True)
    drawn = rng.integers(0, len(y), rows)
    return LinearRegression().fit(X, y).predict(X)[drawn], y[drawn]


def counts(rng, rows):
    means = np.exp(0.5 + 0.5 * rng.normal(size=rows))
    return means, rng.poisson(means).astype(float)


def amounts(rng, rows):
    means = np.exp(7.0 + 0.5 * rng.normal(size=rows))
    return means, means * rng.gamma(2.0, 0.5, rows)


CASES = {  # the law, the deviance, the largest deviance that is possible by far limits, the centre
    "normal": (normal, SQUARED, 900.0, 0.1),
    "wages": (wages, SQUARED, 4e7, 480.0),
    "diabetes": (diabetes, SQUARED, 1e6, 150.0),
    "counts": (counts, POISSON, 300.0, 2.0),
    "amounts": (amounts, GAMMA, 50.0, 1_200.0),
}


def truth(case, largest, population):
    _, deviance, _, centre = CASES[case]
    predicted, y = population
    clipped = np.clip(y, *deviance.interval(centre, largest))
    constant = deviance.of(clipped, clipped.mean()).mean()
    return 1.0 - np.minimum(deviance.of(y, predicted), largest).mean() / constant


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_limits_that_follow_from_a_look_hold_and_are_not_wide(case):
    law, deviance, most, centre = CASES[case]
    rng, noise = np.random.default_rng(7), generator_from(7)
    population, known = law(np.random.default_rng(1), 400_000), {}
    measure = RegressorMeasure(StubRegressor(), -np.inf, np.inf, centre, most, False, deviance)
    plan = plan_sums(Public(ROWS, 1), Budget(0.5, 1e-6), measure.parts, measure.look.parts, LOOK_SHARE)
    errors, widths, missed, careless = [], [], 0, 0
    for _ in range(DRAWS):
        predicted, y = law(rng, ROWS)
        look, X = measure.look, predicted[:, None]
        seen = totals_of(look.parts, look.contributions(X, y), None)
        learned = measure.after(release_sums(plan, seen, ROWS, noise, look=True), look_noise(plan))
        exact = totals_of(learned.parts, learned.contributions(X, y), None)
        sums = release_sums(plan, exact, float(ROWS), noise)
        if learned.largest not in known:
            known[learned.largest] = truth(case, learned.largest, population)
        wanted = known[learned.largest]
        found = next(iter(regression_figures(learned, sums, FAILURE).values()))
        missed += not found.low <= wanted <= found.high
        blind = replace(sums, deviations=np.zeros_like(sums.deviations))  # the planted fault: noise taken for none
        without = next(iter(regression_figures(learned, blind, FAILURE).values()))
        careless += not without.low <= wanted <= without.high
        errors.append(found.value - wanted)
        widths.append(found.high - found.low)
    assert missed <= MOST_MISSES
    assert careless > MOST_MISSES
    needed = 2.0 * NORMAL * np.std(errors)
    assert 0.8 * needed < np.median(widths) < 1.5 * needed
    assert max(widths) < 1.0  # R2 says something in every draw


@pytest.mark.slow
def test_the_clipping_moves_outwards_and_its_effect_vanishes():
    """By the theorem on the page; a fixed limit, the planted fault, keeps its effect."""
    law, deviance, most, centre = CASES["wages"]
    population = law(np.random.default_rng(1), 1_000_000)
    unclipped = 1.0 - deviance.of(population[1], population[0]).mean() / population[1].var()
    measure = RegressorMeasure(StubRegressor(), -np.inf, np.inf, centre, most, False, deviance)
    ends, bias = [], []
    for rows in (2_000, 50_000, 1_000_000):
        plan = plan_sums(Public(rows, 1), Budget(0.7, 1e-6), measure.parts, measure.look.parts, LOOK_SHARE)
        predicted, y = law(np.random.default_rng(3), rows)
        seen = totals_of(measure.look.parts, measure.look.contributions(predicted[:, None], y), None)
        learned = measure.after(release_sums(plan, seen, rows, generator_from(1), look=True), look_noise(plan))
        ends.append(learned.largest)
        bias.append(abs(truth("wages", learned.largest, population) - unclipped))
    assert ends[0] < ends[1] < ends[2]
    assert bias[2] < 0.003
    assert bias[0] > 0.01
    assert abs(truth("wages", ends[0], population) - unclipped) > 0.01
