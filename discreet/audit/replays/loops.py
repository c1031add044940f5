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
from typing import Any

import numpy as np

from discreet._common.types import FloatArray
from discreet.audit.replays.doors import Patch
from discreet.audit.replays.laws import Law
from discreet.audit.replays.tape import NoiseDraw, Tape
from discreet.problem.coordinate_state import CoordinateState
from discreet.problem.penalties import Zero
from discreet.problem.problem import Problem
from discreet.solvers import dual_coordinate_descent
from discreet.solvers._shared.batch_steps import BatchSteps
from discreet.solvers.sketched.block_state import BlockState
from discreet.solvers.svrg.steps import MemorySteps

Step = Callable[[FloatArray], None]  # makes the step with this noise


def loop_patches() -> list[Patch]:
    """The methods that run such loops."""
    return [
        (CoordinateState, "run", _coordinate_steps),
        (BlockState, "run_sets", _set_steps),
        (BatchSteps, "run", _batch_steps),
        (MemorySteps, "_with_kernel", _difference_steps),
        (MemorySteps, "_with_matrix_products", _difference_steps),
        (dual_coordinate_descent._Ascent, "_steps", _dual_steps),
    ]


def _free(scaled: Any, **changes: Any) -> Any:
    """The scaled problem without penalty and constraint."""
    problem = Problem(scaled.problem.loss, Zero(), fit_intercept=scaled.problem.fit_intercept)
    return replace(scaled, problem=problem, penalty_terms=Zero().penalty_terms(scaled.columns), **changes)


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
        draw = tape.claim(noise)
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


def _one(indptr: Any, t: int) -> Any:
    return np.array([indptr[t], indptr[t + 1]])


def _batch_steps(original: Any, tape: Tape) -> Any:
    def run(self: Any, indptr: Any, indices: Any, noise: FloatArray, *rest: Any) -> None:
        draw = tape.claim(noise)
        if draw is None:
            return original(self, indptr, indices, noise, *rest)
        total = np.zeros_like(self.total)
        for t in range(indptr.size - 1):
            batch, z = _one(indptr, t), noise[t : t + 1]
            probe = copy.copy(self)
            probe.scaled, probe.length, probe.batch = _free(self.scaled), 1.0, 1.0
            probe.w, probe.total = self.w.copy(), np.zeros_like(self.total)
            original(probe, batch, indices, np.zeros_like(z), *rest)
            before = self.w.copy()
            _step(
                tape,
                draw,
                before - probe.w,
                z[0],
                self.grid_step,
                lambda n: original(self, batch, indices, n[None], *rest),
                self,
                ("w",),
            )
            total += self.w
        self.total[...] = total
        return None

    return run


def _difference_steps(original: Any, tape: Tape) -> Any:
    def run(self: Any, indptr: Any, indices: Any, noise: FloatArray) -> None:
        draw = tape.claim(noise)
        if draw is None:
            return original(self, indptr, indices, noise)
        total = np.zeros_like(self.total)
        for t in range(indptr.size - 1):
            batch, z = _one(indptr, t), noise[t : t + 1]
            distance = float(np.linalg.norm(self.w - self.anchor))
            limit = min(self.difference_clip * distance, 2.0 * self.clip) if distance > 0.0 else 0.0
            probe = copy.copy(self)
            probe.scaled, probe.length = _free(self.scaled), 1.0
            probe.settings = replace(self.settings, batch=1)
            probe.gradient = np.zeros_like(self.gradient)
            probe.w, probe.total = self.w.copy(), np.zeros_like(self.total)
            original(probe, batch, indices, np.zeros_like(z))
            statistic = self.w - probe.w
            _step(
                tape,
                draw,
                statistic / (limit or 1.0),
                z[0],
                self.batch_grid.step,
                lambda n: original(self, batch, indices, n[None]),
                self,
                ("w",),
                limit > 0.0,
            )
            total += self.w
        self.total[...] = total
        return None

    return run


def _dual_steps(original: Any, tape: Tape) -> Any:
    def run(self: Any, indptr: Any, indices: Any, noise: FloatArray) -> None:
        draw = tape.claim(noise)
        if draw is None:
            return original(self, indptr, indices, noise)
        total = np.zeros_like(self.total)
        for t in range(indptr.size - 1):
            batch, z = _one(indptr, t), noise[t : t + 1]
            probe = copy.copy(self)
            for name in ("alpha", "centre", "w", "total"):
                setattr(probe, name, getattr(self, name).copy())
            probe.v = np.zeros_like(self.v)
            original(probe, batch, indices, np.zeros_like(z))
            _step(
                tape,
                draw,
                probe.v,
                z[0],
                self.grid.step,
                lambda n: original(self, batch, indices, n[None]),
                self,
                ("v", "w", "centre"),
            )
            total += self.w
        self.total[...] = total
        return None

    return run
