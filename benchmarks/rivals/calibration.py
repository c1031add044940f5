"""What the methods of others are called with, so that all promise the same: (epsilon, delta) for one replaced row.

Libraries count in their own way, most of them for one row more or less. Where the noise that they add is known, our
accounting says what it costs for a replaced row, and they are asked for exactly as much noise as the budget needs. That
is never more than group privacy (half of epsilon, and less than half of delta) would ask for, so it favours them.
"""

from __future__ import annotations

import functools
import math

from scipy.optimize import brentq

from discreet import Budget
from discreet.privacy import accounting
from discreet.privacy.accounting import gaussian_mu

BINNING_SHARE = 0.1  # DP-EBM's own default: of epsilon, for the bins; delta is halved
MARGINAL_STAGES = 3  # of the marginal-based method, each with a third of rho: one-way counts, choices, pairs


@functools.cache
def poisson_multiplier(epsilon: float, delta: float, rate: float, steps: int, relation: str = "replace") -> float:
    """Opacus' noise multiplier: standard deviation over clipping norm, of sums over Poisson batches."""

    def event(multiplier: float):
        return accounting.poisson_event(rate, multiplier, steps)

    return accounting.calibrate(event, Budget(epsilon, delta), relation)


@functools.cache
def ebm_epsilon(epsilon: float, delta: float) -> float:
    """The epsilon to ask DP-EBM for; its delta is the given one.

    A replaced row changes two counts of a histogram by 1, which costs sqrt(2) times what one row more or less costs; in
    a leaf it changes a sum of gradients by at most twice as much. Both are Gaussian, so squares of mu add up.
    """
    whole = gaussian_mu(epsilon, delta)
    found = brentq(lambda asked: ebm_mu(asked, delta) - whole, 1e-3 * epsilon, epsilon)
    return float(found) * (1.0 - 1e-9)


def ebm_mu(asked: float, delta: float) -> float:
    """What DP-EBM costs for a replaced row, as Gaussian differential privacy, when asked for an epsilon."""
    binning, boosting = (gaussian_mu(share * asked, 0.5 * delta) for share in (BINNING_SHARE, 1.0 - BINNING_SHARE))
    return math.sqrt(2.0 * binning**2 + 4.0 * boosting**2)


@functools.cache
def marginal_rho(epsilon: float, delta: float, choices: int) -> float:
    """The rho (zCDP) that the marginal-based method may spend, a third of it on `choices` exponential mechanisms."""
    noise = accounting.calibrate(
        lambda z: marginal_event(1.0 / z**2, choices), Budget(epsilon, delta), "replace", start=4.0 / epsilon
    )
    return 1.0 / noise**2


def marginal_event(rho: float, choices: int):
    """Gaussian counts, selections, Gaussian counts; rho / 3 each."""
    part = rho / MARGINAL_STAGES
    counts = accounting.gaussian_event(1.0 / math.sqrt(2.0 * part))
    selections = accounting.selection_event(selection_epsilon(part, choices), choices)
    return accounting.compose([counts, selections, counts])


def selection_epsilon(rho: float, choices: int) -> float:
    """Of each of several selections that together cost rho."""
    return math.sqrt(8.0 * rho / max(choices, 1))
