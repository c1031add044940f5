"""What a release must keep: a budget in one of four definitions of differential privacy."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

from discreet._common.checks import real_number
from discreet._common.codec import Unbounded, built, written
from discreet.privacy import accounting

BudgetKind = Literal["approximate", "pure", "zcdp", "gdp"]


@dataclass(frozen=True)
class Budget:
    """How much privacy loss is allowed.

    `Budget(epsilon=1.0, delta=1e-6)` is approximate differential privacy, `Budget.pure(1.0)` has no delta,
    `Budget.zcdp(rho)` is zero-concentrated and `Budget.gdp(mu)` Gaussian differential privacy. An infinite
    epsilon, rho or mu is allowed and means no noise and no privacy.

    Parameters
    ----------
    epsilon, delta : float, optional
        The approximate or (with delta = 0) pure budget; None for the other kinds.
    rho : float, optional
        The zCDP budget.
    mu : float, optional
        The Gaussian DP budget.

    Examples
    --------
    >>> from discreet import Budget
    >>> Budget(epsilon=1.0, delta=1e-6).kind
    'approximate'
    >>> print(Budget.zcdp(0.1))
    (rho = 0.1, zCDP)
    """

    epsilon: Unbounded | None = None
    delta: float | None = None
    rho: Unbounded | None = None
    mu: Unbounded | None = None

    def __post_init__(self) -> None:
        given = [name for name in ("epsilon", "rho", "mu") if getattr(self, name) is not None]
        if len(given) != 1:
            raise ValueError(f"a budget needs exactly one of epsilon, rho and mu; got {given or 'none of them'}")
        if self.epsilon is None and self.delta is not None:
            raise ValueError(f"delta goes with epsilon only; leave it out of a budget in {given[0]}")
        if self.epsilon is not None and self.delta is None:
            raise ValueError("delta is missing; give a delta such as 1e-6, or use Budget.pure(epsilon)")
        object.__setattr__(self, given[0], _positive(given[0], getattr(self, given[0])))
        if self.delta is not None:
            object.__setattr__(self, "delta", _probability("delta", self.delta))

    @classmethod
    def pure(cls, epsilon: float) -> Budget:
        """Return a budget of pure epsilon-DP, without a delta."""
        return cls(epsilon=epsilon, delta=0.0)

    @classmethod
    def zcdp(cls, rho: float) -> Budget:
        """Return a budget of rho-zCDP (zero-concentrated differential privacy)."""
        return cls(rho=rho)

    @classmethod
    def gdp(cls, mu: float) -> Budget:
        """Return a budget of mu-GDP (Gaussian differential privacy)."""
        return cls(mu=mu)

    @property
    def kind(self) -> BudgetKind:
        """The definition: "approximate", "pure", "zcdp" or "gdp"."""
        if self.rho is not None:
            return "zcdp"
        if self.mu is not None:
            return "gdp"
        return "approximate" if self.delta else "pure"

    @property
    def amount(self) -> float:
        """The epsilon, rho or mu, whichever the budget is written in."""
        return next(value for value in (self.epsilon, self.rho, self.mu) if value is not None)

    @property
    def is_infinite(self) -> bool:
        """Whether the budget allows anything, so that no noise is needed."""
        return self.amount == math.inf

    def gaussian_mu(self) -> float:
        """Return the largest mu such that a mu-GDP release stays within the budget, rounded down.

        Guarantee: Gaussian releases whose squared sensitivity-to-noise ratios sum to mu^2 fit the budget.

        Raises
        ------
        ValueError
            For a pure budget, which no amount of Gaussian noise meets.
        """
        if self.is_infinite:
            return math.inf
        if self.mu is not None:
            return self.mu
        if self.rho is not None:
            mu = math.sqrt(2.0 * self.rho)
            return mu if 0.5 * mu * mu <= self.rho else math.nextafter(mu, 0.0)
        if not self.delta or self.epsilon is None:
            raise ValueError("Gaussian noise never gives pure DP; use Laplace noise or a budget with delta > 0")
        return accounting.gaussian_mu(self.epsilon, self.delta)

    def part(self, share: float) -> Budget:
        """Return a share of the budget, between 0 and 1, in the unit in which Gaussian plans add up.

        That is mu^2 for budgets in (epsilon, delta) and in GDP, rho for zCDP and epsilon for pure budgets. Parts of an
        (epsilon, delta) budget whose shares add up to 1 need not fit it together, where the plans made for them are not
        Gaussian: ask the accountant.
        """
        if self.is_infinite:
            return self
        if self.kind == "pure":
            return Budget.pure(self.amount * share)
        if self.kind == "zcdp":
            return Budget.zcdp(self.amount * share)
        mu = self.gaussian_mu() * math.sqrt(share)
        if self.kind == "gdp":
            return Budget.gdp(mu)
        assert self.delta is not None
        # Stated as (epsilon, delta) rather than mu, so that sampled plans keep their amplification; a delta so
        # large that no epsilon is needed cannot be stated that way.
        epsilon = accounting.gaussian_epsilon(self.delta, mu)
        return Budget(epsilon, self.delta) if epsilon > 0.0 else Budget.gdp(mu)

    def to_dict(self) -> dict[str, float | str]:
        """Return the budget as a JSON-safe dictionary; an infinite amount is written as "inf"."""
        return {name: value for name, value in written(self).items() if value is not None}

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> Budget:
        """Return the budget that `to_dict` wrote."""
        return built(cls, fields, "a budget")

    def __str__(self) -> str:
        if self.rho is not None:
            return f"(rho = {self.rho:g}, zCDP)"
        if self.mu is not None:
            return f"(mu = {self.mu:g}, Gaussian DP)"
        return f"(epsilon = {self.epsilon:g}, delta = {self.delta:g})"


def _positive(name: str, value: Any) -> float:
    number = real_number(name, value)
    if not number > 0.0:
        raise ValueError(f"{name} must be positive, got {value!r}; use a larger {name}, or inf for no privacy")
    return number


def _probability(name: str, value: Any) -> float:
    number = real_number(name, value)
    if not 0.0 <= number < 1.0:
        raise ValueError(f"{name} must be at least 0 and below 1, got {value!r}; a usual choice is 1 / n^2")
    return number


def budget_from(epsilon: Any, delta: float | None, rows: int) -> Budget:
    """Return a Budget made of plain numbers; delta=None stands for 1/rows^2, delta=0 for pure epsilon-DP."""
    if isinstance(epsilon, Budget):
        return epsilon
    if delta is None:
        delta = 1.0 / max(rows, 2) ** 2
    if delta == 0 and epsilon != math.inf:
        return Budget.pure(epsilon)
    return Budget(epsilon, delta)
