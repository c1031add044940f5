"""The best of a random number of trials: its accounting against exact laws, and the draw of the number of trials."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from scipy.special import ndtr, ndtri

from discreet.privacy import accounting
from discreet.privacy.accounting import TrialsLaw
from discreet.privacy.budget import Budget
from discreet.privacy.mechanisms import RandomTrials
from discreet.privacy.random.generator import seeded_generator

LAWS = [TrialsLaw.with_mean(1.0, 20.0), TrialsLaw.with_mean(0.0, 20.0), TrialsLaw(0.5, 0.125)]
ids = ["geometric", "logarithmic", "eta=0.5"]


def best_law(law, masses):
    """The exact law of the best of K trials over outcomes in order, the best first, each trial with these masses."""
    better = np.minimum(np.concatenate([[0.0], np.cumsum(masses)]), 1.0)
    return np.diff(law.any_of(better))


def exact_delta(law, p, q, epsilon):
    return float(np.maximum(best_law(law, p) - math.exp(epsilon) * best_law(law, q), 0.0).sum())


def worst_order(mu, cells=4_000, middle=0.05):
    """N(mu, 1) against N(0, 1) in cells; the best are those that the second law prefers, up to `middle` of the first
    law, then come those that the first law prefers most, then the rest."""
    edges = np.concatenate([[-np.inf], np.linspace(-9.0, 9.0, cells), [np.inf]])
    p, q = np.diff(ndtr(edges - mu)), np.diff(ndtr(edges))
    first = int(np.searchsorted(np.cumsum(p), middle))
    order = np.concatenate([np.arange(first), np.arange(cells, first - 1, -1)])
    return p[order], q[order]


@pytest.mark.parametrize("law", LAWS, ids=ids)
def test_a_law_by_its_probabilities(law):
    """f and f' against the probabilities of the truncated negative binomial, one by one."""
    k = np.arange(1, 20_000)
    logs = [math.lgamma(n + law.eta) - math.lgamma(n + 1.0) for n in k]
    chance = np.exp(np.array(logs) + k * math.log1p(-law.gamma))
    chance /= chance.sum()
    for tail in (0.0, 1e-3, 0.1, 1.0):
        assert law.rate(np.array([tail]))[0] == pytest.approx(float((k * chance * (1.0 - tail) ** (k - 1)).sum()))
        assert law.any_of(np.array([tail]))[0] == pytest.approx(1.0 - float((chance * (1.0 - tail) ** k).sum()))
    assert law.mean == pytest.approx(float((k * chance).sum()))


@pytest.mark.parametrize("law", LAWS, ids=ids)
def test_exact_probabilities_stay_below_the_bound_and_come_near(law):
    """Gaussian trials ranked as badly as the proof allows. A price that ignores the number of trials is caught."""
    mu, epsilon = 0.5, 3.0
    event = accounting.best_of_trials_event([accounting.gaussian_event(1.0 / mu)], law.eta, law.gamma)
    bound = accounting.delta_of(event, epsilon, "replace")
    ranked = [worst_order(mu, middle=middle) for middle in (0.01, 0.02, 0.03, 0.05, 0.1)]
    found = max(exact_delta(law, p, q, epsilon) for p, q in ranked)
    assert 0.8 * bound < found <= bound
    assert found > 5.0 * accounting.gaussian_delta(epsilon, mu)  # the fault: one trial is booked, whatever their number
    composed = accounting.gaussian_delta(epsilon, mu * math.sqrt(law.mean))
    assert bound < 0.1 * composed  # and what naive composition would book


@pytest.mark.parametrize("law", LAWS, ids=ids)
def test_the_pure_cost_is_reached_by_three_outcomes(law):
    """Exact probabilities of randomised response whose rare answer is ranked first and whose two others follow."""
    epsilon = 0.7
    event = accounting.best_of_trials_event([accounting.pure_event(epsilon)], law.eta, law.gamma)
    cost = accounting.pure_epsilon_of(event, "replace")
    rare, tiny = 1.0 / (1.0 + math.exp(epsilon)), 1e-6
    p = np.array([rare, tiny * math.exp(epsilon), 0.0])
    q = np.array([rare * math.exp(epsilon), tiny, 0.0])
    p[2], q[2] = 1.0 - p.sum(), 1.0 - q.sum()
    ratios = np.log(best_law(law, p) / best_law(law, q))
    assert ratios[1] == pytest.approx(cost, rel=1e-4)
    assert np.abs(ratios).max() <= cost
    assert epsilon < cost < (law.eta + 2.0) * epsilon
    assert accounting.epsilon_of(event, 0.0, "replace") == cost


@pytest.mark.parametrize("seed", range(5))
def test_random_tables_of_probabilities_never_exceed_the_bound(seed):
    """Outcomes with random probabilities in random order; the exact divergence of one trial is its price."""
    rng, law = np.random.default_rng(seed), LAWS[seed % 3]
    q = rng.dirichlet(np.ones(6))
    p = q * np.exp(rng.uniform(-0.5, 0.5, 6))
    p /= p.sum()
    each = float(np.abs(np.log(p / q)).max())
    event = accounting.best_of_trials_event([accounting.pure_event(each)], law.eta, law.gamma)
    for epsilon in (0.0, 0.1, 0.3, 0.8):
        bound = accounting.delta_of(event, epsilon, "replace")
        assert max(exact_delta(law, p, q, epsilon), exact_delta(law, q, p, epsilon)) <= bound + 1e-12
    curve = accounting.tradeoff(event, "replace")
    ratio = np.argsort(best_law(law, p) / best_law(law, q))  # the best test, by the exact laws
    errors = np.cumsum(best_law(law, p)[ratio]), 1.0 - np.cumsum(best_law(law, q)[ratio])
    assert (np.interp(errors[0], *curve) <= errors[1] + 1e-9).all()


def test_trials_of_several_costs_and_compositions_with_other_releases():
    law, relation = LAWS[0], "replace"
    cheap, dear = accounting.gaussian_event(8.0), accounting.gaussian_event(5.0)
    best = accounting.best_of_trials_event([cheap, dear, dear], law.eta, law.gamma)
    only = accounting.best_of_trials_event([dear], law.eta, law.gamma)
    assert accounting.epsilon_of(best, 1e-6, relation) == accounting.epsilon_of(only, 1e-6, relation)
    assert accounting.event_from_dict(json.loads(json.dumps(accounting.event_to_dict(best)))) == best
    both = accounting.epsilon_of(accounting.compose([best, dear]), 1e-6, relation)
    alone = accounting.epsilon_of(best, 1e-6, relation), accounting.epsilon_of(dear, 1e-6, relation)
    assert max(alone) < both < sum(alone)
    assert accounting.fits(best, Budget(alone[0], 1e-6), relation)
    mixed = accounting.best_of_trials_event([accounting.selection_event(0.5), dear], law.eta, law.gamma)
    assert accounting.epsilon_of(mixed, 1e-6, relation) >= alone[0] * (1.0 - 1e-3)
    assert accounting.guess_accuracy(best, relation) < 0.7


def test_a_law_that_cannot_be_drawn_exactly_is_refused():
    with pytest.raises(ValueError, match="only the laws with eta = 0 and eta = 1"):
        RandomTrials(accounting.TrialsLaw(0.5, 0.1)).draw(seeded_generator(0))


def test_no_cost_in_gaussian_dp_and_what_cannot_be_read():
    law = LAWS[0]
    best = accounting.best_of_trials_event([accounting.gaussian_event(5.0)], law.eta, law.gamma)
    with pytest.raises(ValueError, match="has no cost in mu"):
        accounting.mu_of(best, "replace")
    with pytest.raises(ValueError, match="inside the trials"):
        accounting.epsilon_of(accounting.best_of_trials_event([best], law.eta, law.gamma), 1e-6, "replace")
    with pytest.raises(ValueError, match="gamma must be"):
        accounting.best_of_trials_event([best], 1.0, 1.0)
    with pytest.raises(ValueError, match="at least one event"):
        accounting.best_of_trials_event([], law.eta, law.gamma)
    noiseless = accounting.best_of_trials_event([accounting.non_private_event()], law.eta, law.gamma)
    assert accounting.epsilon_of(noiseless, 1e-6, "replace") == math.inf
    nothing = accounting.best_of_trials_event([accounting.no_event()], law.eta, law.gamma)
    assert accounting.epsilon_of(nothing, 0.0, "replace") == 0.0


@pytest.mark.parametrize(("name", "eta"), [("geometric", 1.0), ("logarithmic", 0.0)])
def test_the_number_of_trials_has_its_law_and_a_wrong_law_is_noticed(name, eta):
    """Chi-squared over eight classes, seeded; false alarms: one in 10^4 for each law."""
    trials, rng = RandomTrials.expecting(6.0, name), seeded_generator(1)
    draws = np.array([trials.draw(rng) for _ in range(2_000)])
    borders = np.array([0, 1, 2, 3, 4, 6, 9, 15, 10**6])
    counts = np.histogram(draws, borders + 0.5)[0]

    def misfit(law):
        chance = class_chances(law, borders)
        return float(((counts - 2_000 * chance) ** 2 / (2_000 * chance)).sum())

    assert misfit(trials.law) < 29.9  # the 1e-4 quantile of chi-squared with 7 degrees of freedom
    assert misfit(TrialsLaw.with_mean(1.0 - eta, 6.0)) > 29.9
    with pytest.raises(ValueError, match="must be one of geometric, logarithmic"):
        RandomTrials.expecting(6.0, "poisson")


def class_chances(law, borders):
    k = np.arange(1, 5_000)
    chance = (1.0 - law.gamma) ** k * (1.0 if law.eta == 1.0 else 1.0 / k)
    return np.histogram(k, borders + 0.5, weights=chance / chance.sum())[0]


def test_gaussian_trials_may_be_asked_for_their_largest_shift():
    """The bound of one event of probability u under the other table, which the largest shift is made of, is exact."""
    from discreet.privacy.accounting.best_of_trials import TrialProfile
    from discreet.privacy.accounting.events import read_composition

    u = np.array([1e-9, 1e-3, 0.3, 0.9])
    exact = ndtr(ndtri(u) + 0.25)
    gaussian = TrialProfile.of((read_composition(accounting.gaussian_event(4.0), "replace"),))
    assert gaussian.largest(u) == pytest.approx(exact, rel=1e-8)
    lines = TrialProfile(gaussian.epsilons, gaussian.values)  # as for trials that are known by their profile alone
    assert (lines.largest(u) >= exact).all()
    assert lines.largest(u[1:]) == pytest.approx(exact[1:], rel=1e-3)
