"""Private evaluation: how good a model is on private rows, with confidence intervals, paid from a budget.

How to use it: docs/evaluation.md; proofs: docs/guarantees/evaluation.md.
"""

from discreet._common.lazy import lazy_names

__all__, __getattr__, __dir__ = lazy_names(__name__, __file__)
