"""The audit of a solver in two arms: the claimed epsilon is accepted, half of the noise is rejected."""

from __future__ import annotations

from typing import TYPE_CHECKING

from discreet.audit.lower_bound import CONFIDENCE
from discreet.audit.worst_case import AuditCase
from discreet.testing.laws import broken, skipped

if TYPE_CHECKING:
    from discreet.testing.solvers import SolverCase

__all__ = ["AuditCase", "audit_finds_no_more_than_epsilon"]


def audit_finds_no_more_than_epsilon(case: SolverCase) -> None:
    """On neighbouring tables many runs show no larger epsilon than claimed; with half the noise they do."""
    if not case.audits:
        skipped("no audit was asked for: pass audits=[AuditCase.flipped_row(solver, problem)] with fitting settings")
    for audit in case.audits:
        promised = audit.plan.guarantee.epsilon
        found = audit.lower_bound()
        if found > promised:
            broken(
                f"under the relation {audit.relation} an attacker shows epsilon >= {found:.3f} instead of {promised} "
                f"(false alarms below {1.0 - CONFIDENCE:.0e}): too little noise, or too small a sensitivity"
            )
        weaker = audit.lower_bound(noise=0.5)
        if not weaker > promised:
            broken(
                f"under the relation {audit.relation} half of the noise shows epsilon >= {weaker:.3f} only, so the "
                "audit is too weak: pass settings and tables with which one row has its full effect"
            )
