"""DP-SkGD: what descent on random sets of coordinates achieves."""

from __future__ import annotations

import math

import numpy as np

from discreet._common.checks import at_least_zero, number_in, one_of, whole
from discreet._common.types import FloatArray
from discreet.privacy.budget import Budget
from discreet.privacy.relation import Relation
from discreet.theory.bound import Bound
from discreet.theory.cd import MOST_STEPS, QUANTITY, Numbers, _per_coordinate, noise_per_step


def sketched_bound(
    rows: int,
    budget: Budget,
    *,
    lipschitz: Numbers,
    smoothness: Numbers,
    size: int = 1,
    probabilities: Numbers | None = None,
    noise: str = "isotropic",
    radius: float | None = None,
    gap: float | None = None,
    strong_convexity: float = 0.0,
    steps: int | None = None,
    relation: Relation | str = "replace",
) -> Bound:
    """Return what descent on random sets of coordinates with Gaussian noise achieves, for the mean loss alone.

    Lemma 17 of the DP-SkGD paper, corrected (its right side must be doubled), with exactly calibrated noise.

    Parameters
    ----------
    rows : int
    budget : Budget
        For all steps; not pure.
    lipschitz, smoothness : sequence of float
        For each coordinate: the largest size of a row's partial derivative, and M_j such that moves h of a whole set
        satisfy f(w + h) <= f(w) + <grad, h> + sum of M_j h_j^2 / 2. For sets of more than one coordinate the
        curvature along each is not enough.
    size : int, default=1
        How many coordinates a set has; all sets of that size are equally likely.
    probabilities : sequence of float, optional
        For size=1: how likely each coordinate is; they sum to 1.
    noise : {"isotropic", "equalised"}
        The same for all coordinates of a set, or in proportion to `lipschitz`.
    radius : float, optional
        At least sqrt(sum of M_j (w0_j - w*_j)^2 / p_j), p_j being the probability that a set holds j. Needed for
        convex losses.
    gap : float, optional
        At least f(w0) - f(w*). By default radius^2 / 2; needed for strongly convex losses.
    strong_convexity : float, default=0
        In the norm sqrt(sum of M_j w_j^2 / p_j).
    steps : int, optional
        By default the number with the least bound.
    relation : Relation or str

    Returns
    -------
    Bound
    """
    rows = whole("rows", rows, least=1)
    constants, curvatures = _per_coordinate("lipschitz", lipschitz), _per_coordinate("smoothness", smoothness)
    if constants.size != curvatures.size:
        raise ValueError("lipschitz and smoothness must hold one number per coordinate.")
    one_of("noise", noise, ("isotropic", "equalised"))
    size = int(number_in("size", whole("size", size, least=1), 1, constants.size))
    if probabilities is not None:
        _check_probabilities(probabilities, constants.size, size)
    spread = _spread(constants, curvatures, size, noise) * noise_per_step(budget, "exact", relation) / rows**2
    assumptions = (
        "partial derivatives of rows are at most lipschitz, so that none is clipped",
        "smoothness holds for moves of whole sets",
        "no penalty and no constraint",
    )
    if strong_convexity > 0.0:
        if gap is None:
            raise ValueError("gap is needed for strongly convex losses: the excess of the loss at the start.")
        return _restarted(spread, strong_convexity, at_least_zero("gap", gap), steps, assumptions)
    if radius is None:
        raise ValueError("radius is needed where strong_convexity is 0.")
    start = at_least_zero("radius", radius) ** 2 + (0.5 * radius**2 if gap is None else at_least_zero("gap", gap))
    best = math.sqrt(start / (2.0 * spread)) if spread > 0.0 else float(MOST_STEPS)
    count = whole("steps", steps, least=1) if steps is not None else min(max(1, round(best)), MOST_STEPS)
    value = start / count + 2.0 * count * spread
    source = "the DP-SkGD paper, lemma 17 corrected"
    return Bound(value, QUANTITY, source, True, ("convex loss", *assumptions), {"steps": float(count)})


def _restarted(spread: float, convexity: float, gap: float, steps: int | None, assumptions: tuple[str, ...]) -> Bound:
    """gap / 2^T + 4 (1 - 2^-T) (spread of all T K steps), K = 2 (1 + 2 / convexity)."""
    inner = math.ceil(2.0 * (1.0 + 2.0 / convexity))
    if steps is not None and steps % inner:
        raise ValueError(f"steps must be a multiple of 2 (1 + 2/strong_convexity) = {inner}.")

    def bound(outer: int) -> float:
        left = 2.0**-outer
        return left * gap + 4.0 * (1.0 - left) * outer * inner * spread

    loops = min(range(1, 200), key=bound) if steps is None else whole("steps", steps, least=inner) // inner
    settings = {"steps": float(loops * inner), "outer": float(loops), "inner": float(inner)}
    source = "the DP-SkGD paper, lemma 17 corrected"
    return Bound(bound(loops), QUANTITY, source, True, ("strongly convex loss", *assumptions), settings)


def _spread(constants: FloatArray, curvatures: FloatArray, size: int, noise: str) -> float:
    """E |noise of a set, over its probability|^2 in the norm of p / M, for a noise of 1 per sensitivity.

    For single coordinates it is the sum of L_j^2 / M_j, whatever their probabilities.
    """
    squares, columns = constants**2, constants.size
    if noise == "equalised":
        return float(size * (squares / curvatures).sum())
    others = (squares.sum() - squares) * (size - 1) / max(1, columns - 1)  # expected sum over the rest of a set with j
    return float(((squares + others) / curvatures).sum())


def _check_probabilities(probabilities: Numbers, columns: int, size: int) -> None:
    chances = _per_coordinate("probabilities", probabilities)
    if size != 1:
        raise ValueError("probabilities are for size=1; sets of one size are equally likely.")
    if chances.size != columns or not math.isclose(float(np.sum(chances)), 1.0, rel_tol=1e-9):
        raise ValueError("probabilities must hold one number per coordinate and sum to 1.")
