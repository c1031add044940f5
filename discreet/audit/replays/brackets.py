"""Interception where a statistic meets its noise inside a function: both are forced to be the recorded ones.

If such a function makes its release through a mechanism's own `release`, nothing happens here: that is intercepted
already.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from discreet._common.types import FloatArray
from discreet.audit.replays.doors import Patch
from discreet.audit.replays.laws import GaussianLaw, LeafLaw, ObjectiveLaw, SelectionLaw, SymmetricGaussianLaw
from discreet.audit.replays.tape import Tape
from discreet.kernels.gradient import clipped_gradient_sum
from discreet.privacy import mechanisms
from discreet.privacy.mechanisms.aggregation import TreeNoise, row_norm
from discreet.problem.blockwise import BlockwiseProblem
from discreet.scaling import second_moment
from discreet.solvers import objective_perturbation
from discreet.solvers.frank_wolfe.vertex_path import ScannedPath
from discreet.solvers.frank_wolfe.vertex_selection import Choice
from discreet.solvers.ftrl.leader import Leader
from discreet.solvers.newton.descent import Descent

See = Callable[[FloatArray], FloatArray]  # takes the statistic, gives the one to go on with


def bracket_patches() -> list[Patch]:
    """The functions in which a statistic meets noise."""
    return [
        (second_moment, "release", _second_moment),
        (Leader, "follow", _leaf),
        (BlockwiseProblem, "sum", _sum),
        (Descent, "_noisy_gradient", _newton_gradient),
        (mechanisms.VertexSelections, "scale", _vertex_scale),
        (mechanisms.VertexSelections, "intercept_noise", _intercept_noise),
        (Choice, "draw", _vertex),
        (ScannedPath, "intercept_sum", _intercept_sum),
        (objective_perturbation, "minimum_within", _objective),
    ]


def _bracket(
    tape: Tape,
    what: str,
    run: Callable[[See], Any],
    law: type[GaussianLaw] = GaussianLaw,
    view: See = np.asarray,
    added: See = np.asarray,
) -> Any:
    """Run something that shows its statistic; if it draws noise, that noise protects the statistic.

    `view` is the statistic in the norm of the claim, `added` the noise as it was added there.
    """
    drawn, shown = len(tape.noises), []
    forced: FloatArray | None = None
    if tape.recorded is not None:
        forced = tape.expected(tape.recorded.brackets, len(tape.brackets), what)

    def see(statistic: FloatArray) -> FloatArray:
        shown.append(np.array(statistic, dtype=np.float64))
        return statistic if forced is None else forced.copy()

    result = run(see)
    inside = tape.noises[drawn:]
    tape.brackets.append(shown[0] if inside else None)
    for draw in inside:
        draw.seen = True
        statistic = view(shown[0])
        told = statistic + added(draw.drawn)
        tape.release(what, statistic, draw.claimed, law(draw.law.scale), partial(np.copy, told))
    return result


def _second_moment(original: Any, tape: Tape) -> Any:
    def release(total: FloatArray, *rest: Any, **named: Any) -> Any:
        if not tape.outside:
            return original(total, *rest, **named)
        return _bracket(
            tape,
            "second moment",
            lambda see: original(see(total), *rest, **named),
            SymmetricGaussianLaw,
            added=lambda draws: 0.5 * (draws + draws.T),
        )

    return release


def _newton_gradient(original: Any, tape: Tape) -> Any:
    def noisy_gradient(self: Any, t: int) -> Any:
        def run(see: See) -> Any:
            tape.notes["see"] = see
            return original(self, t)

        def whitened(gradient: FloatArray) -> FloatArray:
            return np.asarray((self.metric.vectors.T @ gradient) / np.sqrt(self.metric.values))

        return _bracket(tape, "gradient in the metric", run, view=whitened)

    return noisy_gradient


def _sum(original: Any, tape: Tape) -> Any:
    def total(self: Any, part: Any) -> Any:
        see = tape.notes.pop("see", None)
        found = original(self, part)
        return found if see is None else see(found)

    return total


def _leaf(original: Any, tape: Tape) -> Any:
    """The noise of a whole tree protects each of its leaves; which draws are mixed into it does not matter here."""

    def follow(self: Any, gradient: FloatArray, *rest: Any) -> Any:
        drawn, noise = len(tape.noises), self.noise
        forced = gradient
        if tape.recorded is not None:
            forced = tape.expected(tape.recorded.brackets, len(tape.brackets), "leaf")
        tape.brackets.append(forced.copy())
        result = original(self, forced.copy(), *rest)
        for draw in tape.noises[drawn:]:
            draw.seen = True
            tape.notes["tree"] = (noise, draw)
        owner, draw = tape.notes.get("tree", (None, None))
        if owner is noise and draw is not None:
            kind = "tree" if isinstance(noise, TreeNoise) else "square-root"
            length = row_norm(kind, noise.leaves)  # type: ignore[arg-type]
            law = LeafLaw(draw.law.scale / length)
            tape.release("leaf of running sums", gradient, draw.claimed / length, law, lambda: np.nan)
        return result

    return follow


def _vertex_scale(original: Any, tape: Tape) -> Any:
    def scale(self: Any, sensitivity: Any) -> float:
        tape.notes["vertices"] = sensitivity
        return float(original(self, sensitivity))

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
        told, _ = tape.release("vertex selection", scores, tape.notes["vertices"].l2, law, tell)
        return int(told) % levels.size, -1.0 if told >= levels.size else 1.0

    return draw


def _intercept_noise(original: Any, tape: Tape) -> Any:
    def intercept_noise(self: Any, rng: Any, sensitivity: Any) -> Any:
        before = len(tape.noises)
        noise = original(self, rng, sensitivity)
        tape.notes["intercept"] = [tape.noises[-1], 0] if len(tape.noises) > before else None
        return noise

    return intercept_noise


def _intercept_sum(original: Any, tape: Tape) -> Any:
    def intercept_sum(self: Any) -> float:
        found, state = float(original(self)), tape.notes.get("intercept")
        if state is None:
            return found
        draw, step = state
        draw.seen, state[1] = True, step + 1
        statistic = np.array([found])
        _, entry = tape.release(
            "intercept", statistic, draw.claimed, draw.law, lambda: statistic + draw.drawn[step : step + 1]
        )
        return float(entry.statistic[0])

    return intercept_sum


def _objective(original: Any, tape: Tape) -> Any:
    """The minimiser is forced: it is the minimiser on either table with a linear term of its own.

    Told the minimiser w, an attacker knows (sum of gradients at w) + (linear term), up to the error of the minimiser;
    the density of w has the determinant of the Hessian as a factor.
    """

    def minimum_within(scaled: Any, *rest: Any) -> FloatArray:
        draw = next((draw for draw in reversed(tape.noises) if not draw.seen), None)
        if draw is None:
            return np.asarray(original(scaled, *rest))
        draw.seen = True
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
