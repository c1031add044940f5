"""What a random linear term in the objective costs.

Theorem and proof: docs/guarantees/utility.md, Theorem S7.
"""

from __future__ import annotations

import math
from typing import Literal

from discreet._common.checks import number_in, one_of
from discreet.theory.bound import Bound
from discreet.theory.noise_norm import NoiseKind, NoiseNorm

SOURCE = "docs/guarantees/utility.md, Theorem S7; Thakurta's chapter, (6.36), has four times the first term"


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
    return Bound(
        0.5 * square / ridge + bias,
        f"{'excess' if failure else 'expected excess'} of the {objective} of the losses over the optimum",
        SOURCE,
        assumptions=("the loss is convex", "the perturbed objective is minimised exactly"),
        settings={"ridge": ridge, "printed": 2.0 * square / ridge + bias},
        probability=None if failure is None else 1.0 - failure,
    )
