"""Minimise a strongly convex problem with short rows to a distance that is proved, not hoped for.

Shared by output and objective perturbation, whose guarantees need to know how far from the minimiser they are.
Distances are in the norm of the penalty, sqrt(sum of l2_j w_j^2): a coordinate that is penalised more is known better.
Theorem and proof: docs/guarantees/output-perturbation.md. Nothing here adds noise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from discreet.framed import Framed
from discreet.kernels.gradient import row_norms

if TYPE_CHECKING:
    from discreet.losses import Loss

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Tilted(Framed):
    """A framed problem with a linear term <tilt, w> in its objective."""

    tilt: FloatArray

    def value(self, w: FloatArray) -> float:
        return super().value(w) + float((self.tilt * w).sum())

    def gradient(self, w: FloatArray) -> FloatArray:
        return super().gradient(w) + self.tilt


def tilted(framed: Framed, tilt: FloatArray) -> Tilted:
    """The same problem with a linear term in its objective."""
    return Tilted(**{field.name: getattr(framed, field.name) for field in fields(framed)}, tilt=tilt)


@dataclass(frozen=True)
class Restarts:
    """So many rounds of so many accelerated steps, each of which at least halves the distance to the minimiser."""

    rounds: int
    length: int

    @property
    def steps(self) -> int:
        return self.rounds * self.length


def restarts_for(smoothness: float, convexity: float, steepness: float, distance: float) -> Restarts:
    """How many steps certify a distance: `steepness` bounds the gradient of the smooth part at the minimiser.

    Guarantee: starting from the minimiser of the penalty, the certificate is below `distance` after these steps.
    """
    condition = smoothness / convexity
    halvings = math.log2(max(4.0 * condition * steepness / (math.sqrt(convexity) * distance), 2.0))
    return Restarts(math.ceil(halvings), math.ceil(4.0 * math.sqrt(condition)))


def row_curvature(loss: Loss, radius: float) -> float:
    """Smoothness of the mean loss, for rows of norm at most `radius`."""
    return loss.smoothness * radius**2


def shortened(framed: Framed, radius: float, ridge: float) -> Framed:
    """The same problem with rows of norm at most `radius` and an l2 penalty of at least `ridge` everywhere.

    The entry 1 of the intercept stays, so that the model stays linear: the other entries give way. Each row is
    changed on its own.
    """
    coefficients = framed.coefficients._replace(l2=np.maximum(framed.coefficients.l2, ridge))
    # A little less than the radius allows, for what single precision rounds up.
    room = math.sqrt(radius**2 - framed.problem.fit_intercept) * (1.0 - 4.0 * float(np.finfo(framed.X.dtype).eps))
    inner = framed.frame.columns
    factor = np.minimum(1.0, room / row_norms(framed.X[:, :inner]))
    X = framed.X  # a copy of the solver's own, see Frame.matrix
    if sp.issparse(X):
        X.data *= np.repeat(factor, np.diff(X.indptr))
        X.data[X.indices == inner] = 1.0
    else:
        X[:, :inner] *= factor[:, None]
    return replace(framed, X=X, coefficients=coefficients)


def minimum_within(framed: Framed, radius: float, distance: float) -> FloatArray:
    """A point at most `distance` from the minimiser; rows have norm at most `radius`.

    Newton or quasi-Newton steps come first where they are possible. Whatever they give must pass the certificate,
    else the steps that cannot fail are made.
    """
    loss, convexity = framed.problem.loss, float(framed.coefficients.l2.min())
    mass = framed.X.shape[0] / framed.rows  # 1, unless the number of rows is private
    smoothness = mass * row_curvature(loss, radius)
    guess = _quick_guess(framed, distance / math.sqrt(1.0 + smoothness / convexity))
    w, error = certified_step(framed, guess, smoothness)
    if error <= distance:
        return w
    tilt = float(np.linalg.norm(framed.tilt)) if isinstance(framed, Tilted) else 0.0
    limit = restarts_for(smoothness, convexity, mass * loss.lipschitz * radius + tilt, distance)
    w = framed.start()
    for _ in range(limit.rounds):
        w, error = certified_step(framed, _accelerated(framed, w, 1.0 / smoothness, limit.length), smoothness)
        if error <= distance:
            return w
    raise RuntimeError(f"no minimum was certified within {distance:g} in {limit.steps} steps; nothing is released.")


def certified_step(framed: Framed, w: FloatArray, smoothness: float) -> tuple[FloatArray, float]:
    """One proximal gradient step, and a proved bound on its distance from the minimiser.

    Guarantee: the step leaves a subgradient of the objective at the new point; its norm, with each entry divided by
    the root of the l2 penalty, bounds the distance.
    """
    step = 1.0 / smoothness
    slope = framed.gradient(w)
    moved = framed.prox(w - step * slope, step)
    subgradient = (w - moved) / step - slope + framed.gradient(moved)
    return moved, float(np.linalg.norm(subgradient / np.sqrt(framed.coefficients.l2)))


def _quick_guess(framed: Framed, decrement: float) -> FloatArray:
    """Where the problem is smooth: Newton steps to about this decrement, or L-BFGS if there are many weights."""
    from discreet.optimum import LARGEST_NEWTON, is_smooth, lbfgs, newton

    if not is_smooth(framed):
        return framed.start()
    return newton(framed, decrement) if framed.outputs == 1 and framed.columns <= LARGEST_NEWTON else lbfgs(framed)


def _accelerated(framed: Framed, w: FloatArray, step: float, count: int) -> FloatArray:
    """Proximal gradient steps with Nesterov's momentum (Beck and Teboulle 2009)."""
    point: Any = w
    momentum = 1.0
    for _ in range(count):
        moved = framed.prox(point - step * framed.gradient(point), step)
        following = 0.5 * (1.0 + math.sqrt(1.0 + 4.0 * momentum**2))
        point = moved + (momentum - 1.0) / following * (moved - w)
        w, momentum = moved, following
    return w
