"""Audits: what an attacker could show about a release from many runs, against what was promised."""

from discreet.audit.lower_bound import epsilon_lower_bound

__all__ = ["epsilon_lower_bound"]
