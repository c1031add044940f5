"""Bounds of the literature as functions of public numbers, with their assumptions checked.

Every function returns a `Bound`, which says what it is about and whether its constants are proved.
"""

from discreet._common.lazy import lazy_names

__all__, __getattr__, __dir__ = lazy_names(__name__, __file__)
