"""What a run costs in privacy, and how much noise a budget needs.

Events are those of dp_accounting, built by the constructors here; every question about them is answered by
the least of several proved upper bounds. The theorems are in docs/guarantees/accounting.md.
"""

from discreet._common.lazy import lazy_names

__all__, __getattr__, __dir__ = lazy_names(__name__, __file__)
