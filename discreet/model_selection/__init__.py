"""Choosing among models privately, and what the models of a cross-validation cost together.

How to use it: docs/model_selection.md; proofs: docs/guarantees/model-selection.md and private-search.md.
"""

from discreet._common.lazy import lazy_names

__all__, __getattr__, __dir__ = lazy_names(__name__, __file__)
