"""DP-CD and DP-SkGD: what noisy proximal steps along coordinates, or along random sets of them, achieve."""

from __future__ import annotations

import math

import numpy as np

from discreet._common.checks import at_least_zero, number_in, one_of, whole
from discreet._common.types import FloatArray
from discreet.privacy.budget import Budget
from discreet.privacy.mechanisms.sensitivity import clipped_sum
from discreet.privacy.relation import Relation, relation_from
from discreet.theory.bound import SMALL_DELTA, SMALL_EPSILON, Bound, epsilon_and_delta, log_of_delta
from discreet.theory.steps import NoisyCoordinateSteps, Numbers, per_coordinate

QUANTITY = "expected excess of the objective"
NO_CLIP = "partial derivatives of rows are at most lipschitz, so that none is clipped"
ASSUMPTIONS = (
    NO_CLIP,
    "the mean loss has curvature at most smoothness along each coordinate",
    "the penalty is separable",
)
MOST_STEPS = 2**40


def cd_bound(
    rows: int,
    budget: Budget,
    *,
    lipschitz: Numbers,
    smoothness: Numbers,
    radius: float | None = None,
    gap: float | None = None,
    strong_convexity: float = 0.0,
    steps: int | None = None,
    form: str = "average",
    calibration: str = "exact",
    relation: Relation | str = "replace",
) -> Bound:
    """Return what coordinate descent with uniformly random coordinates, steps 1/M_j and Gaussian noise achieves.

    Parameters
    ----------
    rows : int
        Number of rows.
    budget : Budget
        For all steps; not pure, since the noise is Gaussian.
    lipschitz, smoothness : sequence of float
        For each coordinate: the largest size of a row's partial derivative, and the curvature M_j of the mean loss.
    radius : float, optional
        At least the distance |w0 - w*|_M = sqrt(sum of M_j (w0_j - w*_j)^2) of the start from the optimum. Needed
        for convex objectives.
    gap : float, optional
        At least the excess F(w0) - F(w*) of the objective at the start. By default radius^2, as in the papers (without
        a penalty the excess is at most half of it). Needed for strongly convex objectives.
    strong_convexity : float, default=0
        Of the objective, in the norm of M.
    steps : int, optional
        By default the number with the least bound.
    form : {"average", "last"}
        The papers' algorithm, which averages its iterates and, for strongly convex objectives, starts anew from the
        average several times; or the last iterate of one loop (for strongly convex objectives).
    calibration : {"exact", "paper"}
        The noise that the budget needs, or that of the papers' closed formula (epsilon <= 1, delta < 1/3).
    relation : Relation or str

    Returns
    -------
    Bound

    Examples
    --------
    >>> from discreet import Budget
    >>> from discreet.theory import cd_bound
    >>> bound = cd_bound(10_000, Budget(1.0, 1e-6), lipschitz=[0.3] * 10, smoothness=[0.1] * 10, radius=1.0)
    >>> round(bound.value, 4), bound.settings["steps"]
    (0.0196, 1528.0)
    """
    rows = whole("rows", rows, least=1)
    constants, curvatures = _constants_and_curvatures(lipschitz, smoothness)
    one_of("form", form, ("average", "last"))
    columns = constants.size
    # The sum of s_j^2 / M_j is `noise` times the number of steps.
    noise = float((constants**2 / curvatures).sum()) * noise_per_step(budget, calibration, relation) / rows**2
    if strong_convexity == 0.0:
        if radius is None:
            raise ValueError("radius is needed where strong_convexity is 0.")
        if form == "last":
            raise ValueError('form="last" needs strong_convexity; form="average" does not.')
        return _convex(columns, noise, at_least_zero("radius", radius), gap, steps)
    if gap is None:
        raise ValueError("gap is needed for strongly convex objectives: the excess of the objective at the start.")
    convexity = number_in("strong_convexity", strong_convexity, 0.0, above=True)
    if form == "last":
        return _last(columns, noise, convexity, at_least_zero("gap", gap), steps)
    inner = math.ceil(2.0 * columns * (1.0 + 1.0 / convexity))
    multiple = 'with form="average" steps must be a multiple of 2 p (1 + 1/strong_convexity)'
    source = "Mangold's thesis, (A.3.41) summed; its (A.3.38) has half of this noise"
    assumptions = ("strongly convex objective", *ASSUMPTIONS)
    return _restarted(inner, noise, at_least_zero("gap", gap), steps, multiple, source, assumptions)


def noise_per_step(budget: Budget, calibration: str, relation: Relation | str) -> float:
    """The squared noise over (constant / rows)^2 that each of the steps adds to that of all others."""
    one_of("calibration", calibration, ("exact", "paper"))
    if calibration == "exact":
        return (clipped_sum(relation_from(relation)).l2 / budget.gaussian_mu()) ** 2
    epsilon, delta = epsilon_and_delta(budget, SMALL_EPSILON)
    if not 0.0 < delta < SMALL_DELTA:
        raise ValueError(f"the papers' formula is for delta above 0 and below 1/3; got {delta:g}.")
    return 12.0 * log_of_delta(delta) / epsilon**2


def _convex(columns: int, noise: float, radius: float, gap: float | None, steps: int | None) -> Bound:
    """p (R^2 / 2 + gap) / K + K noise: (A.3.35) of the thesis."""
    start = columns * (0.5 * radius**2 + (radius**2 if gap is None else at_least_zero("gap", gap)))
    assumptions: tuple[str, ...] = ("convex objective", *ASSUMPTIONS)
    if gap is None:
        assumptions = (*assumptions, "the excess of the objective at the start is at most radius^2")
    return _one_loop(start, noise, steps, "Mangold's thesis, (A.3.35)", assumptions)


def _one_loop(start: float, noise: float, steps: int | None, source: str, assumptions: tuple[str, ...]) -> Bound:
    """start / K + K noise, for the best K if no number of steps is given."""
    best = math.sqrt(start / noise) if noise > 0.0 else float(MOST_STEPS)
    count = whole("steps", steps, least=1) if steps is not None else min(max(1, round(best)), MOST_STEPS)
    return Bound(start / count + count * noise, QUANTITY, source, True, assumptions, {"steps": float(count)})


def _restarted(
    inner: int, noise: float, gap: float, steps: int | None, multiple: str, source: str, assumptions: tuple[str, ...]
) -> Bound:
    """gap / 2^T + 2 (1 - 2^-T) (noise of all T K steps), for the best T if no number of steps is given."""
    if steps is not None and steps % inner:
        raise ValueError(f"{multiple} = {inner}.")

    def bound(outer: int) -> float:
        left = 2.0**-outer
        return left * gap + 2.0 * (1.0 - left) * outer * inner * noise

    loops = min(range(1, 200), key=bound) if steps is None else whole("steps", steps, least=inner) // inner
    settings = {"steps": float(loops * inner), "outer": float(loops), "inner": float(inner)}
    return Bound(bound(loops), QUANTITY, source, True, assumptions, settings)


def _last(columns: int, noise: float, convexity: float, gap: float, steps: int | None) -> Bound:
    """Theorem G5 of docs/guarantees/utility.md, the strong convexity being anywhere."""
    rate = convexity / (1.0 + convexity)

    def bound(count: int) -> float:
        return NoisyCoordinateSteps(1.0 / columns, noise * count, rate).last(count, gap)

    if steps is None:  # the gap falls like exp(-rate t / p) and the noise rises like t: at most one minimum
        low, high = 1, 2
        while high < MOST_STEPS and bound(2 * high) < bound(high):
            high *= 2
        high *= 2
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if bound(middle + 1) < bound(middle) else (low, middle)
        count = min((low, high), key=bound)
    else:
        count = whole("steps", steps, least=1)
    source = "docs/guarantees/utility.md, theorem G5"
    assumptions = ("strongly convex objective", *ASSUMPTIONS)
    return Bound(bound(count), QUANTITY, source, True, assumptions, {"steps": float(count)})


def _constants_and_curvatures(lipschitz: Numbers, smoothness: Numbers) -> tuple[FloatArray, FloatArray]:
    constants, curvatures = per_coordinate("lipschitz", lipschitz), per_coordinate("smoothness", smoothness)
    if constants.size != curvatures.size:
        raise ValueError("lipschitz and smoothness must hold one number per coordinate.")
    return constants, curvatures


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

    Examples
    --------
    >>> from discreet import Budget
    >>> from discreet.theory import sketched_bound
    >>> bound = sketched_bound(10_000, Budget(1.0, 1e-6), lipschitz=[1.0, 2.0], smoothness=[0.25, 1.0], radius=1.0)
    >>> round(bound.value, 4), bound.proved
    (0.0083, True)
    """
    rows = whole("rows", rows, least=1)
    constants, curvatures = _constants_and_curvatures(lipschitz, smoothness)
    one_of("noise", noise, ("isotropic", "equalised"))
    size = int(number_in("size", whole("size", size, least=1), 1, constants.size))
    if probabilities is not None:
        _check_probabilities(probabilities, constants.size, size)
    spread = _spread(constants, curvatures, size, noise) * noise_per_step(budget, "exact", relation) / rows**2
    assumptions = (NO_CLIP, "smoothness holds for moves of whole sets", "no penalty and no constraint")
    source = "the DP-SkGD paper, lemma 17 corrected"
    if strong_convexity > 0.0:
        if gap is None:
            raise ValueError("gap is needed for strongly convex losses: the excess of the loss at the start.")
        inner, given = math.ceil(2.0 * (1.0 + 2.0 / strong_convexity)), ("strongly convex loss", *assumptions)
        multiple = "steps must be a multiple of 2 (1 + 2/strong_convexity)"
        return _restarted(inner, 2.0 * spread, at_least_zero("gap", gap), steps, multiple, source, given)
    if radius is None:
        raise ValueError("radius is needed where strong_convexity is 0.")
    start = at_least_zero("radius", radius) ** 2 + (0.5 * radius**2 if gap is None else at_least_zero("gap", gap))
    return _one_loop(start, 2.0 * spread, steps, source, ("convex loss", *assumptions))


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
    chances = per_coordinate("probabilities", probabilities)
    if size != 1:
        raise ValueError("probabilities are for size=1; sets of one size are equally likely.")
    if chances.size != columns or not math.isclose(float(np.sum(chances)), 1.0, rel_tol=1e-9):
        raise ValueError("probabilities must hold one number per coordinate and sum to 1.")
