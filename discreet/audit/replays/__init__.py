"""Replays: a run on one table, forced to tell the same on its neighbour, with every statistic compared."""

from discreet.audit.replays.replay import Replay, record, replay

__all__ = ["Replay", "record", "replay"]
