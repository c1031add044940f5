"""Checks that anybody can run on a loss, a penalty, a constraint or a solver of their own: docs/testing.md."""

from discreet._common.lazy import lazy_names

__all__ = [
    "AuditCase",
    "LawBrokenError",
    "LawResult",
    "check_constraint",
    "check_loss",
    "check_penalty",
    "check_solver",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "AuditCase": "audits",
        "LawBrokenError": "laws",
        "LawResult": "laws",
        "check_constraint": "constraints",
        "check_loss": "losses",
        "check_penalty": "penalties",
        "check_solver": "solvers",
    },
)
