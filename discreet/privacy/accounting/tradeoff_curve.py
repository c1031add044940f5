"""What an attacker can do at best: trade-off curves of events, and how often a guess is right."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import ndtr, ndtri

from discreet.privacy.accounting.certificates import certify, deltas_of
from discreet.privacy.accounting.closed_forms import UP
from discreet.privacy.accounting.events import read_composition
from discreet.privacy.accounting.pairs import Array
from discreet.privacy.relation import Relation

if TYPE_CHECKING:
    from dp_accounting import DpEvent


def tradeoff(event: DpEvent, relation: Relation | str, points: int = 200) -> tuple[Array, Array]:
    """Return type I errors and, for each, the least type II error that any test can reach.

    Guarantee: no test of "the record is in the table" against "it is not" has errors below the curve. It is
    exact for Gaussian plans; otherwise it is the curve of the proved (epsilon, delta) pairs, a lower bound.
    """
    if points < 3:
        raise ValueError(f"points must be at least 3, got {points!r}")
    alpha = np.concatenate([[0.0], ndtr(np.linspace(-5.0, 5.0, points - 2)), [1.0]])
    return alpha, event_false_negatives(event, relation, alpha)


def event_false_negatives(
    event: DpEvent, relation: Relation | str, false_positives: Array, also_at: tuple[float, ...] = ()
) -> Array:
    """Return the least type II error at each type I error; `also_at` are epsilons whose delta is used as well.

    Guarantee: that of `tradeoff`.
    """
    composition = read_composition(event, relation)
    if not composition.is_private:
        return np.zeros(false_positives.shape)
    if composition.only_gaussian:
        return gaussian_false_negatives(false_positives, composition.gaussian_mu)
    epsilons = epsilon_grid(certify(event, 1e-9, relation).epsilon, also_at)
    return line_false_negatives(false_positives, epsilons, deltas_of(composition, epsilons))


def gaussian_false_negatives(false_positives: Array, mu: float) -> Array:
    """Return the least type II errors of tests of N(0, 1) against N(mu, 1): exact."""
    if mu == np.inf:
        return np.zeros(false_positives.shape)
    return np.asarray(ndtr(-ndtri(false_positives) - mu))


def epsilon_grid(largest: float, also_at: tuple[float, ...] = ()) -> Array:
    """Return the epsilons at which a profile is read to draw its curve, from 0 to the largest that matters."""
    grid = np.concatenate([[0.0], np.geomspace(1e-3, 1.0, 60) * min(largest, 500.0), also_at])
    return np.unique(grid)


def line_false_negatives(false_positives: Array, epsilons: Array, deltas: Array) -> Array:
    """Return the largest of the lines that proved (epsilon, delta) put under the errors of every test."""
    steep = 1.0 - _rising_lines(false_positives, epsilons, deltas)
    flat = (1.0 - deltas[:, None] - false_positives) * np.exp(-epsilons)[:, None]
    return np.maximum(np.maximum(steep, flat).max(axis=0), 0.0)


def line_true_positives(false_positives: Array, epsilons: Array, deltas: Array) -> Array:
    """Return the least of the lines that proved (epsilon, delta) put above the true positives of every test.

    For few false positives, of which 1 - `line_false_negatives` has no digit.
    """
    return np.minimum(1.0, _rising_lines(false_positives, epsilons, deltas).min(axis=0) * UP)


def _rising_lines(false_positives: Array, epsilons: Array, deltas: Array) -> Array:
    """delta + e^epsilon times the false positives; e^epsilon alone may be too large for a number."""
    with np.errstate(divide="ignore"):
        growing = np.exp(np.minimum(epsilons[:, None] + np.log(false_positives), 700.0))
    return np.asarray(deltas[:, None] + growing)


_ROUNDING = 1.0 + 1e-12  # of a pure cost, which is a sum of floats
_FRACTIONS = 1.0 - np.geomspace(0.01, 0.9, 40)  # of epsilon, at which the deltas are asked for


def guess_accuracy(event: DpEvent, relation: Relation | str) -> float:
    """Return the most often that a guess between two neighbouring tables can be right, if both were equally likely.

    Guarantee: no attack is right more often; it is half of one plus delta at epsilon 0. docs/guarantees/accounting.md.
    """
    return 0.5 + 0.5 * min(1.0, float(deltas_of(read_composition(event, relation), np.zeros(1))[0]))


def excess_probability(event: DpEvent, epsilon: float, relation: Relation | str) -> float:
    """Return a bound on the probability that a result multiplies somebody's odds by more than exp(epsilon).

    It is not the tail of the privacy loss of the noise: who sees only part of a result, or a function of it, may pass
    exp(epsilon) more often than who sees all of it (and then by less).

    Guarantee: never below the truth, for the result and whatever is computed from it. docs/guarantees/accounting.md.
    """
    composition = read_composition(event, relation)
    if not composition.is_private:
        return 1.0
    if composition.pure_epsilon() <= epsilon * _ROUNDING:
        return 0.0
    return excess_bound(lambda smaller: deltas_of(composition, smaller), epsilon)


def excess_bound(deltas: Callable[[Array], Array], epsilon: float, also_at: tuple[float, ...] = ()) -> float:
    """Return the bound of `excess_probability` from a privacy profile, which gives a delta for each epsilon.

    `also_at` are epsilons that are tried as well; only those below `epsilon` tell anything.
    """
    if epsilon <= 0.0:
        return 1.0
    smaller = np.array([*(epsilon * _FRACTIONS), *(e for e in also_at if e < epsilon)])
    return min(1.0, float((deltas(smaller) / -np.expm1(smaller - epsilon)).min()))
