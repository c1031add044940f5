"""The exponential mechanism: one exact draw from the density exp(-rate * sum of losses) on a bounded set."""

from discreet.solvers.exponential.solver import ExponentialMechanism

__all__ = ["ExponentialMechanism"]
