"""The regret of follow-the-regularised-leader with noisy running sums of gradients.

Theorem and proof: docs/guarantees/utility.md, Theorem S5.
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from discreet._common.checks import number_in, one_of, whole
from discreet._common.types import FloatArray
from discreet.privacy.mechanisms.aggregation import square_root_column
from discreet.theory.bound import Bound
from discreet.theory.distance import NoiseNorm

SOURCE = "docs/guarantees/utility.md, Theorem S5; Thakurta's chapter, Theorem 6.15, corrected"
Aggregation = Literal["square-root", "tree", "plain-tree"]


def running_deviations(aggregation: Aggregation, leaves: int) -> FloatArray:
    """Return the standard deviations of the noise on the running sums of 1, ..., `leaves` vectors.

    In units of the deviation of the independent draws. "tree" estimates each node from its own release and from those
    below it; "plain-tree" takes its own release alone.

    Parameters
    ----------
    aggregation : {"square-root", "tree", "plain-tree"}
    leaves : int

    Returns
    -------
    array of shape (leaves,)

    Examples
    --------
    >>> from discreet.theory.ftrl import running_deviations
    >>> running_deviations("plain-tree", 4).round(3)
    array([1.   , 1.   , 1.414, 1.   ])
    """
    one_of("aggregation", aggregation, ("square-root", "tree", "plain-tree"))
    leaves = whole("leaves", leaves, least=1)
    if aggregation == "square-root":
        return np.sqrt(np.cumsum(square_root_column(leaves) ** 2))
    heights = np.arange(leaves.bit_length())
    variances = np.ones(heights.size) if aggregation == "plain-tree" else 2.0**heights / (2.0 ** (heights + 1) - 1.0)
    digits = (np.arange(1, leaves + 1)[:, None] >> heights) & 1  # one node for every 1 in the number of vectors
    return np.asarray(np.sqrt(digits @ variances))


def ftrl_bound(
    leaves: int,
    columns: int,
    *,
    lipschitz: float,
    noise: float,
    radius: float,
    regularisation: float | None = None,
    aggregation: Aggregation = "square-root",
    passes: int = 1,
    ridge: float = 0.0,
    unpenalised: bool = False,
    failure: float | None = None,
) -> Bound:
    """Bound the average regret of follow-the-regularised-leader.

    The weights w_(t+1) minimise <noisy sum of the gradients of leaves 1 to t, w> + t ridge/2 |w|^2
    + regularisation/2 |w|^2. The regret compares the mean over t of the loss of leaf t (plus ridge/2 |w|^2) at w_t,
    which did not know this leaf, with that of any fixed vector.

    Parameters
    ----------
    leaves : int
        Number of updates in a pass.
    columns : int
        Number of coefficients.
    lipschitz : float
        Bound on the norm of the gradient of a leaf's mean loss: the clipping norm.
    noise : float
        Standard deviation of the independent draws from which the noise of the running sums of these gradients is made.
    radius : float
        Norm of the vector with which the weights are compared.
    regularisation : float, optional
        Delta, one over the length of a step; by default the one for which the bound is least (without ridge).
    aggregation : {"square-root", "tree", "plain-tree"}
        How the noise is made: see `running_deviations`.
    passes : int, default=1
        Passes over the leaves, each with fresh noise on top of the last sum of the pass before.
    ridge : float, default=0
        The l2 penalty that belongs to every leaf's loss.
    unpenalised : bool, default=False
        Whether some coefficients, such as the intercept, have no ridge.
    failure : float, optional
        Bound what is exceeded with at most this probability, instead of the expectation.

    Returns
    -------
    Bound

    Examples
    --------
    >>> from discreet.theory import ftrl_bound
    >>> bound = ftrl_bound(256, 5, lipschitz=1.0, noise=2.0, radius=1.0)
    >>> round(bound.value, 3), round(bound.settings["regularisation"], 1)
    (0.237, 60.7)
    """
    leaves, passes = whole("leaves", leaves, least=1), whole("passes", passes, least=1)
    steep, radius = number_in("lipschitz", lipschitz, 0.0, above=True), number_in("radius", radius, 0.0)
    ridge = number_in("ridge", ridge, 0.0)
    deviations = _before_each_step(running_deviations(aggregation, leaves), passes)
    steps = deviations.size
    norm = NoiseNorm("gaussian", number_in("noise", noise, 0.0), columns)
    size, square = norm.mean, norm.mean_square
    if failure is not None:
        size = norm.quantile(number_in("failure", failure, 0.0, 1.0, above=True) / max(steps - 1, 1))
        square = size**2
    lengths, squares = size * deviations, square * deviations**2
    if regularisation is None:
        if ridge > 0.0 or radius == 0.0:
            raise ValueError("give regularisation; the best one is known without ridge and for a radius above 0 only.")
        regularisation = math.sqrt(steep * (steps * steep + 2.0 * float(lengths.sum()))) / radius
    least = number_in("regularisation", regularisation, 0.0, above=True)
    before = np.arange(steps)  # leaves whose penalty the weights of a step have seen
    convex = least + ridge * before
    free = np.full(steps, least) if unpenalised else convex
    regret = 0.5 * least * radius**2 + float((0.5 * steep**2 / free + steep * lengths / free).sum())
    regret += float((ridge * before * steep * lengths / convex**2 + 0.5 * ridge * squares / convex**2).sum())
    what = "mean loss of each leaf plus ridge" if ridge else "mean loss of each leaf"
    return Bound(
        regret / steps,
        f"{'average' if failure else 'expected average'} regret, in the {what}, against a vector of norm {radius:g}",
        SOURCE,
        assumptions=(
            "the losses are convex, with gradients clipped as those of a loss that grows linearly from there on",
            "a constraint contains 0, and stands without unpenalised coefficients",
        ),
        settings={"regularisation": least, "steps": float(steps)},
        probability=None if failure is None else 1.0 - failure,
    )


def _before_each_step(deviations: FloatArray, passes: int) -> FloatArray:
    """Of the noise in the sums that the weights of each step were made of, through all passes."""
    finished = np.repeat(np.arange(passes), deviations.size) * deviations[-1] ** 2
    variances = finished + np.tile(deviations**2, passes)
    return np.sqrt(np.concatenate([[0.0], variances[:-1]]))
