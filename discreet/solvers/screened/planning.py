"""How many columns can be told from chance, and whether it is better to leave the others out; from public facts."""

from __future__ import annotations

import math

from discreet.data.public import Public
from discreet.privacy import mechanisms
from discreet.privacy.budget import Budget
from discreet.problem.problem import Problem
from discreet.solvers import SOLVERS

SHARE = 0.5  # of the budget for the choices: neither they nor the fit are noisier than sqrt(2) times what they could be
CLEAR = 2.0  # scales of the noise beyond log(columns): such a column beats all others with probability 0.88
# The score of a column whose correlation with the target is r: its limit, for small r, is this times r times the rows.
TARGET_SIGNAL = 1.0 / math.pi  # normal columns and targets
LABEL_SIGNAL = 1.0 / (math.sqrt(2.0) * math.pi)  # the target cut at its median


def found_columns(problem: Problem, public: Public, budget: Budget, share: float = SHARE) -> float:
    """How many columns that tell everything about the target together, each as much, can be found; below 1: none.

    k uncorrelated columns of equal weight have correlations of at most 1 / sqrt(k), and the noise of the choices grows
    with sqrt(k) (with k for pure budgets): the number balances the two (docs/guarantees/screened.md).
    """
    if budget.is_infinite:
        return float(public.columns)
    signal = LABEL_SIGNAL if problem.loss.classification else TARGET_SIGNAL
    level = mechanisms.concordant_pairs(public.relation).l2 * (math.log(max(public.columns, 1)) + CLEAR)
    if budget.kind == "pure":
        return (signal * public.rows * share * budget.amount / (2.0 * level)) ** (2.0 / 3.0)
    return signal * public.rows * math.sqrt(share) * budget.gaussian_mu() / level


def worth_screening(problem: Problem, public: Public, budget: Budget) -> bool:
    """Whether a model of few chosen columns is planned to be better than one of all; from public facts alone.

    It is where the noise in a prediction by all columns exceeds what they can tell, some column can be found, and the
    solver `screened` takes the problem. docs/guarantees/screened.md has the derivation.
    """
    if public.table is not None or public.has_start:  # what they tell about all columns would be lost
        return False
    if budget.is_infinite or public.stored or SOLVERS["screened"]().why_incompatible(problem, budget) is not None:
        return False
    return noise_of_all(public, budget) > 1.0 and 1.0 <= found_columns(problem, public, budget) < public.columns


def noise_of_all(public: Public, budget: Budget) -> float:
    """The noise in a prediction by all columns, in standard deviations of the target, if it is fitted in one step.

    Rows have a length of sqrt(columns) in columns of scale 1, so that a gradient has noise of that size in each entry,
    and so has a prediction, times another sqrt(columns).
    """
    unit = mechanisms.clipped_sum(public.relation)
    return mechanisms.additive(budget, 1.0).deviation(unit) * public.columns / public.rows
