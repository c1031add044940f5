"""Holders with different columns of the same people: each sends noisy margins or slopes, never its columns.

Theorem and proof: docs/guarantees/vertical.md.
"""

from discreet._common.lazy import lazy_names

__all__, __getattr__, __dir__ = lazy_names(__name__, __file__)
