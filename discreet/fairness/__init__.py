"""How much the noise of a private model can change its fairness and its accuracy, group by group; fairer models.

How to use it: docs/fairness.md, and before there are rows docs/choose_epsilon.md; fairer models: docs/fair_models.md.
Proofs: docs/guarantees/fairness.md, private-evaluation.md, harm.md and fair-models.md.
"""

from discreet._common.lazy import lazy_names

__all__, __getattr__, __dir__ = lazy_names(__name__, __file__)
