"""How fast the methods converge without noise: chapter 2 of Mangold's thesis, with its slips corrected.

Proofs, or where they stand: docs/guarantees/utility.md, section on methods without noise.
"""

from __future__ import annotations

from discreet._common.checks import number_in, whole
from discreet.theory.bound import Bound

HERE = "docs/guarantees/utility.md, Theorem S9"
EXCESS, DISTANCE = "excess of the objective", "squared Euclidean distance of the last iterate from the optimum"


def proximal_gradient_bound(
    steps: int, *, step: float, smoothness: float, distance: float, convexity: float | None = None
) -> Bound:
    """Bound the error of proximal gradient descent after a number of steps.

    Parameters
    ----------
    steps : int
    step : float
        Step length, at most 1/smoothness.
    smoothness : float
        Of the smooth part of the objective.
    distance : float
        Bound on the Euclidean distance of the start from an optimum.
    convexity : float, optional
        Strong convexity of the objective; the bound is then on the squared distance.

    Returns
    -------
    Bound

    Examples
    --------
    >>> from discreet.theory import proximal_gradient_bound
    >>> proximal_gradient_bound(50, step=1.0, smoothness=1.0, distance=1.0).value
    0.01
    """
    steps, smoothness = whole("steps", steps, least=1), number_in("smoothness", smoothness, 0.0, above=True)
    step = number_in("step", step, 0.0, 1.0 / smoothness, above=True)
    distance = number_in("distance", distance, 0.0)
    settings = {"steps": float(steps), "step": step}
    if convexity is None:
        return Bound(0.5 * distance**2 / (step * steps), EXCESS, HERE, assumptions=("convex",), settings=settings)
    convexity = number_in("convexity", convexity, 0.0, above=True)
    settings["printed"] = max(1.0 - 0.5 * step * convexity, 0.0) ** steps * distance**2
    value = (1.0 + step * convexity) ** -float(steps) * distance**2
    return Bound(value, DISTANCE, HERE, assumptions=("strongly convex",), settings=settings)


def proximal_sgd_bound(
    steps: int,
    *,
    step: float,
    smoothness: float,
    distance: float,
    variance: float,
    gap: float | None = None,
    convexity: float | None = None,
) -> Bound:
    """Bound the expected error of proximal stochastic gradient descent with a constant step.

    Parameters
    ----------
    steps : int
    step : float
        At most 1/(8 smoothness); with `convexity` at most 1/(2 smoothness).
    smoothness : float
        Of the loss of every single row.
    distance : float
        Bound on the Euclidean distance of the start from an optimum.
    variance : float
        Bound on the expected squared norm of a stochastic gradient at the optimum.
    gap : float, optional
        Bound on the excess of the start; needed without `convexity`. The bound is then on the mean of the first `steps`
        iterates, the start included.
    convexity : float, optional
        Strong convexity of the smooth part; the bound is then on the squared distance of the last iterate.

    Returns
    -------
    Bound

    Examples
    --------
    >>> from discreet.theory import proximal_sgd_bound
    >>> proximal_sgd_bound(100, step=0.125, smoothness=1.0, distance=1.0, variance=0.0, gap=0.5).value
    0.09
    """
    steps, smoothness = whole("steps", steps, least=1), number_in("smoothness", smoothness, 0.0, above=True)
    longest = 1.0 / ((8.0 if convexity is None else 2.0) * smoothness)
    step = number_in("step", step, 0.0, longest, above=True)
    distance, variance = number_in("distance", distance, 0.0), number_in("variance", variance, 0.0)
    settings, source = {"steps": float(steps), "step": step}, "Garrigos and Gower (2023), chapter 11"
    if convexity is None:
        if gap is None:
            raise ValueError("without convexity, give gap: a bound on the excess of the start.")
        value = (distance**2 + 2.0 * step * number_in("gap", gap, 0.0)) / (step * steps) + 4.0 * step * variance
        what = "expected excess of the objective at the mean of the iterates"
        return Bound(value, what, source, assumptions=("the loss of every row is convex",), settings=settings)
    convexity = number_in("convexity", convexity, 0.0, smoothness, above=True)
    value = (1.0 - step * convexity) ** steps * distance**2 + 2.0 * step * variance / convexity
    return Bound(
        value, f"expected {DISTANCE}", source, assumptions=("the loss of every row is convex",), settings=settings
    )


def proximal_coordinate_descent_bound(
    steps: int, columns: int, *, gap: float, distance: float | None = None, convexity: float | None = None
) -> Bound:
    """Bound the expected excess of proximal coordinate descent with random coordinates and steps 1/M_j.

    Parameters
    ----------
    steps : int
        Number of coordinate steps.
    columns : int
        Number of coordinates, all equally likely.
    gap : float
        Bound on the excess of the start.
    distance : float, optional
        Bound on |start - optimum|_(M,2), for convex objectives.
    convexity : float, optional
        Strong convexity of the smooth part with respect to |.|_(M,2), at most 1.

    Returns
    -------
    Bound
        `settings["printed"]` is the bound of the thesis, 2 p max(gap, distance^2) / steps, in the convex case.

    Examples
    --------
    >>> from discreet.theory import proximal_coordinate_descent_bound
    >>> proximal_coordinate_descent_bound(90, 10, gap=1.0, distance=2.0).value
    0.3
    """
    steps, columns = whole("steps", steps, least=1), whole("columns", columns, least=1)
    gap, settings = number_in("gap", gap, 0.0), {"steps": float(steps)}
    if (distance is None) == (convexity is None):
        raise ValueError("give distance (convex) or convexity (strongly convex), and not both.")
    if distance is not None:
        square = number_in("distance", distance, 0.0) ** 2
        settings["printed"] = 2.0 * columns * max(gap, square) / steps
        value, source = columns * (0.5 * square + gap) / (columns + steps), "Lu and Xiao (2015), Theorem 1"
    else:
        rate = number_in("convexity", convexity, 0.0, 1.0, above=True) / columns
        value, source = (1.0 - rate) ** steps * gap, "Richtarik and Takac (2014), Theorem 7"
    assumptions = ("the objective is convex and smooth in each coordinate",)
    return Bound(value, f"expected {EXCESS}", source, assumptions=assumptions, settings=settings)


def greedy_coordinate_descent_bound(
    steps: int, *, gap: float | None = None, radius: float | None = None, l1_convexity: float | None = None
) -> Bound:
    """Bound the excess of greedy coordinate descent with steps 1/M_j on a smooth objective.

    Parameters
    ----------
    steps : int
    gap : float, optional
        Bound on the excess of the start; by default radius^2 / 2, which always holds.
    radius : float, optional
        Bound on |w - optimum|_(M,1) for all w that are no worse than the start, for convex objectives.
    l1_convexity : float, optional
        Strong convexity with respect to |.|_(M,1), at most 1; needs gap.

    Returns
    -------
    Bound

    Examples
    --------
    >>> from discreet.theory import greedy_coordinate_descent_bound
    >>> greedy_coordinate_descent_bound(96, radius=5.0).value
    0.5
    """
    steps, settings = whole("steps", steps, least=1), {"steps": float(steps)}
    if (radius is None) == (l1_convexity is None):
        raise ValueError("give radius (convex) or l1_convexity (strongly convex), and not both.")
    if radius is not None:
        width = 2.0 * number_in("radius", radius, 0.0, above=True) ** 2
        start = 0.25 * width if gap is None else min(number_in("gap", gap, 0.0), 0.25 * width)
        value = 0.0 if start == 0.0 else width / (steps + width / start)
    else:
        if gap is None:
            raise ValueError("l1_convexity needs gap: a bound on the excess of the start.")
        rate = number_in("l1_convexity", l1_convexity, 0.0, 1.0, above=True)
        value = (1.0 - rate) ** steps * number_in("gap", gap, 0.0)
    assumptions = ("the objective is convex and smooth in each coordinate",)
    return Bound(value, EXCESS, HERE, assumptions=assumptions, settings=settings)
