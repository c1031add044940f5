"""Training on a graph without a server, and what each node learns about each other one.

Proofs: docs/guarantees/decentralised.md. How to use it: docs/decentralised.md.
"""
