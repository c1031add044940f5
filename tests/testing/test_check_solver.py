"""Every solver of the library keeps all laws, unasked; each planted fault breaks the law that is there for it.

The audits of all solvers of the library are in tests/audit and tests/solvers. Here three audits run, each of which
raises a false alarm with probability at most 1e-6.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

from discreet._common.exceptions import IncompatibleSolverError
from discreet.privacy.budget import Budget
from discreet.privacy.random.generator import secure_generator
from discreet.privacy.relation import Relation
from discreet.problem.constraints import L2Ball
from discreet.problem.losses import Logistic
from discreet.problem.penalties import L2
from discreet.problem.problem import Problem
from discreet.solvers import SOLVERS, GradientDescent
from discreet.solvers.base import Run
from discreet.testing import AuditCase, LawBrokenError, check_solver
from tests.catalogue import SIZES

PROBLEMS = [Problem(Logistic(), L2(0.1)), Problem(Logistic(), constraint=L2Ball(0.3))]
AUDITED = Problem(Logistic(), fit_intercept=False)
FULL_EFFECT = {"steps": 4, "clip": 0.25, "step": 1e-6, "average": False, "scale_share": 0.0}


@pytest.mark.parametrize("name", SOLVERS)
def test_every_solver_keeps_all_laws(name):
    rows, columns = SIZES.get(name, (2_000, 4) if name == "greedy-cd" else (120, 4))  # 120 rows give it nothing but 0
    results = check_solver(SOLVERS[name], n=rows, columns=columns)
    skipped = {result.law for result in results if result.status == "skipped"}
    assert skipped <= {"audit_finds_no_more_than_epsilon", "results_lie_in_the_constraint"}
    assert {result.status for result in results} <= {"passed", "skipped"}


SEEN = [0.0]


@dataclass(frozen=True)
class ReadsRowsInPlan(GradientDescent):
    """`solve` leaves the largest entry behind, where the next `plan` finds it."""

    def solve(self, problem, data, plan, rng, progress=None, trace=None):
        SEEN[0] = float(np.abs(data.X).max())
        return super().solve(problem, data, plan, rng, progress, trace)

    def _decide(self, problem, public, budget, scaling_plan):
        mechanism, settings = super()._decide(problem, public, budget, scaling_plan)
        return mechanism, replace(settings, steps=settings.steps + int(SEEN[0] > 1e300))


@dataclass(frozen=True)
class Overspends(GradientDescent):
    def _decide(self, problem, public, budget, scaling_plan):
        twice = Budget(2.0 * budget.epsilon, budget.delta) if budget.kind == "approximate" else budget
        return super()._decide(problem, public, twice, scaling_plan)


@dataclass(frozen=True)
class RefusesWithoutAdvice(GradientDescent):
    def why_incompatible(self, problem, budget):
        return "it knows no sets" if problem.constraint is not None else None

    def plan(self, problem, public, budget):
        reason = self.why_incompatible(problem, budget)
        if reason is not None:
            raise IncompatibleSolverError(f"solver {self.name!r} cannot be used: {reason}.")
        return super().plan(problem, public, budget)


class HalfDraws:
    """A generator that draws half of the noise."""

    def __init__(self, rng):
        self.rng = rng

    def rounded_draws(self, law, scale, size):
        return self.rng.rounded_draws(law, 0.5 * scale, size)


@dataclass(frozen=True)
class DrawsHalfTheNoise(GradientDescent):
    def _descend(self, scaled, plan, run):
        return super()._descend(scaled, plan, Run(HalfDraws(run.rng), run.progress, False))


@dataclass(frozen=True)
class IgnoresTheFactorTwo(GradientDescent):
    """Noise for a row that becomes null, although the plan says that a row is replaced."""

    def _descend(self, scaled, plan, run):
        return super()._descend(scaled, replace(plan, public=replace(plan.public, relation=Relation.ZERO_OUT)), run)


class ChangesSolution(GradientDescent):
    """A solver that spoils the result of another one."""

    def solve(self, problem, data, plan, rng, progress=None, trace=None):
        return self.spoil(super().solve(problem, data, plan, rng, progress, trace), data)


@dataclass(frozen=True)
class NanOnHugeRows(ChangesSolution):
    def spoil(self, solution, data):
        return replace(solution, coef=solution.coef * np.nan) if np.abs(data.X).max() > 1e300 else solution


@dataclass(frozen=True)
class Infeasible(ChangesSolution):
    def spoil(self, solution, data):
        return replace(solution, coef=solution.coef + 1.0) if solution.plan.is_noisy else solution


@dataclass(frozen=True)
class StopsEarly(ChangesSolution):
    def spoil(self, solution, data):
        return solution if solution.plan.is_noisy else replace(solution, coef=0.5 * solution.coef)


@dataclass(frozen=True)
class TellsWhenItConverged(ChangesSolution):
    def spoil(self, solution, data):
        return replace(solution, iterations=solution.iterations - int(np.abs(data.X).max() < 1.0))


@dataclass(frozen=True)
class SparseIsDifferent(ChangesSolution):
    def spoil(self, solution, data):
        return replace(solution, coef=1.001 * solution.coef) if data.sparse else solution


@dataclass(frozen=True)
class IgnoresSeeds(GradientDescent):
    def solve(self, problem, data, plan, rng, progress=None, trace=None):
        return super().solve(problem, data, plan, secure_generator(), progress, trace)


@dataclass(frozen=True)
class IgnoresWeights(GradientDescent):
    def solve(self, problem, data, plan, rng, progress=None, trace=None):
        return super().solve(problem, replace(data, weight=None), plan, rng, progress, trace)


FAULTS = [
    (ReadsRowsInPlan, "plans_do_not_depend_on_rows"),
    (Overspends, "plans_fit_their_budget"),
    (RefusesWithoutAdvice, "refusals_name_other_solvers"),
    (TellsWhenItConverged, "iterations_are_those_of_the_plan"),
    (IgnoresSeeds, "seeds_reproduce"),
    (Infeasible, "results_lie_in_the_constraint"),
    (StopsEarly, "without_noise_the_optimum_is_reached"),
    (NanOnHugeRows, "hostile_rows_give_finite_results"),
    (SparseIsDifferent, "every_form_of_a_table_gives_the_same_result"),
    (IgnoresWeights, "rows_of_weight_zero_contribute_nothing"),
]


@pytest.mark.parametrize(("kind", "law"), FAULTS, ids=lambda x: x if isinstance(x, str) else x.__name__)
def test_a_planted_fault_is_found_by_its_law(kind, law):
    results = {result.law: result for result in check_solver(kind, problems=PROBLEMS, on_fail=None)}
    assert results[law].status == "failed"
    assert f"breaks the law {law!r}" in results[law].message
    others = {name for name, result in results.items() if result.status == "failed"} - {law}
    assert len(others) <= 2  # a fault may show in more than one way, but is not everywhere


def audits_of(kind, *relations):
    return [AuditCase.flipped_row(kind(**FULL_EFFECT), AUDITED, relation) for relation in relations]


@pytest.mark.slow
@pytest.mark.parametrize("kind", [DrawsHalfTheNoise, IgnoresTheFactorTwo])
def test_too_little_noise_is_found_by_the_audit(kind):
    with pytest.raises(LawBrokenError, match=r"'audit_finds_no_more_than_epsilon': under the relation replace"):
        check_solver(kind, problems=PROBLEMS[:1], audits=audits_of(kind, Relation.REPLACE))


@pytest.mark.slow
def test_a_right_solver_passes_its_audits():
    audits = audits_of(GradientDescent, Relation.REPLACE)  # the page on testing audits the other relations
    assert check_solver(GradientDescent, problems=PROBLEMS[:1], audits=audits)[-1].status == "passed"


@pytest.mark.slow
def test_an_audit_without_power_is_refused():
    """One row of 50 that is clipped with all others hardly shows: nobody is told that the solver was audited."""
    weak = AuditCase.flipped_row(GradientDescent(steps=1), AUDITED, rest=(1.0,), row=(0.01,), rows=50, runs=200)
    results = check_solver(GradientDescent, problems=PROBLEMS[:1], audits=[weak], on_fail=None)
    assert results[-1].status == "failed"
    assert "audit is too weak" in results[-1].message


def test_a_solver_without_problems_is_refused():
    with pytest.raises(ValueError, match="takes none of the problems"):
        check_solver(SOLVERS["frank-wolfe"], problems=PROBLEMS[:1])
