"""What the library does by itself: solver="auto" with nothing tuned and nothing declared."""

from __future__ import annotations

from framework import Method
from framework.private_runs import numbers_of

from discreet import solve


def run(problem, setting, seed):
    budget = problem.budget(setting.get("epsilon"))
    make = lambda: solve(problem.problem, problem.X, problem.y, "auto", budget, random_state=seed)  # noqa: E731
    return numbers_of(problem, make)


auto = Method(
    "auto",
    "this library, nothing tuned and nothing declared",
    run,
    experiments=("table2", "greedy", "perturbation"),
    style={"color": "black", "marker": "", "ls": "--", "label": "auto, untuned"},
)
