"""Where rows come from: the gate for raw input, files, schemas, and the public facts that plans are made from."""

from discreet._common.lazy import lazy_names

__all__, __getattr__, __dir__ = lazy_names(__name__, __file__)
