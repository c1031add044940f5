"""DP-FTRL: follow the regularised leader of noisy running sums of gradients; every pass reads each row once."""

from discreet.solvers.ftrl.solver import FTRL

__all__ = ["FTRL"]
