"""Every planted fault beside the right implementation: an audit must accept the one and find the other."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from discreet.audit import faults
from discreet.audit.low_bits import LowBits, any_double, box_muller, find_low_bits
from discreet.audit.lower_bound import selection_lower_bound
from discreet.audit.neighbours import flipped_person, flipped_row
from discreet.audit.replays.replay import Replay, record, repeats_noise, replay, residuals_of
from discreet.data.public import Public
from discreet.data.rows import Data
from discreet.privacy.budget import Budget
from discreet.privacy.mechanisms import GumbelGreedy
from discreet.privacy.random.generator import secure_generator
from discreet.privacy.relation import Relation
from discreet.problem.losses import Logistic
from discreet.problem.problem import Problem
from discreet.solvers import GradientDescent, Plan, Solver

PROBLEM = Problem(Logistic(), fit_intercept=False)
GD = GradientDescent(steps=30, clip=0.25, step=1e-3, scale_share=0.0)
FIRST, SECOND = flipped_row(Relation.REPLACE, row=(1.0, 1.0), rest=(1.0, -1.0), rows=12)


@dataclass(frozen=True)
class FaultAudit:
    """A planted fault beside the right implementation.

    Attributes
    ----------
    tool : str
        Which audit looks for it.
    right, wrong : bool
        Whether the right implementation is accepted, and the wrong one found.
    shown : str
        What the audit says about the wrong one.
    """

    tool: str
    right: bool
    wrong: bool
    shown: str

    @property
    def passed(self) -> bool:
        return self.right and self.wrong


def plan_for(solver: Solver[Any, Any] = GD, budget: Budget | None = None, first: Data = FIRST) -> Plan[Any, Any]:
    """The plan that the faults are planted into."""
    public = Public.of(first.rows, first.columns, bounds=(-1.0, 1.0))
    return solver.plan(PROBLEM, public, budget or Budget(1.0, 0.1))


def with_mechanism(kind: Callable[[float, int], Any], plan: Plan[Any, Any] | None = None) -> Plan[Any, Any]:
    """The same plan with another mechanism of the same multiplier."""
    plan = plan or plan_for()
    return replace(plan, mechanism=kind(plan.mechanism.multiplier, plan.mechanism.count))


def _replayed(plan: Plan[Any, Any], first: Data = FIRST, second: Data = SECOND) -> FaultAudit:
    """The replay of a faulty plan beside that of the right one."""
    right, wrong = replay(plan_for(), first, second), replay(plan, first, second)
    return _from(right, wrong)


def _from(right: Replay, wrong: Replay) -> FaultAudit:
    return FaultAudit("replay", right.passed, bool(wrong.problems), ["nothing", *wrong.problems][-1])


def half_of_the_stated_noise() -> FaultAudit:
    """A test of the size of 200 numbers: a false alarm in 1e-6 of the runs, and the fault is missed in 2e-23."""
    plan = plan_for(replace(GD, steps=100))
    faulty = with_mechanism(faults.HalfGaussian, plan)
    return _from(*(replay(audited, FIRST, SECOND) for audited in (plan, faulty)))


def half_of_the_planned_noise() -> FaultAudit:
    plan = plan_for()
    right, wrong = (replay(faults.weaker_plan(plan, factor), FIRST, SECOND).attained or 0.0 for factor in (1.0, 0.5))
    promised = plan.guarantee.epsilon
    shown = f"attains epsilon {wrong:.3f} of {promised:g}"
    return FaultAudit("replay", right <= promised * (1.0 + 1e-6), wrong > promised * (1.0 + 1e-6), shown)


def sensitivity_off_by_two() -> FaultAudit:
    right = replay(plan_for(), FIRST, SECOND)
    with faults.halved_sensitivity():
        wrong = replay(plan_for(), FIRST, SECOND)
    return FaultAudit("replay", right.passed, "moved by" in wrong.problems[0], wrong.problems[0])


def ten_rows_as_ten_persons() -> FaultAudit:
    """The noise is for one row, and a person with ten of them is replaced."""
    first, second = flipped_person(Relation.REPLACE, rows=10)
    public = Public.of(first.units, first.columns, bounds=(-1.0, 1.0), persons=True)
    plan = GD.plan(PROBLEM, public, Budget(1.0, 0.1))
    right = replay(plan, first, second)
    with faults.persons_as_rows():
        wrong = replay(plan, first, second)
    return FaultAudit("replay", right.passed, "moved by" in wrong.problems[0], wrong.problems[0])


def noise_used_twice() -> FaultAudit:
    return _replayed(with_mechanism(faults.RepeatedGaussian))


def one_seed_for_two_fits() -> FaultAudit:
    kept = faults.RepeatedGaussian(1.0, GD.steps or 1)
    plans = [faults.weaker_plan(plan_for(), factor) for factor in (1.0, 2.0)]
    reused = [replace(plan, mechanism=replace(kept, multiplier=plan.mechanism.multiplier)) for plan in plans]
    wrong = repeats_noise(*(residuals_of(record(plan, FIRST, secure_generator())) for plan in reused))
    right = not repeats_noise(*(residuals_of(record(plan, FIRST, secure_generator())) for plan in plans))
    return FaultAudit("replay", right, wrong, "the residuals of two fits are the same")


def stop_that_reads_the_rows() -> FaultAudit:
    settings: dict[str, Any] = {"steps": 400, "clip": 0.25, "step": 50.0, "scale_share": 0.0}
    hard = Data(np.vstack([FIRST.X, [[1.0, 1.0]]]), np.append(FIRST.y, -1.0))
    easy, budget = Data(hard.X, np.ones(hard.rows)), Budget(50.0, 0.1)
    solvers = GradientDescent(**settings), faults.StopsByTheRows(**settings)
    return _from(*(replay(plan_for(solver, budget, hard), easy, hard) for solver in solvers))


def number_that_bypasses_the_noise() -> FaultAudit:
    changed = Data(FIRST.X, np.append(-1.0, FIRST.y[1:]))
    return _replayed(plan_for(faults.ShowsExactMean(**vars(GD))), FIRST, changed)


def selection_noise_as_printed() -> FaultAudit:
    """Laplace noise of scale 1 on scores of sensitivity 1 is said to be 1-DP, and Gumbel noise of that scale 2-DP."""
    right, wrong = (selection_lower_bound(kind(1.0, 1)) for kind in (GumbelGreedy, faults.PrintedSelection))
    shown = f"epsilon is at least {wrong:.3f}, 1 is printed"
    return FaultAudit("lower bound", right <= 2.0, wrong > 1.0, shown)


def low_bits_of_floating_point_noise() -> FaultAudit:
    rng = np.random.default_rng(0)
    X, y = rng.uniform(-1.0, 1.0, (200, 20)), rng.choice([-1.0, 1.0], 200)
    changed = X.copy()
    changed[0] *= -1.0
    plan = plan_for(GradientDescent(steps=5, clip=0.25, scale_share=0.0), Budget(0.1, 1e-6), Data(X, y))
    tables = Data(X, y), Data(changed, y)
    right = max((find_low_bits(plan, *tables, 40, sampler) for sampler in (box_muller, any_double)), key=_success)
    with faults.naive_noise():
        wrong = find_low_bits(plan, *tables, 40)
    shown = f"{wrong.success:.0%} of tables named, {right.success:.0%} with the noise of the library"
    return FaultAudit("low bits", not right.found, wrong.found, shown)


def _success(found: LowBits) -> float:
    return found.success


FAULTS: Mapping[str, Callable[[], FaultAudit]] = {
    "noise of half the stated size": half_of_the_stated_noise,
    "half of the planned noise": half_of_the_planned_noise,
    "sensitivity off by two": sensitivity_off_by_two,
    "ten rows of a person as ten persons": ten_rows_as_ten_persons,
    "noise used twice in a run": noise_used_twice,
    "one seed for two fits": one_seed_for_two_fits,
    "a stop that reads the rows": stop_that_reads_the_rows,
    "a number that bypasses the noise": number_that_bypasses_the_noise,
    "selection noise as the thesis prints it": selection_noise_as_printed,
    "low bits of floating-point noise": low_bits_of_floating_point_noise,
}


def planted_faults() -> dict[str, FaultAudit]:
    """Plant every fault and look for it."""
    return {fault: check() for fault, check in FAULTS.items()}
