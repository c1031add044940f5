"""Noisy fixed-point iterations, the general method behind `gd`, `cd` and `admm`: docs/guarantees/fixed-point.md."""

from discreet._common.lazy import lazy_names

__all__, __getattr__, __dir__ = lazy_names(__name__, __file__)
