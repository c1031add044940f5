"""Private consensus ADMM: proximal steps of single rows and of the penalty, with noise on what the rows add up to."""

from discreet.solvers.admm.solver import ADMM

__all__ = ["ADMM"]
