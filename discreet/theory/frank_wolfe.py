"""How close Frank-Wolfe with private choices of the vertex comes to the optimum.

Theorem and proof: docs/guarantees/utility.md, Theorem S4.
"""

from __future__ import annotations

import math
from typing import Literal

from discreet._common.checks import number_in, one_of, whole
from discreet.theory.bound import Bound
from discreet.theory.selection_error import SelectionError

SOURCE = "docs/guarantees/utility.md, Theorem S4; after Jaggi (2013), with the steps of Thakurta's chapter corrected"


def frank_wolfe_bound(
    steps: int,
    vertices: int,
    *,
    selection_scale: float,
    curvature: float,
    schedule: Literal["2/(t+2)", "constant"] = "2/(t+2)",
    gap: float | None = None,
    objective: Literal["mean", "sum"] = "mean",
    failure: float | None = None,
) -> Bound:
    """Bound the excess of the loss after Frank-Wolfe with Gumbel noise in the choices.

    At step t = 0, 1, ... a vertex s is selected with probability proportional to exp(-<s, gradient> / scale), and w
    moves its share of the way to s: 2/(t+2), or ln(T+1)/T at all T steps.

    Parameters
    ----------
    steps : int
        T, the number of selections.
    vertices : int
        Number of vertices of the set.
    selection_scale : float
        Scale of the noise on <s, gradient>.
    curvature : float
        Gamma: f(w + a (s - w)) <= f(w) + a <s - w, gradient> + a^2 Gamma / 2 for w and s in the set and a in [0, 1].
        At most the squared diameter of the set times the smoothness, in any norm.
    schedule : {"2/(t+2)", "constant"}
    gap : float, optional
        Bound on the excess of the start; needed with constant shares, which do not forget it at once.
    objective : {"mean", "sum"}
        Whether scale, curvature and gap are those of the mean of the losses or of their sum; so is the bound.
    failure : float, optional
        Bound what is exceeded with at most this probability, instead of the expectation.

    Returns
    -------
    Bound

    Examples
    --------
    >>> from discreet.theory import frank_wolfe_bound
    >>> bound = frank_wolfe_bound(100, 20, selection_scale=0.001, curvature=1.0)
    >>> round(bound.value, 4)
    0.022
    """
    steps, curvature = whole("steps", steps, least=1), number_in("curvature", curvature, 0.0)
    one_of("schedule", schedule, ("2/(t+2)", "constant"))
    one_of("objective", objective, ("mean", "sum"))
    error = SelectionError(selection_scale, whole("vertices", vertices, least=1))
    if schedule == "2/(t+2)":
        harmonic = math.fsum(1.0 / k for k in range(1, steps + 2))
        bent = 2.0 * curvature * (steps + 1.0 - harmonic) / (steps * (steps + 1.0))
        value = bent + error.weighted_sum(1.0, 2.0 / (steps + 1.0), failure)
    else:
        if gap is None:
            raise ValueError("schedule='constant' needs gap: a bound on the excess of the start.")
        share = math.log(steps + 1.0) / steps
        left = (1.0 - share) ** steps
        value = left * number_in("gap", gap, 0.0) + (1.0 - left) * 0.5 * share * curvature
        value += error.weighted_sum(1.0 - left, share, failure)
    return Bound(
        value,
        f"{'excess' if failure else 'expected excess'} of the {objective} of the losses over the set",
        SOURCE,
        assumptions=("the loss is convex", "no entry of a row's gradient is clipped", "there is no intercept"),
        settings={"steps": float(steps)},
        probability=None if failure is None else 1.0 - failure,
    )
