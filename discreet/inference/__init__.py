"""Standard errors, intervals and tests for coefficients, from what a private fit has released: docs/inference.md."""

from discreet._common.lazy import lazy_names

__all__, __getattr__, __dir__ = lazy_names(__name__, __file__)
