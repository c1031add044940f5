"""DP-SVRG: noisy gradients of all rows at anchors, and cheap steps around them on batches of differences."""

from discreet.solvers.svrg.solver import SVRG

__all__ = ["SVRG"]
