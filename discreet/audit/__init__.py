"""Audits: what an attacker could show about a release, against what was promised: docs/audits.md."""

from discreet._common.lazy import lazy_names

__all__ = [
    "AuditCase",
    "epsilon_lower_bound",
    "mu_lower_bound",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "AuditCase": "worst_case",
        "epsilon_lower_bound": "lower_bound",
        "mu_lower_bound": "lower_bound",
    },
)
