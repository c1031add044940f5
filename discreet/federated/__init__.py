"""Models trained over many data holders: with a server, on a graph without one, or with the columns split."""

from discreet._common.lazy import lazy_names

__all__, __getattr__, __dir__ = lazy_names(__name__, __file__)
