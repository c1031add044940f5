"""Noisy ADMM (Douglas-Rachford splitting): how close it comes to its fixed point."""

from __future__ import annotations

from discreet._common.checks import number_in
from discreet.theory.bound import Bound
from discreet.theory.fixed_point import NoisyContraction


def admm_bound(
    steps: int,
    *,
    start: float,
    noise: float,
    prox_step: float,
    strong_convexity: float,
    smoothness: float,
    relaxation: float = 0.5,
    frequency: float = 1.0,
) -> Bound:
    """Return how close the dual variables u come to their fixed point.

    The iteration u <- u + 2 relaxation (prox_f(2 z - u) - z + noise / 2) with z = prox_r(u), for any closed convex r:
    u <- u + relaxation (R(u) + noise - u), R = (2 prox_f - 1)(2 prox_r - 1). For consensus ADMM, f is the sum of the
    functions of all participants, each of its own copy of the weights.

    Parameters
    ----------
    steps : int
    start : float
        At least E |u_0 - u*|^2.
    noise : float
        Expected squared norm of the noise on all of u in a step (before it is multiplied by `relaxation`).
    prox_step : float
        Length of the proximal steps.
    strong_convexity, smoothness : float
        Of f: of every participant's function, not of their mean.
    relaxation : float, default=0.5
        Above 0, at most 1; 1/2 is plain ADMM.
    frequency : float, default=1
        Probability with which each participant is active in a step.

    Returns
    -------
    Bound

    Examples
    --------
    >>> from discreet.theory import admm_bound
    >>> bound = admm_bound(50, start=4.0, noise=0.03, prox_step=1.0, strong_convexity=1.0, smoothness=1.0)
    >>> round(bound.value, 4)
    0.01
    """
    gamma = number_in("prox_step", prox_step, 0.0, above=True)
    low = number_in("strong_convexity", strong_convexity, 0.0, above=True)
    high = number_in("smoothness", smoothness, 0.0)
    if high < low:
        raise ValueError("smoothness cannot be below strong_convexity.")
    contraction = max(abs(1.0 - gamma * low) / (1.0 + gamma * low), abs(gamma * high - 1.0) / (gamma * high + 1.0))
    run = NoisyContraction(contraction, noise, number_in("relaxation", relaxation, 0.0, 1.0, above=True), frequency)
    return Bound(
        run.after(steps, start),
        "expected squared Euclidean distance of the dual variables from their fixed point",
        "docs/guarantees/fixed-point.md, with the contraction of Giselsson and Boyd (2017)",
        True,
        (
            "every participant's function has the strong convexity and the smoothness given",
            "exact proximal maps; noise of mean zero, independent of the past",
        ),
        {"contraction": contraction, "steps": float(steps)},
    )
