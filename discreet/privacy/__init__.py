"""Everything that makes a release private: relations, budgets, mechanisms, accounting, randomness, the ledger.

The names listed here tell what a promise means and how promises compare (docs/meaning.md); what estimators need is
imported from the modules of this package.
"""

from discreet._common.lazy import lazy_names

__all__, __getattr__, __dir__ = lazy_names(__name__, __file__)
