"""The two accountants, ours and that of dp-accounting, and how long they take."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from accounting.cases import Case
from discreet.privacy.accounting import (
    certificates,
    epsilon_of,
    fixed_size_event,
    laplace_event,
    mixture_event,
    objective_event,
    pure_event,
    randomised_response_event,
    selection_event,
)


def ours(case: Case, delta: float) -> float:
    certificates.certify_composition.cache_clear()
    return epsilon_of(case.event, delta, case.relation)


def their_accountant(case: Case, kind: str) -> Callable[[float], float] | None:
    """Their epsilon as a function of delta, or None where they have no way to count the composition."""
    import dp_accounting as dp
    from dp_accounting.pld import PLDAccountant
    from dp_accounting.rdp import RdpAccountant

    if case.theirs is None or (kind == "RDP" and not case.rdp):
        return None
    neighbours = getattr(dp.NeighboringRelation, case.their_relation)
    try:
        accountant = PLDAccountant(neighbours) if kind == "PLD" else RdpAccountant(neighboring_relation=neighbours)
        for event, count in case.theirs:
            accountant.compose(event, count)
    except (dp.UnsupportedEventError, NotImplementedError):
        return None
    return lambda delta: float(accountant.get_epsilon(delta))


def timed(call: Callable[..., Any], *arguments: Any) -> tuple[Any, float]:
    """A result and the processor time that it took."""
    start = time.process_time()
    result = call(*arguments)
    return result, time.process_time() - start


def theirs(case: Case, kind: str, delta: float) -> float | None:
    counted = their_accountant(case, kind)
    return None if counted is None else counted(delta)


def refused_events() -> list[str]:
    """Events of ours that their PLD accountant refuses."""
    import dp_accounting as dp
    from dp_accounting.pld import PLDAccountant

    events = {
        "selection of bounded range": (selection_event(0.5), "ADD_OR_REMOVE_ONE"),
        "any epsilon-DP release": (pure_event(0.5), "ADD_OR_REMOVE_ONE"),
        "objective perturbation": (objective_event(0.1, 5.0), "ADD_OR_REMOVE_ONE"),
        "batch of fixed size": (fixed_size_event(100, 5, 1.0), "REPLACE_ONE"),
        "Laplace noise": (laplace_event(5.0), "REPLACE_ONE"),
        "randomised response": (randomised_response_event(0.5), "REPLACE_ONE"),
        "mixture of Gaussians": (mixture_event(1.0, [0.0, 1.0], [0.9, 0.1]), "ADD_OR_REMOVE_ONE"),
    }
    return [
        f"{name} ({relation})"
        for name, (event, relation) in events.items()
        if not PLDAccountant(getattr(dp.NeighboringRelation, relation)).supports(event)
    ]
