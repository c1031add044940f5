"""DP-CD and DP-SkGD: what noisy proximal steps along coordinates, or along random sets of them, achieve.

And what greedy ones achieve, with Gumbel selections and Gaussian updates, as the solver `greedy-cd` has them:
docs/guarantees/utility.md, Theorem S3. The thesis proves the like for Laplace noise (appendix B.2).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from discreet._common.checks import at_least_zero, number_in, one_of, whole
from discreet._common.types import FloatArray
from discreet.privacy.budget import Budget
from discreet.privacy.relation import Relation, clipped_sum, relation_from
from discreet.theory.bound import SMALL_DELTA, SMALL_EPSILON, Bound, epsilon_and_delta, excess_bound, log_of_delta
from discreet.theory.selections import SelectionError
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


SOURCE = "docs/guarantees/utility.md, Theorem S3; Mangold's thesis, appendix B.2, for Laplace noise"
LOST_SHARES = np.append(np.geomspace(1e-4, 0.1, 31), np.linspace(0.11, 0.95, 85))  # of the decrease: the best is taken


def quasi_sparsity(w: npt.ArrayLike, alpha: float) -> int:
    """Return how many entries of a vector are larger than alpha in absolute value.

    Parameters
    ----------
    w : array
    alpha : float

    Returns
    -------
    int
        The least tau for which w is (alpha, tau)-quasi-sparse.

    Examples
    --------
    >>> from discreet.theory import quasi_sparsity
    >>> quasi_sparsity([3.0, -0.2, 0.01, 0.0], alpha=0.1)
    2
    """
    return int((np.abs(np.asarray(w, dtype=np.float64)) > at_least_zero("alpha", alpha)).sum())


def greedy_cd_bound(
    steps: int,
    columns: int,
    *,
    selection_scale: float,
    deviation: float,
    gap: float,
    radius: float | None = None,
    convexity: float | None = None,
    l1_convexity: float | None = None,
    large: int | None = None,
    alpha: float = 0.0,
    smoothness: float | None = None,
    failure: float | None = None,
) -> Bound:
    """Bound the excess of the objective after private greedy coordinate descent.

    With coordinate smoothness constants M_j a step selects the largest |gradient_j| / sqrt(M_j) after Gumbel noise and
    moves w_j by -(gradient_j + normal noise) / M_j. |v|_(M,1) is the sum of sqrt(M_j) |v_j|, and |v|_(M,2)^2 that of
    M_j v_j^2. Give `radius` for the convex case; `convexity` or `l1_convexity` for the strongly convex one; with
    `convexity` also `large` (and `alpha`) for an optimum that is nearly sparse.

    Parameters
    ----------
    steps : int
    columns : int
        Number of coordinates.
    selection_scale : float
        Scale of the Gumbel noise on the scores |gradient_j| / sqrt(M_j), the gradient being that of the objective
        (mean or sum of losses) that is bounded.
    deviation : float
        Largest standard deviation of the noise on a selected entry, in units of sqrt(M_j).
    gap : float
        Bound on the excess of the start.
    radius : float, optional
        With `failure`: bound on |w - w*|_(M,1) for all w whose excess is at most `gap`. Without: bound on the root mean
        square of |w - w*|_(M,1) over the runs, for the iterate w of every step.
    convexity : float, optional
        Strong convexity with respect to |.|_(M,2).
    l1_convexity : float, optional
        The same with respect to |.|_(M,1); at most 1, and at least `convexity` / columns.
    large : int, optional
        tau: at most so many entries of the optimum exceed alpha. The start must be 0.
    alpha : float, default=0
        Size of the entries of the optimum that count as small.
    smoothness : float, optional
        Largest M_j; needed with alpha > 0.
    failure : float, optional
        Bound what is exceeded with at most this probability, instead of the expectation.

    Returns
    -------
    Bound

    Examples
    --------
    >>> from discreet.theory import greedy_cd_bound
    >>> noise = dict(selection_scale=0.001, deviation=0.001)
    >>> round(greedy_cd_bound(50, 100, gap=1.0, convexity=0.5, large=3, **noise).value, 3)
    0.232
    >>> round(greedy_cd_bound(50, 100, gap=1.0, convexity=0.5, **noise).value, 3)
    0.799
    """
    steps, columns = whole("steps", steps, least=1), whole("columns", columns, least=1)
    deviation, gap = number_in("deviation", deviation, 0.0), number_in("gap", gap, 0.0)
    if (radius is None) == (convexity is None and l1_convexity is None):
        raise ValueError("give either radius (convex) or convexity or l1_convexity (strongly convex).")
    added = _added_noise(SelectionError(selection_scale, columns), deviation, steps, failure)
    assumptions = ["no entry of a row's gradient is clipped", "the objective is convex and smooth in each coordinate"]
    if radius is not None:
        radius = number_in("radius", radius, 0.0, above=True)
        assumptions.append(_reach(radius, gap if failure else None))
        values = _greedy_convex(steps, gap, added, radius, within_gap=failure is not None)
    else:
        sparse = _Sparsity(columns, convexity or 0.0, l1_convexity or 0.0, large, alpha, smoothness)
        assumptions.extend(sparse.assumptions)
        values = _strongly_convex(steps, gap, added, sparse)
    best = int(np.argmin(values))
    settings = {"steps": float(steps), "lost_share": float(LOST_SHARES[best])}
    return excess_bound(float(values[best]), "objective", SOURCE, failure, assumptions, settings)


def _reach(radius: float, gap: float | None) -> str:
    """What the radius is assumed to bound: below an excess, or in the mean over the runs."""
    if gap is None:
        return f"the root mean square of |w - w*|_(M,1) over the runs is at most {radius:g} for the iterates w"
    return f"|w - w*|_(M,1) <= {radius:g} for all w whose excess is at most {gap:g}"


def _added_noise(error: SelectionError, deviation: float, steps: int, failure: float | None) -> FloatArray:
    """What a step may add to the objective, for each share of its decrease that is given away, in units of M_j.

    In expectation; or what holds in all steps together, with half the failure for either noise.
    """
    if failure is None:
        selection, update = error.mean_square, deviation * deviation
    else:
        from scipy.stats import norm

        each = number_in("failure", failure, 0.0, 1.0, above=True) / (2.0 * steps)
        selection, update = error.quantile(each) ** 2, (deviation * float(norm.isf(0.5 * each))) ** 2
    return 0.5 * ((1.0 / LOST_SHARES - 1.0) * selection + update)


@dataclass(frozen=True)
class _Sparsity:
    """How steep the objective must be where it exceeds its minimum, for iterates with few non-zeros."""

    columns: int
    convexity: float
    l1_convexity: float
    large: int | None
    alpha: float
    smoothness: float | None

    def __post_init__(self) -> None:
        number_in("convexity", self.convexity, 0.0, 1.0)
        number_in("l1_convexity", self.l1_convexity, 0.0, 1.0)
        at_least_zero("alpha", self.alpha)
        if self.convexity == self.l1_convexity == 0.0:
            raise ValueError("convexity and l1_convexity must not both be 0; give radius for the convex case.")
        if self.large is None and self.alpha > 0.0:
            raise ValueError("alpha needs large: how many entries of the optimum exceed it.")
        if self.large is not None and whole("large", self.large, least=0) > self.columns:
            raise ValueError(f"large must be at most the number of columns, {self.columns}; got {self.large}.")
        if self.alpha > 0.0 and self.smoothness is None:
            raise ValueError("alpha needs smoothness: the largest M_j.")

    @property
    def assumptions(self) -> list[str]:
        if self.large is None:
            return []
        return [f"at most {self.large} entries of the optimum exceed {self.alpha:g}", "the start is 0"]

    @property
    def tail(self) -> float:
        """Bound on the excess of the optimum after its small entries are set to 0."""
        small = self.columns - (self.columns if self.large is None else self.large)
        return 0.5 * number_in("smoothness", self.smoothness or 0.0, 0.0) * (small * self.alpha) ** 2

    def at(self, step: int) -> float:
        """The strong convexity in |.|_(M,1) along the way from the iterate to the optimum without small entries."""
        moved = self.columns if self.large is None else min(self.columns, step + self.large)
        return max(self.l1_convexity, self.convexity / max(moved, 1))


def _greedy_convex(steps: int, gap: float, added: FloatArray, radius: float, within_gap: bool) -> FloatArray:
    """The recursion of Theorem S3 for each share; the radius may hold only where the excess is at most the gap."""
    width = 2.0 * radius**2 / (1.0 - LOST_SHARES)
    excess = np.full(added.size, gap)
    for _ in range(steps):
        turn = np.minimum(excess, 0.5 * width)  # x - x^2 / width grows up to there
        gained = turn - turn**2 / width
        if within_gap:  # above it the radius may not hold, and nothing is sure to be gained
            gained = np.where(excess > gap, excess, gained)
        excess = gained + added
    return excess


def _strongly_convex(steps: int, gap: float, added: FloatArray, sparse: _Sparsity) -> FloatArray:
    """The recursion of Theorem S3 for each share."""
    tail, excess = sparse.tail, np.full(added.size, gap)
    for t in range(steps):
        kept = (1.0 - LOST_SHARES) * sparse.at(t)
        excess = (1.0 - kept) * excess + kept * tail + added
    return excess
