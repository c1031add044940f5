"""Every solver under every relation, on its worst case, as it is and with less noise."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.audit.replays.replay import replay
from discreet.audit.solver_cases import RUNS, SOLVER_CASES, solver_case
from discreet.audit.worst_case import bounds_of
from discreet.privacy import accounting
from discreet.privacy.relation import Relation
from discreet.solvers import Plan

WEAKER = (0.5, 0.25, 0.1)  # noise multiplied by these must be found; the first where the tables attain the bound


@dataclass(frozen=True)
class SolverAudit:
    """One solver under one relation.

    Attributes
    ----------
    name, relation : str
    refused : str or None
        Why the solver does not take the relation.
    promised : float
        The epsilon of the plan, at its delta.
    attained : float or None
        The epsilon that the distances of a replay attain.
    epsilon, mu : float
        Lower bounds from many runs; mu is None where the promise is not one of Gaussian DP.
    promised_mu : float or None
    fault : float or None
        The weakest of the planted faults (noise multiplied by a factor) that the runs reveal.
    problems : tuple of str
        What contradicts the promise.
    """

    name: str
    relation: str
    refused: str | None = None
    promised: float = np.nan
    attained: float | None = None
    epsilon: float = np.nan
    mu: float | None = None
    promised_mu: float | None = None
    fault: float | None = None
    problems: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether the promise is kept and the audit could have seen a fault."""
        return self.refused is not None or (not self.problems and self.fault is not None)


def audit_solver(name: str, relation: Relation, runs: int = RUNS) -> SolverAudit:
    """Replay a solver on its worst case, run it many times, and run it with weaker noise, which must be found."""
    try:
        case = solver_case(name, relation, runs)
    except ValueError as refusal:
        return SolverAudit(name, str(relation), refused=str(refusal))
    guarantee = case.plan.guarantee
    found = replay(case, case.first, case.second)
    bounds = bounds_of(*case.samples(), guarantee.delta)
    mu = _promised_mu(case.plan)
    problems = list(found.problems)
    if bounds.epsilon > guarantee.epsilon:
        problems.append(f"runs show epsilon {bounds.epsilon:.3f}")
    if mu is not None and bounds.mu > mu:
        problems.append(f"runs show mu {bounds.mu:.3f}")
    return SolverAudit(
        name,
        str(relation),
        promised=guarantee.epsilon,
        attained=found.attained,
        epsilon=bounds.epsilon,
        mu=None if mu is None else bounds.mu,
        promised_mu=mu,
        fault=next((factor for factor in WEAKER if case.lower_bound(factor) > guarantee.epsilon), None),
        problems=tuple(problems),
    )


def audit_solvers(runs: int = RUNS) -> Iterator[SolverAudit]:
    """Every case of every solver under every relation."""
    for name in SOLVER_CASES:
        for relation in Relation:
            yield audit_solver(name, relation, runs)


def _promised_mu(plan: Plan[Any, Any]) -> float | None:
    try:
        return float(accounting.mu_of(plan.event, plan.public.relation))
    except ValueError:  # not a promise of Gaussian DP
        return None
