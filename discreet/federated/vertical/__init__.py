"""Holders with different columns of the same people: each sends noisy margins or slopes, never its columns.

Theorem and proof: docs/guarantees/vertical.md.
"""

from discreet.federated.vertical.board import Board, Message
from discreet.federated.vertical.holder import Holder
from discreet.federated.vertical.plan import HolderFacts, VerticalSchedule, plan_vertical
from discreet.federated.vertical.run import VerticalModel, run_vertical

__all__ = [
    "Board",
    "Holder",
    "HolderFacts",
    "Message",
    "VerticalModel",
    "VerticalSchedule",
    "plan_vertical",
    "run_vertical",
]
