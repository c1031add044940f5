"""Interception of loops that get their noise in advance, as compiled loops do: each step is compared by itself.

The statistic of a step is measured by the loop's own code: a step without noise and penalty, of length 1, moves the
weights by exactly the sum to which the noise would have been added. On the second table the noise is shifted so that
the noisy sum is the recorded one; the weights after the step must then be the recorded weights.
"""
# ruff: noqa: B023  (a step is made before the loop goes on, so its variables are still the right ones)

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from discreet._common.types import FloatArray
from discreet.audit.replays.doors import Patch
from discreet.audit.replays.laws import Law
from discreet.audit.replays.tape import NoiseDraw, Tape
from discreet.problem.coordinate_state import CoordinateState
from discreet.problem.penalties import Zero
from discreet.problem.problem import Problem
from discreet.solvers import coordinate_descent
from discreet.solvers._shared.batch_steps import BatchSteps
from discreet.solvers.sketched.solver import BlockState
from discreet.solvers.svrg import MemorySteps

Step = Callable[[FloatArray], None]  # makes the step with this noise


def loop_patches() -> list[Patch]:
    """The methods that run such loops."""
    return [
        (CoordinateState, "run", _coordinate_steps),
        (BlockState, "run_sets", _set_steps),
        (BatchSteps, "run", _batches(_batch, ("w",))),
        (MemorySteps, "run", _batches(_difference, ("w",))),
        (coordinate_descent._Ascent, "_steps", _batches(_dual, ("v", "w", "centre"))),
    ]


@lru_cache(maxsize=1)  # asked for the same problem at every step
def _free(scaled: Any, rows: int | None = None) -> Any:
    """The scaled problem without penalty and constraint, with another number to divide by if there is one."""
    problem = Problem(scaled.problem.loss, Zero(), fit_intercept=scaled.problem.fit_intercept)
    terms = Zero().penalty_terms(scaled.columns)
    return replace(scaled, problem=problem, penalty_terms=terms, rows=scaled.rows if rows is None else rows)


def _step(
    tape: Tape,
    draw: NoiseDraw,
    statistic: FloatArray,
    noise: FloatArray,
    grid_step: float,
    step: Step,
    owner: Any,
    names: tuple[str, ...],
    moves: bool = True,
) -> None:
    """Make one step; statistic and noise are in the units of the grid, of which both are multiples.

    `names` are the attributes of `owner` that the step changes and that are released. If the step does not move, the
    statistic must be 0.
    """
    # Measured as a difference of weights, the statistic is off by a rounding error; on the grid it is exact again.
    statistic = np.rint(statistic / grid_step) * grid_step if grid_step > 0.0 else statistic
    claimed, law = (draw.claimed, draw.law) if moves else (0.0, Law(0.0))
    if tape.recorded is None:
        tape.release(draw.what, statistic, claimed, law, lambda: statistic + noise)
        step(noise)
        tape.states.append({name: getattr(owner, name).copy() for name in names})
        return
    _, entry = tape.release(draw.what, statistic, claimed, law, lambda: None)
    step(noise + (entry.statistic - statistic))
    recorded = tape.recorded.states[len(tape.states)]
    tape.states.append(recorded)
    for name in names:
        array = getattr(owner, name)
        gap, size = np.abs(array - recorded[name]).max(), np.abs(recorded[name]).max() + 1e-300
        tape.largest_difference = max(tape.largest_difference, float(gap / size))
        array[...] = recorded[name]


def _coordinate_steps(original: Any, tape: Tape) -> Any:
    def run(self: Any, coordinates: Any, noise: FloatArray, *rest: Any) -> None:
        draw, noise = tape.claim(noise), np.asarray(noise)
        if draw is None:
            return original(self, coordinates, noise, *rest)
        for k in range(coordinates.size):
            chosen, z = coordinates[k : k + 1], noise[k : k + 1]
            probe = copy.copy(self)
            probe.scaled, probe.step = _free(self.scaled, rows=1), np.ones_like(self.step)
            statistic = _moved(probe, chosen, lambda p: original(p, chosen, np.zeros_like(z), *rest))
            _step(
                tape,
                draw,
                statistic.reshape(z.shape) / self.clip[chosen[0]],
                z,
                self.grid_step,
                lambda n: original(self, chosen, n, *rest),
                self,
                ("w", "total"),
            )
        return None

    return run


def _moved(probe: Any, chosen: Any, step: Callable[[Any], None]) -> FloatArray:
    """Minus the weights of some coordinates after a step from 0 that leaves the margins where they are."""
    probe.margins, probe.total, probe.since = probe.margins.copy(), probe.total.copy(), probe.since.copy()
    probe.w = probe.w.copy()
    probe.w[..., chosen] = 0.0
    step(probe)
    return np.asarray(-probe.w[..., chosen].T)


def _set_steps(original: Any, tape: Tape) -> Any:
    def run_sets(self: Any, sets: Any, noise: FloatArray, limit: FloatArray, *rest: Any) -> None:
        single = sets.starts.size - 1 == sets.members.size
        draw = None if single else tape.claim(noise)  # sets of one coordinate are run as such, and intercepted there
        if draw is None:
            return original(self, sets, noise, limit, *rest)
        noise = np.asarray(noise)
        for k in range(sets.starts.size - 1):
            part = slice(int(sets.starts[k]), int(sets.starts[k + 1]))
            own = sets._replace(starts=np.array([0, part.stop - part.start]), members=sets.members[part])
            probe = copy.copy(self)
            probe.scaled, probe.step = _free(self.scaled, rows=1), np.ones_like(self.step)
            zero, limits = np.zeros_like(noise[part]), limit[part]

            def run(state: Any, z: FloatArray) -> None:
                original(state, own, z, limits, *rest)

            statistic = _moved(probe, own.members, lambda p: run(p, zero))
            _step(
                tape,
                draw,
                statistic / limits,
                noise[part],
                self.grid_step,
                lambda n: run(self, n),
                self,
                ("w", "total"),
            )
        return None

    return run_sets


Measure = tuple[Callable[[], FloatArray], float, bool]  # the statistic once the probe has moved, grid, whether it moves


def _batches(prepare: Callable[[Any, Any], Measure], names: tuple[str, ...]) -> Callable[[Any, Tape], Any]:
    """Intercept a loop over batches of rows; `prepare` makes a probe of it whose step shows the statistic."""

    def patched(original: Any, tape: Tape) -> Any:
        def run(self: Any, indptr: Any, indices: Any, noise: FloatArray, *rest: Any) -> None:
            draw, noise = tape.claim(noise), np.asarray(noise)
            if draw is None:
                return original(self, indptr, indices, noise, *rest)
            total = np.zeros_like(self.total)
            for t in range(indptr.size - 1):
                batch, z, probe = indptr[t : t + 2].copy(), noise[t : t + 1], copy.copy(self)
                statistic, grid_step, moves = prepare(self, probe)
                original(probe, batch, indices, np.zeros_like(z), *rest)

                def step(n: FloatArray) -> None:
                    original(self, batch, indices, n[None], *rest)

                _step(tape, draw, statistic(), z[0], grid_step, step, self, names, moves)
                total += self.w
            self.total[...] = total
            return None

        return run

    return patched


def _batch(state: Any, probe: Any) -> Measure:
    probe.scaled, probe.length, probe.batch = _free(state.scaled), 1.0, 1.0
    probe.w, probe.total = state.w.copy(), np.zeros_like(state.total)
    return lambda: state.w - probe.w, state.grid_step, True


def _difference(state: Any, probe: Any) -> Measure:
    """Differences of gradients at the weights and at the anchor, clipped to what their distance allows."""
    distance = float(np.linalg.norm(state.w - state.anchor))
    limit = min(state.difference_clip * distance, 2.0 * state.clip) if distance > 0.0 else 0.0
    probe.scaled, probe.length = _free(state.scaled), 1.0
    probe.settings, probe.gradient = replace(state.settings, batch=1), np.zeros_like(state.gradient)
    probe.w, probe.total = state.w.copy(), np.zeros_like(state.total)
    return lambda: (state.w - probe.w) / (limit or 1.0), state.batch_grid.step, limit > 0.0


def _dual(state: Any, probe: Any) -> Measure:
    for name in ("alpha", "centre", "w", "total"):
        setattr(probe, name, getattr(state, name).copy())
    probe.v = np.zeros_like(state.v)
    return lambda: probe.v, state.grid.step, True
