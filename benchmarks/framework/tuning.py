"""Tuning of step and clip on the objective itself, as the papers do it. Not private, and alike for all methods.

The papers run every setting of their grid five times, 5,000 runs for each number of passes. Here a coarse grid (every
second step, every `every`-th clip) is tried once; then the neighbourhood of the best of it; then the best of all that
were tried get five runs. That takes a twentieth of the runs or less. The winner then runs again with fresh noise, so
that luck in tuning is not reported; the papers report the tuning runs themselves.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from framework.cells import Numbers
from framework.kinds import Method

TUNING_RUNS = 5
WINNERS, DEAR_WINNERS = 5, 3  # settings of the coarse grid whose neighbourhood is searched; fewer where runs are dear
FINALISTS, DEAR_FINALISTS = 10, 5  # settings that get all tuning runs
FRESH = 1_000  # seeds of the final runs start here
WORST = 1e6  # of an error; a run that left the numbers has this one


@dataclass
class Search:
    """What has been tried: the errors of the runs of each setting, by its place on the grid."""

    run: Callable[[Mapping[str, Any], int], float]
    steps: Sequence[float]
    clips: Sequence[float]
    errors: dict[tuple[int, int], list[float]]

    def try_at(self, place: tuple[int, int], runs: int) -> None:
        found = self.errors.setdefault(place, [])
        setting = {"step": float(self.steps[place[0]]), "clip": float(self.clips[place[1]])}
        for seed in range(len(found), runs):
            found.append(self.run(setting, seed))
            if found[-1] >= WORST:  # no mean of five runs can win with it
                break

    def best(self, count: int, runs: int = 0) -> list[tuple[int, int]]:
        """The places of the least mean errors, among those with enough runs."""
        able = [place for place, found in self.errors.items() if len(found) >= runs]
        return sorted(able, key=lambda place: (float(np.mean(self.errors[place])), place))[:count]


def tune(
    run: Callable[[Mapping[str, Any], int], float],
    steps: Sequence[float],
    clips: Sequence[float],
    every: int,
    dear: bool = False,
) -> tuple[dict[str, float], Numbers]:
    """The best setting, and what the search was: its mean error while tuning, settings tried, size of the grid."""
    search = Search(run, steps, clips, {})
    for i in range(len(steps) % 2, len(steps), 2) if len(steps) > 1 else (0,):
        for j in range(every // 2, len(clips), every):
            search.try_at((i, j), 1)
    fine = max(1, every // 2 if dear else every // 4)
    for i, j in search.best(DEAR_WINNERS if dear else WINNERS):
        for near in range(j - every + fine, j + every, fine):
            for step in (i - 1, i, i + 1):
                if 0 <= near < len(clips) and 0 <= step < len(steps):
                    search.try_at((step, near), 1)
    for place in search.best(DEAR_FINALISTS if dear else FINALISTS):
        search.try_at(place, TUNING_RUNS)
    i, j = (search.best(1, TUNING_RUNS) or search.best(1))[0]
    about = {"tuned": float(np.mean(search.errors[i, j])), "tried": len(search.errors), "grid": len(steps) * len(clips)}
    return {"step": float(steps[i]), "clip": float(clips[j])}, about


def tuned_numbers(
    method: Method, problem: Any, setting: Mapping[str, Any], clips: Sequence[float], every: int, runs: int
) -> Numbers:
    """Tune a method at a setting (passes, ...), then run the winner afresh: errors, support, times, and the way.

    A trace costs time of its own, up to a third of a run, so that seconds are those of the same run without one.
    """

    def error(choice: Mapping[str, Any], seed: int) -> float:
        found = float(method.run(problem, {**setting, **choice}, seed)["error"])
        return found if math.isfinite(found) else WORST

    winner, about = tune(error, method.grid.get("step", (1.0,)), clips, every, method.dear)
    finals = []
    for seed in range(FRESH, FRESH + runs):
        traced, plain = (method.run(problem, {**setting, **winner, "traced": one}, seed) for one in (True, False))
        finals.append({**traced, "seconds": plain["seconds"]})
    return {**winner, **about, **fresh_numbers(finals)}


def fresh_numbers(finals: Sequence[Numbers]) -> Numbers:
    """Lists over the final runs; of the ways the least, the mean and the largest error at each report."""
    numbers: Numbers = {name: [run[name] for run in finals] for name in ("error", "seconds", "right", "wrong")}
    ways = [run["trace"] for run in finals if "trace" in run]
    if ways and len({len(way) for way in ways}) == 1:
        table = np.array(ways)
        kept = np.unique(np.linspace(0, table.shape[1] - 1, min(table.shape[1], 50)).round().astype(int))
        table = table[:, kept]
        numbers["way"] = {
            "at": ((kept + 1) / len(ways[0])).round(4).tolist(),
            **{name: [float(f"{v:.4g}") for v in getattr(table, name)(axis=0)] for name in ("min", "mean", "max")},
        }
    return numbers
