"""Interception where what is released is neither a sum of a statistic and noise nor a choice of a mechanism itself."""

from __future__ import annotations

from typing import Any

import numpy as np

from discreet._common.types import FloatArray
from discreet.audit.replays.doors import Patch
from discreet.audit.replays.laws import GaussianLaw, ObjectiveLaw, SelectionLaw, SymmetricGaussianLaw
from discreet.audit.replays.tape import Tape
from discreet.kernels.gradient import clipped_gradient_sum
from discreet.privacy import mechanisms
from discreet.scaling import second_moment
from discreet.solvers import objective_perturbation
from discreet.solvers.frank_wolfe.vertices import Choice


def bracket_patches() -> list[Patch]:
    """The functions that make such releases."""
    return [
        (second_moment, "symmetric_noise", _symmetric_noise),
        (mechanisms.VertexSelections, "scale", _vertex_scale),
        (Choice, "draw", _vertex),
        (objective_perturbation, "minimum_within", _objective),
    ]


def _symmetric_noise(original: Any, tape: Tape) -> Any:
    """One draw of a symmetric matrix, whatever it is made of; what it is added to is released."""

    def symmetric_noise(grid: Any, rng: Any, columns: int) -> Any:
        if grid.is_exact or id(grid) not in tape.grids:
            return original(grid, rng, columns)
        _, name, claimed, law = tape.grids[id(grid)]
        white = SymmetricGaussianLaw(law.scale)
        return tape.noise(f"{name}.noise", claimed, white, lambda: original(grid, rng, columns))

    return symmetric_noise


def _vertex_scale(original: Any, tape: Tape) -> Any:
    def scale(self: Any, sensitivity: Any) -> float:
        scale = float(original(self, sensitivity))
        tape.notes["vertices"] = (sensitivity.l2, scale)
        return scale

    return scale


def _vertex(original: Any, tape: Tape) -> Any:
    def draw(self: Any, uniforms: FloatArray) -> tuple[int, float]:
        if self.rate is None or not tape.outside:
            return original(self, uniforms)
        levels = self.levels
        scores = np.concatenate([-levels, levels]) if self.paired else -levels

        def tell() -> int:
            j, sign = original(self, uniforms)
            return j if sign > 0.0 or not self.paired else j + levels.size

        law = SelectionLaw(1.0 / self.rate)
        claimed, scale = tape.notes["vertices"]
        claimed *= law.scale / scale  # levels are counted in units of their own
        told, _ = tape.release("vertex selection", scores, claimed, law, tell)
        return int(told) % levels.size, -1.0 if told >= levels.size else 1.0

    return draw


def _objective(original: Any, tape: Tape) -> Any:
    """The minimiser is forced: it is the minimiser on either table with a linear term of its own.

    Told the minimiser w, an attacker knows (sum of gradients at w) + (linear term), up to the error of the minimiser;
    the density of w has the determinant of the Hessian as a factor.
    """

    def minimum_within(scaled: Any, *rest: Any) -> FloatArray:
        draw = next((draw for draw in reversed(tape.noises) if not draw.seen), None)
        if draw is None:
            return np.asarray(original(scaled, *rest))
        draw.seen = draw.drawn.size
        recorded = None if tape.recorded is None else tape.recorded.notes["minimum"]
        w = np.asarray(original(scaled, *rest)) if recorded is None else recorded[0].copy()
        margins, loss = scaled.margins(w), scaled.problem.loss
        gradients = clipped_gradient_sum(scaled.X, loss.slope(margins, scaled.y), scaled.norms(), np.inf, scaled.weight)
        curvature = loss.curvature(margins, scaled.y) * (1.0 if scaled.weight is None else scaled.weight)
        hessian = (scaled.X.T * curvature) @ scaled.X + np.diag(scaled.rows * scaled.penalty_terms.l2)
        size = float(np.linalg.slogdet(hessian)[1])
        tape.notes["minimum"] = (w, size)
        law = ObjectiveLaw(draw.law.scale) if isinstance(draw.law, GaussianLaw) else draw.law
        _, entry = tape.release("objective", gradients, draw.claimed, law, lambda: gradients + draw.drawn)
        if recorded is not None and entry.loss is not None:
            entry.loss += recorded[1] - size
        return w

    return minimum_within
