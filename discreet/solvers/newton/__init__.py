"""DP-Newton: few gradient steps, preconditioned by a second-moment matrix that is released with noise."""

from discreet.solvers.newton.solver import Newton

__all__ = ["Newton"]
