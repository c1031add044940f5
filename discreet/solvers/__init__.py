"""The solvers. `SOLVERS` has them by name; each is imported when it is first used.

`FixedPoint` is not in that table: it is the iteration that several of them share, for operators of the user's own.
"""

from discreet._common.lazy import lazy_names

__all__, __getattr__, __dir__ = lazy_names(__name__, __file__)
