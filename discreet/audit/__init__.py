"""Audits: what an attacker could show about a release, against what was promised: docs/audits.md."""

from discreet._common.lazy import lazy_names

__all__, __getattr__, __dir__ = lazy_names(__name__, __file__)
