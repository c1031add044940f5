"""Many runs of a solver on two neighbouring tables, and the lower bounds on epsilon that they show."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from discreet._common.types import FloatArray
from discreet.audit.faults import WeakerNoise
from discreet.audit.lower_bound import CONFIDENCE, epsilon_lower_bound, mu_lower_bound
from discreet.audit.neighbours import flipped_row
from discreet.data.public import Public
from discreet.data.rows import Data
from discreet.privacy import accounting
from discreet.privacy.budget import Budget
from discreet.privacy.relation import Relation
from discreet.problem.problem import Problem
from discreet.solvers import Plan, Solution, Solver

EPSILON, DELTA = 1.0, 0.1  # a large delta is attained by many runs, so that few are needed
BUDGET = Budget(EPSILON, DELTA)
WeakerPlan = Callable[[Plan[Any, Any], float], Plan[Any, Any]]


def first_coefficient(solution: Solution) -> float:
    """The first coefficient, or how far it is ahead of the second."""
    coef = np.ravel(solution.coef)
    return float(coef[0] - (coef[1] if coef.size > 1 else 0.0))


@dataclass(frozen=True, eq=False)
class AuditCase:
    """Two neighbouring tables on which one row moves a solver as far as its sensitivity allows.

    Parameters
    ----------
    solver : Solver
        With settings that leave the row its full effect: a fixed clipping threshold, short steps, no averaging, no
        budget for scales.
    problem : Problem
        Without intercept, so that the one coefficient tells everything.
    first, second : Data
        The neighbouring tables; entries must lie in [-1, 1], which is declared.
    relation : Relation
        The relation by which they are neighbours.
    statistic : function, optional
        What the attacker looks at: a number of a Solution. By default the first coefficient.
    runs : int
        Runs on each table.
    weaker_plan : function, optional
        weaker_plan(plan, factor) is a plan with noise multiplied by a factor, for solvers that make their noise from
        uniform numbers. By default normal, Laplace and Gumbel draws are multiplied by it.
    budget : Budget
        What the solver may spend.
    y_limit : float
        Targets of a regression are declared to lie in [-y_limit, y_limit].
    """

    solver: Solver[Any, Any]
    problem: Problem
    first: Data
    second: Data
    relation: Relation = Relation.REPLACE
    statistic: Callable[[Solution], float] = first_coefficient
    runs: int = 2_000
    weaker_plan: WeakerPlan | None = None
    budget: Budget = BUDGET
    y_limit: float = 1.0

    @cached_property
    def plan(self) -> Plan[Any, Any]:
        """The plan, whose promise the runs are compared with."""
        return self.plan_for(persons=self.first.persons is not None)

    def plan_for(self, **facts: Any) -> Plan[Any, Any]:
        """The plan for such a table of which other facts hold, as `Public.of` takes them."""
        rows, columns = self.first.units, self.first.columns
        y_bounds = None if self.problem.loss.classification else (-self.y_limit, self.y_limit)
        declared: dict[str, Any] = {"bounds": (-1.0, 1.0), "y_bounds": y_bounds, "public_n": rows}
        public = Public.of(rows, columns, relation=self.relation, **declared, **facts)
        return self.solver.plan(self.problem, public, self.budget)

    def samples(self, noise: float = 1.0, seed: int = 20) -> tuple[FloatArray, FloatArray]:
        """What the attacker sees in the runs on either table, with all noise multiplied by a factor."""
        plan = self.plan
        if self.weaker_plan is not None:
            plan, noise = self.weaker_plan(plan, noise), 1.0
        rng = WeakerNoise(seed, noise)
        first, second = (
            np.array([self.statistic(self.solver.solve(self.problem, data, plan, rng)) for _ in range(self.runs)])
            for data in (self.first, self.second)
        )
        return first, second

    def lower_bound(self, noise: float = 1.0, seed: int = 20) -> float:
        """A lower bound on epsilon, with all noise multiplied by a factor.

        Guarantee: with noise = 1 it exceeds the epsilon of a private solver with probability at most 1e-6.
        """
        return bounds_of(*self.samples(noise, seed), self.plan.guarantee.delta).epsilon

    @classmethod
    def flipped_row(
        cls,
        solver: Solver[Any, Any],
        problem: Problem,
        relation: Relation = Relation.REPLACE,
        *,
        row: ArrayLike = (1.0,),
        rest: ArrayLike = (0.0,),
        rows: int = 3,
        runs: int = 2_000,
        **settings: Any,
    ) -> AuditCase:
        """The usual worst case: the first row turns around, becomes null or is left out; all targets are 1.

        Parameters
        ----------
        row, rest : array-like
            Entries of the row that changes, and of each other row.
        rows : int
            How many rows there are.
        settings
            Other parameters of an AuditCase.
        """
        first, second = flipped_row(relation, row=row, rest=rest, rows=rows)
        return cls(solver, problem, first, second, relation, runs=runs, **settings)


@dataclass(frozen=True)
class LowerBounds:
    """What the runs on two neighbouring tables show.

    Attributes
    ----------
    epsilon : float
        By Clopper-Pearson limits, for any (epsilon, delta)-DP mechanism.
    mu : float
        The same for any mu-Gaussian-DP mechanism.
    delta : float
        The delta at which epsilon was asked for.
    """

    epsilon: float
    mu: float
    delta: float

    @property
    def gaussian_epsilon(self) -> float:
        """The epsilon at delta of Gaussian DP with this mu; a bound only for promises of Gaussian DP."""
        return float(accounting.gaussian_epsilon(self.delta, self.mu)) if self.mu > 0.0 and self.delta > 0.0 else 0.0


def bounds_of(first: FloatArray, second: FloatArray, delta: float, confidence: float = CONFIDENCE) -> LowerBounds:
    """Both lower bounds from what an attacker computed from the runs on two neighbouring tables.

    Guarantee: each exceeds what a private mechanism promises with probability at most 1 - confidence.
    """
    epsilon = epsilon_lower_bound(first, second, delta, confidence)
    return LowerBounds(epsilon, mu_lower_bound(first, second, confidence), delta)
