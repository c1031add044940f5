"""Training on a graph without a server, and what each node learns about each other one.

Proofs: docs/guarantees/decentralised.md. How to use it: docs/decentralised.md.
"""

from discreet._common.lazy import lazy_names

__all__, __getattr__, __dir__ = lazy_names(__name__, __file__)
