"""What a random linear term in the objective costs, and what noise on a minimiser does.

Theorems and proofs: docs/guarantees/utility.md, Theorems S6 and S7.
"""

from __future__ import annotations

import math
from typing import Literal

from discreet._common.checks import at_least_zero, number_in, one_of
from discreet.theory.bound import Bound, excess_bound
from discreet.theory.distance import NoiseKind, NoiseNorm

S7_SOURCE = "docs/guarantees/utility.md, Theorem S7; Thakurta's chapter, (6.36), has four times the first term"


def objective_perturbation_bound(
    columns: int,
    *,
    noise: float,
    radius: float,
    ridge: float | None = None,
    kind: NoiseKind = "gaussian",
    objective: Literal["mean", "sum"] = "sum",
    failure: float | None = None,
) -> Bound:
    """Bound the excess of the loss of the minimiser of loss + ridge/2 |w|^2 + <b, w>, b random.

    Parameters
    ----------
    columns : int
        Number of coefficients, the intercept included.
    noise : float
        Standard deviation of an entry of b ("gaussian"), or the scale of its density exp(-norm / scale) ("spherical":
        the norm has a Gamma distribution).
    radius : float
        Norm of the vector with which the result is compared: the optimum.
    ridge : float, optional
        Delta; by default the one for which the bound is least. Privacy asks for one that is large enough.
    kind : {"gaussian", "spherical"}
    objective : {"sum", "mean"}
        Which loss the noise, the ridge and the bound belong to. Going from the sum over n rows to the mean divides all
        three by n.
    failure : float, optional
        Bound what is exceeded with at most this probability, instead of the expectation.

    Returns
    -------
    Bound
        E|b|^2 / (2 Delta) + Delta/2 radius^2. `settings["printed"]` is the bound of the literature, whose first term is
        2 E|b|^2 / Delta.

    Examples
    --------
    >>> from discreet.theory import objective_perturbation_bound
    >>> bound = objective_perturbation_bound(4, noise=3.0, radius=2.0)
    >>> bound.value, bound.settings["ridge"]
    (12.0, 3.0)
    """
    one_of("objective", objective, ("mean", "sum"))
    radius, norm = number_in("radius", radius, 0.0), NoiseNorm(kind, noise, columns)
    square = norm.mean_square if failure is None else norm.quantile(failure) ** 2
    if ridge is None:
        if radius == 0.0 or square == 0.0:
            raise ValueError("without radius or noise there is no best ridge; give ridge.")
        ridge = math.sqrt(square) / radius
    ridge = number_in("ridge", ridge, 0.0, above=True)
    bias = 0.5 * ridge * radius**2
    assumptions = ("the loss is convex", "the perturbed objective is minimised exactly")
    settings = {"ridge": ridge, "printed": 2.0 * square / ridge + bias}
    of = f"{objective} of the losses over the optimum"
    return excess_bound(0.5 * square / ridge + bias, of, S7_SOURCE, failure, assumptions, settings)


S6_SOURCE = "docs/guarantees/utility.md, Theorem S6"


def output_perturbation_bound(
    columns: int,
    *,
    noise: float,
    kind: NoiseKind = "gaussian",
    smoothness: float = math.inf,
    lipschitz: float = math.inf,
    ridge: float = 0.0,
    radius: float | None = None,
    error: float = 0.0,
    objective: Literal["mean", "sum"] = "mean",
    failure: float | None = None,
) -> Bound:
    """Bound the excess of loss plus ridge at its minimiser with noise added.

    Parameters
    ----------
    columns : int
        Number of coefficients, the intercept included.
    noise : float
        Standard deviation of an entry of the noise ("gaussian"), or the scale of the density exp(-norm / scale)
        ("spherical", pure differential privacy).
    kind : {"gaussian", "spherical"}
    smoothness : float, optional
        Bound on the curvature of the loss, without the ridge.
    lipschitz : float, optional
        Bound on the norm of the loss's gradient, without the ridge. Give this one, smoothness, or both.
    ridge : float, default=0
        The objective is the loss plus ridge/2 |w|^2.
    radius : float, optional
        Bound on the norm of the minimiser: needed for `lipschitz` with a ridge and `failure`.
    error : float, default=0
        How far from the minimiser the vector may be that gets the noise; needs smoothness.
    objective : {"mean", "sum"}
        Whether the constants are those of the mean of the losses or of their sum; so is the bound.
    failure : float, optional
        Bound what is exceeded with at most this probability, instead of the expectation.

    Returns
    -------
    Bound

    Examples
    --------
    >>> from discreet.theory import output_perturbation_bound
    >>> round(output_perturbation_bound(10, noise=0.1, smoothness=0.25, ridge=0.01).value, 6)
    0.013
    """
    one_of("objective", objective, ("mean", "sum"))
    smoothness, lipschitz = at_least_zero("smoothness", smoothness), at_least_zero("lipschitz", lipschitz)
    ridge, error = number_in("ridge", ridge, 0.0), number_in("error", error, 0.0)
    if math.isinf(smoothness) and (math.isinf(lipschitz) or error > 0.0):
        raise ValueError("give smoothness or lipschitz; an error of the minimiser needs smoothness.")
    norm = NoiseNorm(kind, noise, columns)
    if failure is None:
        bent = _product(0.5 * smoothness, norm.mean_square)
        value = min(bent, _product(lipschitz, norm.mean)) + _product(0.5 * ridge, norm.mean_square)
        value += _product(0.5 * (smoothness + ridge), error**2)
    else:
        length = norm.quantile(failure) + error
        steep = math.inf
        if not math.isinf(lipschitz) and (ridge == 0.0 or radius is not None):
            steep = lipschitz * length + ridge * length * (number_in("radius", radius or 0.0, 0.0) + 0.5 * length)
        value = min(_product(0.5 * (smoothness + ridge), length**2), steep)
        if math.isinf(value):
            raise ValueError("lipschitz with a ridge and failure needs radius: a bound on the norm of the minimiser.")
    assumptions = ("the loss is convex", "there is no other penalty and no constraint")
    of, settings = f"{objective} of the losses plus ridge", {"noise": norm.scale}
    return excess_bound(value, of, S6_SOURCE, failure, assumptions, settings)


def _product(factor: float, square: float) -> float:
    """A product in which a factor of 0 makes 0, whatever the other one is: no noise, or nothing that it acts on."""
    return 0.0 if square == 0.0 or factor == 0.0 else factor * square
