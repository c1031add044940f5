"""The noise as the papers print it, where it is too small: `calibration="paper"`. For benchmarks alone.

The plan of a solver is made as always, then its noise multiplier is replaced by the printed one. The plan's event
follows its mechanism, so `certified_epsilon` tells what that noise really costs; results are to be marked "claimed, not
certified". Which formulas are wrong, and why: docs/benchmarks/papers.md.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import gammaln, logsumexp

from discreet import NotPrivateWarning
from discreet.privacy import accounting

CALIBRATIONS = ("certified", "paper")
ORDERS = np.arange(2, 129)  # of Rényi DP; the best one is about 1 + log(1 / delta) / epsilon


def with_calibration(plan: Any, calibration: str) -> Any:
    """The plan itself, or the same plan with the noise that the paper prints for it, with a warning.

    Parameters
    ----------
    plan : Plan
        Of a solver with a printed formula: sgd with single rows, greedy-cd, output-perturbation or frank-wolfe.
    calibration : {"certified", "paper"}
    """
    if calibration not in CALIBRATIONS:
        raise ValueError(f"calibration must be one of {CALIBRATIONS}; got {calibration!r}.")
    if calibration == "certified":
        return plan
    if plan.solver.name not in PRINTED:
        raise ValueError(f"no printed noise is known to be too small for {plan.solver.name}; use certified.")
    what, formula = PRINTED[plan.solver.name]
    warnings.warn(
        f"the noise of {what} is too small: epsilon = {plan.budget.amount:g} is claimed, not certified.",
        NotPrivateWarning,
        stacklevel=2,
    )
    return replace(plan, mechanism=replace(plan.mechanism, multiplier=formula(plan)))


def certified_epsilon(plan: Any) -> float:
    """What the plan's noise costs at the budget's delta."""
    return accounting.epsilon_of(plan.event, plan.budget.delta, plan.public.relation)


def single_row_sgd(plan: Any) -> float:
    """Rényi DP of the sampled Gaussian under add/remove with rate 1/n, for a row drawn uniformly under replacement.

    The accountant's multiplier is the standard deviation over the clipping norm C; a replaced row moves the sum by 2C.
    """
    mechanism, budget = plan.mechanism, plan.budget
    return 0.5 * sampled_gaussian_multiplier(1.0 / mechanism.rows, mechanism.count, budget.amount, budget.delta)


@cache
def sampled_gaussian_multiplier(rate: float, steps: int, epsilon: float, delta: float) -> float:
    """The least multiplier for which Rényi DP (Mironov, Talwar and Zhang, 2019) says epsilon.

    With the conversion r(a) + log(1 / delta) / (a - 1) of Mironov (2017), which the papers cite; today's would say 10 %
    less noise, which is not theirs.
    """
    bonus = math.log(1.0 / delta) / (ORDERS - 1.0)

    def excess(multiplier: float) -> float:
        return float(np.min(steps * sampled_gaussian_rdp(rate, multiplier) + bonus)) - epsilon

    low, high = 0.25, 1.0
    while excess(high) > 0.0:
        low, high = high, 2.0 * high
    while excess(low) < 0.0:
        low, high = 0.5 * low, low
    return float(brentq(excess, low, high, rtol=1e-3))


def sampled_gaussian_rdp(rate: float, multiplier: float) -> np.ndarray:
    """Rényi DP of one noisy sum over a Poisson sample at each of `ORDERS`, for one row more or less."""
    found = []
    for order in ORDERS:
        k = np.arange(order + 1.0)
        choices = gammaln(order + 1.0) - gammaln(k + 1.0) - gammaln(order - k + 1.0)
        draws = k * math.log(rate) + (order - k) * math.log1p(-rate)
        found.append(logsumexp(choices + draws + k * (k - 1.0) / (2.0 * multiplier**2)) / (order - 1.0))
    return np.array(found)


def advanced_composition(plan: Any) -> float:
    """Equation B.1.1 of the thesis: each of T choices and T entries is booked as e'-DP; noise of scale 2L/(n e')."""
    steps, budget = plan.mechanism.count, plan.budget

    def excess(step: float) -> float:
        root = math.sqrt(4.0 * steps * math.log(1.0 / budget.delta)) * step
        return root + 2.0 * steps * step * math.expm1(step) - budget.amount

    return 1.0 / float(brentq(excess, 1e-12, max(1.0, budget.amount)))


def output_noise(plan: Any) -> float:
    """Theorem 3.2.1 of the thesis: sensitivity L/(mu n), where its own proof has 2L/(mu n)."""
    return math.sqrt(2.0 * math.log(1.25 / plan.budget.delta)) / (2.0 * plan.budget.amount)


def frank_wolfe_noise(plan: Any) -> float:
    """Algorithm 6 of the book: Laplace scale L1 ||C||_1 sqrt(8 T ln(1/delta)) / (n epsilon), on a sum of n losses."""
    budget = plan.budget
    root = math.sqrt(8.0 * (plan.mechanism.count + 1) * math.log(1.0 / budget.delta))
    return root / (plan.public.rows * budget.amount)


def tree_noise(leaves: int, epsilon: float, delta: float) -> float:
    """Algorithm 4 of the book: the multiplier of a node, with ceil(lg n) levels; 0 for n = 1."""
    levels = math.ceil(math.log2(leaves))
    return math.sqrt(2.0 * levels * (math.log(1.0 / delta) + epsilon)) / epsilon


PRINTED: dict[str, tuple[str, Callable[[Any], float]]] = {
    "sgd": ("single-row DP-SGD in the DP-CD paper", single_row_sgd),
    "greedy-cd": ("DP-GCD in equation B.1.1 of the thesis", advanced_composition),
    "output-perturbation": ("output perturbation in Theorem 3.2.1 of the thesis", output_noise),
    "frank-wolfe": ("Frank-Wolfe in Algorithm 6 of the book chapter", frank_wolfe_noise),
}
