"""Put a privacy loss on a grid without ever understating it: the connect-the-dots rule.

The mass that P and Q give to the losses between two neighbouring grid points is moved to these two points
so that both totals are kept. The new pair has the chords of the old profile (as a function of e^epsilon) for
its profile, and a chord of a convex function lies above it: the new pair dominates the old one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from discreet.privacy.accounting.pairs import Array, Pair

# Above this loss e^loss times a tail of Q is not reliable; rounding every loss up is.
_ROUND_UP_FROM = 600.0


@dataclass(frozen=True)
class LossLaw:
    """A privacy loss with finitely many values: masses under P, and the mass of an infinite loss."""

    losses: Array
    masses: Array
    infinity: float

    def log_moment(self, order: float) -> float:
        """Return log E_P[e^(order * loss)], leaving out the infinite loss."""
        exponents = order * self.losses
        top = float(np.max(exponents))
        return top + float(np.log(np.sum(self.masses * np.exp(exponents - top))))

    def moment_error(self, order: float) -> float:
        """Return a bound on the rounding error of `log_moment`: of its sum, and of the exponents."""
        return 4e-15 + 3e-16 * abs(order) * float(np.max(np.abs(self.losses)))

    def tilted_masses(self, order: float) -> Array:
        """Return the masses multiplied by e^(order * loss) and normalised to sum to one."""
        return np.exp(np.log(self.masses) + order * self.losses - self.log_moment(order))


def connect_dots(pair: Pair, losses: Array) -> LossLaw:
    """Return a law on the given increasing losses, 0 and a negative one among them, that dominates `pair`.

    Guarantee: the hockey-stick divergence of the result is at least that of the pair at every epsilon; losses
    above the grid become infinite, losses below it are raised to its first point, and rounding goes upwards.
    """
    zero = int(np.searchsorted(losses, 0.0))
    p_below, q_below = pair.below(losses[:zero])
    p_above, q_above = pair.above(losses[zero:])
    p_steps, p_error = _steps(p_below, p_above)
    q_steps, q_error = _steps(q_below, q_above)
    growth = np.exp(np.minimum(losses[:-1], _ROUND_UP_FROM))
    share = -np.expm1(-np.diff(losses))
    raised = (p_steps - growth * q_steps + p_error + growth * q_error) / share
    raised = np.where(losses[:-1] > _ROUND_UP_FROM, p_steps, np.clip(raised, 0.0, p_steps))
    masses = np.append(p_steps - raised, 0.0)
    masses[1:] += raised
    masses[0] += p_below[0]
    held = masses > 0.0
    return LossLaw(losses[held], masses[held], float(p_above[-1]))


def _steps(below: Array, above: Array) -> tuple[Array, Array]:
    """Return the mass between neighbouring points and a bound on its rounding error."""
    middle = 1.0 - above[0] - below[-1]
    steps = np.concatenate([np.diff(below), [middle], -np.diff(above)])
    size = np.concatenate([below[1:], [1.0], above[:-1]])
    # exp(-y^2 / 2) loses about y^2 / 2 = -log(size) units in the last place.
    error = size * (2e-15 - 5e-16 * np.log(np.maximum(size, 1e-300)))
    return np.maximum(steps, 0.0), error


def loss_range(pair: Pair, mass: float) -> tuple[float, float]:
    """Return (down, up) such that P puts at most `mass` below -down, and at most `mass` above up."""
    candidates = np.geomspace(1e-12, 1e6, 800)
    return _first_small(pair.below(-candidates)[0], mass), _first_small(pair.above(candidates)[0], mass)


def _first_small(tails: Array, mass: float) -> float:
    too_much = np.flatnonzero(tails > mass)
    return float(np.geomspace(1e-12, 1e6, 800)[min(too_much[-1] + 1, 799)]) if too_much.size else 1e-12
