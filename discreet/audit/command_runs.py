"""What the commands of `discreet audit` run: made-up tables, one run of a solver, attacks, the whole report."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from discreet._common.exceptions import DiscreetWarning
from discreet._common.types import FloatArray
from discreet.audit.campaign import Tally, run_campaign
from discreet.audit.faults import weaker_plan
from discreet.audit.membership import AttackCurve, membership_attack
from discreet.audit.neighbours import hostile_neighbours
from discreet.audit.one_run import OneRun, one_run_audit
from discreet.audit.page import results_page, write_results
from discreet.audit.planted import planted_faults
from discreet.audit.plots import plot_membership, plot_reconstruction
from discreet.audit.reconstruction import Reconstruction, distant_records, reconstruction_attack
from discreet.audit.replays.replay import Replay, replay
from discreet.audit.suite import SolverAudit, audit_solvers
from discreet.audit.targets import Target, target_of
from discreet.data.public import Public
from discreet.data.rows import Data
from discreet.estimators import LogisticRegression
from discreet.privacy.budget import Budget
from discreet.privacy.random.generator import RandomGenerator
from discreet.privacy.relation import Relation
from discreet.problem.losses import Logistic
from discreet.problem.problem import Problem
from discreet.solvers import GradientDescent

DELTA = 1e-3
Tell = Callable[[str], None]
Audit = TypeVar("Audit", SolverAudit, Tally)


def replay_estimator(
    name: str, settings: Mapping[str, Any], rows: int, columns: int, pairs: int
) -> list[tuple[str, Replay]]:
    """Replay an estimator on made-up tables with hostile rows; classifiers are told their two classes."""
    from discreet import estimators
    from discreet.estimators.model_file import CLASSIFIERS, REGRESSORS

    if name not in CLASSIFIERS + REGRESSORS:
        raise ValueError(f"--estimator must be one of {', '.join(CLASSIFIERS + REGRESSORS)}; got {name!r}.")
    rng = np.random.default_rng(0)
    low, high = settings.get("bounds") or (-1.0, 1.0)
    X = rng.uniform(low, high, (rows, columns))
    made = {key: value for key, value in settings.items() if value is not None and key != "y_bounds"}
    if settings["relation"] is Relation.ADD_REMOVE:
        made["public_n"] = rows
    if name in CLASSIFIERS:
        made["classes"] = [0, 1]
        labels: FloatArray | None = np.array([0.0, 1.0])
        y = rng.integers(0, 2, rows).astype(np.float64)
    else:
        made["y_bounds"], labels = settings.get("y_bounds"), None
        least, most = settings.get("y_bounds") or (-1.0, 1.0)
        y = rng.uniform(least, most, rows)
    model = getattr(estimators, name)(**made)
    return [
        (pair.change, replay(model, pair.first, pair.second))
        for _ in range(pairs)
        for pair in hostile_neighbours(Data(X, y), settings["relation"], rng, labels)
    ]


def one_run_of_gradient_descent(epsilon: float, canaries: int, relation: Relation, noise: float = 1.0) -> OneRun:
    """One run with canaries, each of which has its full effect; the noise may be multiplied, to plant a fault."""
    solver = GradientDescent(steps=4, clip=0.25, step=1e-3, average=False, scale_share=0.0)
    public = Public.of(canaries, canaries, relation=relation, bounds=(-1.0, 1.0), public_n=canaries)
    plan = solver.plan(Problem(Logistic(), fit_intercept=False), public, Budget(epsilon, 1e-6))
    run = target_of(weaker_plan(plan, noise)).run
    return one_run_audit(Target(run, relation, solver.name, lambda data: plan.guarantee), canaries)


def membership_scenario(
    epsilons: Sequence[float], rows: int, columns: int, models: int, rng: RandomGenerator | None = None, seed: int = 0
) -> dict[str, AttackCurve]:
    """Attack logistic regressions on random labels, of which nothing can be learned but the rows themselves."""
    numbers = np.random.default_rng(seed)
    population = Data(numbers.uniform(-1.0, 1.0, (2 * rows, columns)), numbers.choice([-1.0, 1.0], 2 * rows))
    curves = {}
    for epsilon in epsilons:
        model = LogisticRegression(
            epsilon=epsilon, delta=DELTA, alpha=1e-3, solver="gd", bounds=(-1.0, 1.0), classes=[-1, 1]
        )
        label = "no privacy" if math.isinf(epsilon) else f"epsilon {epsilon:g}"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DiscreetWarning)
            curves[label] = membership_attack(model, population, models, rng=rng)
    return curves


def reconstruction_scenario(
    epsilons: Sequence[float],
    rows: int,
    attributes: int,
    trials: int,
    rng: RandomGenerator | None = None,
    seed: int = 0,
) -> dict[float, Reconstruction]:
    """Look for a record of yes-or-no attributes in the gradients of four steps of gradient descent."""
    numbers = np.random.default_rng(seed)
    candidates = distant_records(attributes)
    others = Data(numbers.choice([-1.0, 1.0], (rows - 1, attributes)), numbers.choice([-1.0, 1.0], rows - 1))
    problem = Problem(Logistic(), fit_intercept=False)
    public = Public.of(rows, attributes, bounds=(-1.0, 1.0))
    # All records have the same norm, so that nothing is lost by clipping; short steps keep the gradients alike.
    clip = 0.5 * math.sqrt(attributes)
    solver = GradientDescent(steps=4, clip=clip, step=1e-9, average=False, scale_share=0.0)
    results = {}
    for epsilon in epsilons:
        budget = Budget(epsilon, DELTA)
        plan = solver.plan(problem, public, budget)
        results[epsilon] = reconstruction_attack(plan, others, candidates, 1.0, trials, rng)
    return results


def full_report(page: Path, runs: int, tell: Tell) -> bool:
    """Make all audits, write their results and pictures, and say whether all passed."""
    tell("planted faults")
    planted = planted_faults()
    tell("one run with canaries")
    one_runs = {
        "gradient descent, epsilon 1": one_run_of_gradient_descent(1.0, 1_000, Relation.REPLACE),
        "gradient descent, epsilon 4": one_run_of_gradient_descent(4.0, 1_000, Relation.REPLACE),
        "planted fault, a tenth of the noise": one_run_of_gradient_descent(1.0, 1_000, Relation.REPLACE, 0.1),
    }
    tell("membership inference")
    curves = membership_scenario([math.inf, 8.0, 1.0], rows=40, columns=80, models=30)
    plot_membership(curves, page.with_name("audits-membership.png"))
    tell("reconstruction")
    found = reconstruction_scenario([math.inf, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0], rows=40, attributes=16, trials=1_000)
    plot_reconstruction(found, page.with_name("audits-reconstruction.png"))
    campaign, solvers = list(_told(run_campaign(), tell)), list(_told(audit_solvers(runs), tell))
    write_results(page, results_page(campaign, solvers, planted, one_runs, curves, found))
    *right_runs, wrong_run = one_runs.values()
    checks = [fault.passed for fault in planted.values()] + [solver.passed for solver in solvers]
    checks += [tally.passed for tally in campaign]
    checks += [run.passed for run in right_runs] + [result.passed for result in found.values()]
    checks += [curve.excess() <= 0.0 for curve in curves.values()]
    return all(checks) and not wrong_run.passed


def _told(audits: Iterator[Audit], tell: Tell) -> Iterator[Audit]:
    """The audits, each of which is told when it is made."""
    for audit in audits:
        what = f"{audit.name}, {audit.relation}" if isinstance(audit, SolverAudit) else str(audit.cell)
        tell(f"{what}: {'passed' if audit.passed else audit}")
        yield audit
