"""Audits: what an attacker could show about a release, against what was promised: docs/audits.md."""

from discreet._common.lazy import lazy_names

__all__ = [
    "AttackCurve",
    "AuditCase",
    "LowBits",
    "OneRun",
    "Reconstruction",
    "Replay",
    "Target",
    "epsilon_lower_bound",
    "find_low_bits",
    "hostile_neighbours",
    "membership_attack",
    "mu_lower_bound",
    "one_run_audit",
    "one_run_lower_bound",
    "reconstruction_attack",
    "replay",
    "solver_case",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "AttackCurve": "membership",
        "AuditCase": "worst_case",
        "LowBits": "low_bits",
        "OneRun": "one_run",
        "Reconstruction": "reconstruction",
        "Replay": "replays",
        "Target": "targets",
        "epsilon_lower_bound": "lower_bound",
        "find_low_bits": "low_bits",
        "hostile_neighbours": "neighbours",
        "membership_attack": "membership",
        "mu_lower_bound": "lower_bound",
        "one_run_audit": "one_run",
        "one_run_lower_bound": "one_run",
        "reconstruction_attack": "reconstruction",
        "replay": "replays",
        "solver_case": "solver_cases",
    },
)
