"""Private preprocessing: ranges, scales, quantiles, means, categories, gaps and smoothness constants, with their cost.

The transformers fit into a scikit-learn pipeline; each has a `guarantee_` after fit, and `pipeline_guarantee` composes
those of all steps, or says which step allows no statement. How to use them: docs/preprocessing.md; proofs:
docs/guarantees/preprocessing.md.
"""

from discreet._common.lazy import lazy_names

__all__, __getattr__, __dir__ = lazy_names(__name__, __file__)
