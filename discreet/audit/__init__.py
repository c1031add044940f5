"""Audits: what an attacker could show about a release, against what was promised: docs/audits.md."""

from discreet._common.lazy import lazy_names

__all__ = [
    "AuditCase",
    "Replay",
    "epsilon_lower_bound",
    "mu_lower_bound",
    "replay",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "AuditCase": "worst_case",
        "Replay": "replays",
        "replay": "replays",
        "epsilon_lower_bound": "lower_bound",
        "mu_lower_bound": "lower_bound",
    },
)
