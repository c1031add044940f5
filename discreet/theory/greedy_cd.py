"""How close private greedy coordinate descent comes to the optimum: Gumbel selections, Gaussian updates.

Theorem and proof: docs/guarantees/utility.md, Theorem S3. The selections and updates are those of the solver
`greedy-cd`; the thesis proves the like for Laplace noise (appendix B.2).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from discreet._common.checks import at_least_zero, number_in, whole
from discreet._common.types import FloatArray
from discreet.theory.bound import Bound, excess_bound
from discreet.theory.selections import SelectionError

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
        values = _convex(steps, gap, added, radius, within_gap=failure is not None)
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


def _convex(steps: int, gap: float, added: FloatArray, radius: float, within_gap: bool) -> FloatArray:
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
