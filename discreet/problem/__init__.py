"""What is minimised: a loss, a penalty, a set, and the optimum without privacy."""

from discreet._common.lazy import lazy_names

__all__, __getattr__, __dir__ = lazy_names(__name__, __file__)
