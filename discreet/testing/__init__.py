"""Checks that anybody can run on a loss, a penalty, a constraint or a solver of their own: docs/testing.md."""

from discreet._common.lazy import lazy_names

__all__, __getattr__, __dir__ = lazy_names(__name__, __file__)
