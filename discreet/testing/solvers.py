"""`check_solver`: the laws that make a solver private and right, for any solver."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

from discreet.audit.worst_case import AuditCase
from discreet.data.public import Public
from discreet.data.rows import Data
from discreet.data.validation import array_rows
from discreet.privacy.budget import Budget
from discreet.privacy.random.generator import RandomGenerator, seeded_generator
from discreet.privacy.relation import Relation
from discreet.problem.problem import Problem
from discreet.solvers import Plan, Solution, Solver
from discreet.testing import plan_laws, solution_laws
from discreet.testing.laws import Law, LawResult, OnFail, run_laws
from discreet.testing.tables import example_problems

BUDGET = Budget(1.0, 1e-6)
BOUND = 40.0  # declared for columns and targets: ordinary tables lie within it


@dataclass(frozen=True, eq=False)
class SolverCase:
    """A solver with the problems it takes and the size of the tables on which it is tried."""

    solver: Solver[Any, Any]
    problems: Sequence[Problem]
    offered: Sequence[Problem]
    rows: int
    columns: int
    seed: int
    audits: Sequence[AuditCase]

    @property
    def unscaled(self) -> Solver[Any, Any]:
        """The solver with nothing spent on scales, which makes dense and sparse tables comparable."""
        known = is_dataclass(self.solver) and "scale_share" in {field.name for field in fields(self.solver)}
        return replace(self.solver, scale_share=0.0) if known else self.solver  # type: ignore[type-var]

    def public(
        self, problem: Problem, relation: Relation = Relation.REPLACE, bounded: bool = True, sparse: bool = False
    ) -> Public:
        """Public facts of the tables of this case."""
        limits = (-BOUND, BOUND) if bounded else None
        y_limits = None if problem.loss.classification else limits
        facts: dict[str, Any] = {"relation": relation, "public_n": self.rows, "sparse": sparse}
        return Public.of(self.rows, self.columns, bounds=limits, y_bounds=y_limits, **facts)

    def plan(self, problem: Problem, budget: Budget = BUDGET, **facts: Any) -> Plan[Any, Any]:
        return self.solver.plan(problem, self.public(problem, **facts), budget)

    def run(
        self,
        plan: Plan[Any, Any],
        X: Any,
        y: Any,
        weight: Any = None,
        seed: int | None = None,
        rng: RandomGenerator | None = None,
    ) -> Solution:
        """Run a plan on a table with noise of a known seed, or of a generator."""
        data: Data = array_rows(X, y, weight)
        rng = rng or seeded_generator(self.seed if seed is None else seed)
        return plan.solver.solve(plan.problem, data, plan, rng)


def check_solver(
    solver: Solver[Any, Any] | type[Solver[Any, Any]],
    *,
    problems: Sequence[Problem] | None = None,
    n: int = 120,
    columns: int = 4,
    seed: int = 0,
    audits: Sequence[AuditCase] = (),
    on_fail: OnFail = "raise",
    expected_failures: Mapping[str, str] | None = None,
) -> list[LawResult]:
    """Check a solver: plans, budgets, refusals, seeds, feasibility, optimality, hostile rows, forms of tables, audits.

    Passing is no proof of privacy. An audit measures a lower bound on epsilon and raises a false alarm with
    probability at most 1e-6; a sensitivity that is wrong for rows that no law looks at stays unseen. Write the proof.

    Parameters
    ----------
    solver : Solver or subclass of Solver
        What to check; a class is made with its defaults.
    problems : sequence of Problem, optional
        What to solve; those that the solver cannot take must be refused in words. By default one of each kind.
    n, columns : int
        The size of the tables.
    seed : int
        Seed of tables and noise: the checks are the same every time.
    audits : sequence of AuditCase
        Neighbouring tables, and settings, with which one row moves the result as far as it may: the claimed epsilon
        must be accepted, and half of the noise detected. Without any, this law is skipped.
    on_fail : {"raise", None}
        Whether to raise the first failure, or to return all results.
    expected_failures : mapping, optional
        Laws that are known to fail, each with the reason.

    Returns
    -------
    list of LawResult
        One for each law.

    Raises
    ------
    LawBrokenError
        An AssertionError that names the law and the case.

    Examples
    --------
    >>> from discreet.solvers import GradientDescent
    >>> from discreet.testing import check_solver
    >>> [result.law for result in check_solver(GradientDescent) if result.status == "skipped"]
    ['audit_finds_no_more_than_epsilon']
    """
    made = solver() if isinstance(solver, type) else solver
    offered = example_problems() if problems is None else list(problems)
    taken = [problem for problem in offered if made.why_incompatible(problem, BUDGET) is None]
    if not taken:
        raise ValueError(f"{made!r} takes none of the problems; pass problems= with one that it can solve.")
    case = SolverCase(made, taken, offered, n, columns, seed, audits)
    return run_laws(LAWS, case, repr(made), on_fail, expected_failures)


LAWS: list[Law[SolverCase]] = [
    plan_laws.plans_do_not_depend_on_rows,
    plan_laws.plans_fit_their_budget,
    plan_laws.refusals_name_other_solvers,
    solution_laws.iterations_are_those_of_the_plan,
    solution_laws.seeds_reproduce,
    solution_laws.results_lie_in_the_constraint,
    solution_laws.without_noise_the_optimum_is_reached,
    solution_laws.hostile_rows_give_finite_results,
    solution_laws.every_form_of_a_table_gives_the_same_result,
    solution_laws.rows_of_weight_zero_contribute_nothing,
    solution_laws.audit_finds_no_more_than_epsilon,
]
