"""scikit-learn estimators: thin, they turn parameters into a problem, a budget and a solver."""

from discreet._common.lazy import lazy_names

__all__, __getattr__, __dir__ = lazy_names(__name__, __file__)
