"""Whose turn it is to send what, how often, and which share of its holder's budget each message has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from discreet.privacy.budget import Budget
from discreet.problem.losses import Squared
from discreet.problem.problem import Problem

Kind = Literal["scales", "moments", "weights", "slopes", "margins"]

# How the budget beside the scales is divided, flat around these values: docs/vertical.md.
MOMENTS_SHARE, WEIGHTS_SHARE = 0.1, 0.3
OWN_STEPS = 4  # of the label holder on its own block before the first exchange, where its loss is not quadratic
NOISY_SWEEPS, MOST_SWEEPS = 0.02, 4  # sweeps are added while their noise explains less than this part of the target
SLOPE_CLIP = 2.0  # in standard deviations of the target, for losses with unbounded slopes


@dataclass(frozen=True)
class Turn:
    """One message of the schedule: who sends what, in which sweep (0: before the first exchange)."""

    holder: str
    kind: Kind
    sweep: int


def schedule_of(others: list[str], labels: str, sweeps: int, steps: int) -> list[Turn]:
    """All turns of a run, in their order."""
    turns = [Turn(name, kind, 0) for kind in ("scales", "moments") for name in [*others, labels]]
    turns += [Turn(labels, "weights", 0)] * steps
    for sweep in range(1, sweeps + 1):
        turns.append(Turn(labels, "slopes", sweep))
        turns += [Turn(name, kind, sweep) for name in others for kind in ("weights", "margins")]
        turns.append(Turn(labels, "weights", sweep))
    return turns


def shares_of(has_labels: bool, sweeps: int, steps: int) -> tuple[float, ...]:
    """The shares of a holder's messages after its scales, in their order."""
    per_person = (1.0 - MOMENTS_SHARE - WEIGHTS_SHARE) / sweeps
    if not has_labels:
        return (MOMENTS_SHARE, *(WEIGHTS_SHARE / sweeps, per_person) * sweeps)
    weights = WEIGHTS_SHARE / (steps + sweeps)
    return (MOMENTS_SHARE, *(weights,) * steps, *(per_person, weights) * sweeps)


def default_sweeps(budgets: Sequence[Budget], columns: int, rows: int) -> int:
    """As many sweeps as keep the noise that each adds to the predictions small; from public facts."""
    mu = min(budget.gaussian_mu() for budget in budgets)
    noise = columns * (2.0 * SLOPE_CLIP / mu) ** 2 / rows  # of one sweep, over the variance of the target
    return int(min(max(NOISY_SWEEPS / max(noise, 1e-9), 1.0), MOST_SWEEPS))


def own_steps(problem: Problem) -> int:
    """How many steps the label holder makes on its block alone: one is exact for the squared loss."""
    return 1 if has_linear_slopes(problem) else OWN_STEPS


def has_linear_slopes(problem: Problem) -> bool:
    """Whether slopes are linear in the margins, so that noise in the margins leaves no bias."""
    return isinstance(problem.loss, Squared)
