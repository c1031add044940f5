"""The errors and warnings of discreet; every message names the argument and says what to do."""

from __future__ import annotations


class DiscreetWarning(UserWarning):
    """Base of every warning that discreet raises."""


class PrivacyLeakWarning(DiscreetWarning):
    """Something was read from the rows without noise, outside the stated guarantee."""


class InsecureRandomnessWarning(DiscreetWarning):
    """The noise comes from a seed: whoever knows the seed can remove it."""


class NotPrivateWarning(DiscreetWarning):
    """There is no privacy guarantee (epsilon is infinite), or one that protects little: epsilon > 10 or delta > 1/n."""


class UtilityWarning(DiscreetWarning):
    """The guarantee holds, but the result is likely to be poor; the message says what would help."""


class BudgetExceededError(RuntimeError):
    """The ledger refused a reservation: the data set's budget does not cover it."""


class IncompatibleSolverError(ValueError):
    """The solver cannot solve this problem; the message names what is missing and who could."""
