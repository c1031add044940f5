"""The worst case of every solver: settings and neighbouring tables with which one row has its full effect.

One column, one row whose gradient flips from +C to -C, steps so short that every step's gradient stays there: the runs
attain the accountant's bound, or come close to it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any

import numpy as np

from discreet.audit.faults import weaker_plan
from discreet.audit.neighbours import flipped_person, flipped_row, flipped_target, without_row
from discreet.audit.worst_case import AuditCase
from discreet.data.rows import Data
from discreet.privacy.budget import Budget
from discreet.privacy.relation import Relation
from discreet.problem.constraints import Box, L1Ball
from discreet.problem.losses import Huber, Logistic, Multinomial, SmoothedHinge, Squared
from discreet.problem.penalties import L2
from discreet.problem.problem import Problem
from discreet.solvers import (
    ADMM,
    FTRL,
    SOLVERS,
    SVRG,
    AdaptiveDescent,
    BoltOn,
    CoordinateDescent,
    DualCoordinateDescent,
    ExponentialMechanism,
    FrankWolfe,
    GradientDescent,
    GreedyCoordinateDescent,
    MirrorDescent,
    Newton,
    ObjectivePerturbation,
    OutputPerturbation,
    Screened,
    SketchedDescent,
    Solution,
    Solver,
    StochasticGradientDescent,
    SufficientStatistics,
)

RUNS = 4_000
LOGISTIC = Problem(Logistic(), fit_intercept=False)
PURE = Budget.pure(1.0)
_SHORT: dict[str, Any] = {"clip": 0.25, "step": 1e-6, "scale_share": 0.0}
_LAST: dict[str, Any] = _SHORT | {"average": False}
_STILL: dict[str, Any] = {"clip": 0.25, "gamma": 1e-6, "average": False, "scale_share": 0.0}
TwoTables = Callable[[Relation], tuple[Data, Data]]


def solver_case(name: str, relation: Relation, runs: int = RUNS) -> AuditCase:
    """The audit of a solver under a relation.

    Parameters
    ----------
    name : str
        One of `SOLVER_CASES`: the name of a solver, where needed with a variant, as in "sgd-single".
    relation : Relation
        Which tables count as neighbours.
    runs : int
        Runs on each table; a case that needs more of them takes a multiple.

    Raises
    ------
    ValueError
        If the solver refuses the relation, in its own words.
    """
    solver, settings = SOLVER_CASES[name]
    made = dict(settings)
    problem, tables = made.pop("problem", LOGISTIC), made.pop("tables", flipped_row)
    first, second = tables(relation)
    runs *= made.pop("more_runs", 1)
    case = AuditCase(solver, problem, first, second, relation, runs=runs, weaker_plan=weaker_plan, **made)
    _ = case.plan  # refuses here what it does not take
    return case


def _rows(**settings: Any) -> TwoTables:
    return lambda relation: flipped_row(relation, **settings)


def _targets(target: float) -> TwoTables:
    return lambda relation: flipped_target(relation, target)


def _against_one_more(relation: Relation) -> tuple[Data, Data]:
    """Under `replace` a second row turns the two opposite slopes of the flipped row into twice the slope and none."""
    return flipped_row(relation, rows=2, rest=(1.0 if relation is Relation.REPLACE else 0.0,))


def _ordered(relation: Relation) -> tuple[Data, Data]:
    """One column orders the other rows as the target does, one the other way round; the last row agrees with either."""
    line = np.linspace(-0.9, 0.9, 200)
    X = np.vstack([np.column_stack([line, -line]), [1.0, 1.0]])
    first = Data(X, np.append(line, 1.0))
    if relation is Relation.REPLACE:
        return first, Data(X, np.append(line, -1.0))
    return first, without_row(first, relation, at=200)


def _first_is_chosen(solution: Solution) -> float:
    """Whether the first column was chosen; its coefficient is then not 0."""
    return float(np.ravel(solution.coef)[0] != 0.0)


def _level(solution: Solution) -> float:
    """The intercept."""
    return float(np.ravel(solution.intercept)[0])


def _usual_cases() -> dict[str, tuple[Solver[Any, Any], dict[str, Any]]]:
    """Of the solvers whose settings are those of gradient steps: one row moves each of them as far as it can."""
    settings = {"steps": 4, **_LAST}
    kinds: list[Any] = list(SOLVERS.values())
    usual = [kind for kind in kinds if settings.keys() <= {field.name for field in fields(kind)}]
    return {kind.name: (kind(**settings), {}) for kind in usual}


# Name: the solver with its settings, and whatever differs from one logistic row of 1 among rows of 0.
SOLVER_CASES: Mapping[str, tuple[Solver[Any, Any], dict[str, Any]]] = _usual_cases() | {
    "cd": (CoordinateDescent(passes=4, outer=1, **_LAST), {}),
    "greedy-cd": (  # two coordinates: the choice reveals something as well
        GreedyCoordinateDescent(steps=4, learn_smoothness=False, least_entry=0.0, **_SHORT),
        {"tables": _rows(row=(1.0, -1.0), rest=(1.0, 1.0))},
    ),
    "screened": (  # the row orders its column as the target, or the other way round; nearly all goes to the choice
        Screened(columns=1, share=0.99, then="sufficient-statistics", scale_share=0.0),
        {"problem": Problem(Squared()), "tables": _ordered, "statistic": _first_is_chosen},
    ),
    "sketched": (  # a set of two, both of which move as far as they can
        SketchedDescent("full", steps=4, outer=1, **_LAST),
        {"tables": _rows(row=(1.0, -1.0), rest=(0.0, 0.0))},
    ),
    "gd-persons": (GradientDescent(steps=4, **_LAST), {"tables": flipped_person}),
    "admm": (ADMM(rounds=4, **_STILL), {}),
    "admm-noisy-duals": (ADMM(rounds=4, form="noisy-duals", **_STILL), {}),
    "sgd": (StochasticGradientDescent(batch_size=4, passes=2, **_LAST), {"tables": _rows(rows=8)}),
    "sgd-single": (  # a row that is not drawn is replaced by another: these pull the other way
        StochasticGradientDescent(sampler="single", passes=1, **_LAST),
        {"tables": _rows(rows=2, rest=(-1.0,)), "more_runs": 2},
    ),
    "svrg": (SVRG(anchors=4, inner=1, anchor_share=0.95, **_LAST), {}),
    "newton": (Newton(steps=1, clip=1e-3, radius=1.0, moment_share=0.02, scale_share=0.0), {}),
    "adaptive": (  # a label flips: counts of it, by score or not, and gradients move as far as they can
        AdaptiveDescent(clip=1e-6, scale_share=0.0),
        {"problem": Problem(Logistic()), "tables": _targets(1.0), "statistic": _level},
    ),
    "newton-persons": (
        Newton(steps=1, clip=1e-3, radius=1.0, moment_share=0.02, scale_share=0.0),
        {"tables": flipped_person},
    ),
    "newton-classes": (  # a gradient of two outputs: what differs between the two coefficients is what the row moves
        Newton(steps=1, clip=1e-3, radius=1.0, moment_share=0.02, scale_share=0.0),
        {"problem": Problem(Multinomial(2), fit_intercept=False)},
    ),
    "frank-wolfe": (FrankWolfe(steps=4, clip=0.25, vertices=((1e-6,), (-1e-6,)), scale_share=0.0), {}),
    "mirror-descent": (
        MirrorDescent(steps=3, **(_LAST | {"step": 1e-3})),
        {"problem": Problem(Logistic(), constraint=L1Ball(1.0), fit_intercept=False)},
    ),
    "ftrl": (FTRL(leaves=1, epochs=4, **(_LAST | {"step": 1e-9})), {}),
    "dual-cd": (  # a pull so strong that the weights stay at 0
        DualCoordinateDescent(passes=2, batch_size=4, clip=0.05, proximity=1e6, average=False, scale_share=0.0),
        {"problem": Problem(Logistic(), L2(1e-9), fit_intercept=False), "tables": _rows(rows=8)},
    ),
    "dual-cd-shuffled": (
        DualCoordinateDescent(
            passes=2, batch_size=8, batches="shuffled", clip=0.05, proximity=1e6, average=False, scale_share=0.0
        ),
        {"problem": Problem(Logistic(), L2(1e-9), fit_intercept=False), "tables": _rows(rows=8)},
    ),
    "bolt-on": (
        BoltOn(passes=3, batches=1, total_step_length=1e-3, row_norm=1.0, average=False, scale_share=0.0),
        {"problem": Problem(Huber(0.25), fit_intercept=False), "tables": _rows(target=10.0), "y_limit": 10.0},
    ),
    "sufficient-statistics": (  # (1, 1) against (1, -1); the target is scaled by half its bound
        SufficientStatistics(radius=1.0, scale_share=0.0),
        {"problem": Problem(Squared(), fit_intercept=False), "tables": _targets(0.5)},
    ),
    "output-perturbation": (  # targets beyond what the row can reach, on either side
        OutputPerturbation(row_norm=1.0, ridge=0.5, scale_share=0.0),
        {"problem": Problem(Huber(1.0), L2(0.01), fit_intercept=False), "tables": _targets(1e4), "y_limit": 1e4},
    ),
    "objective-perturbation": (  # a strong ridge keeps the slope at its bound
        ObjectivePerturbation(row_norm=1.0, ridge=100.0, scale_share=0.0),
        {"problem": Problem(SmoothedHinge(0.5), L2(0.01), fit_intercept=False), "tables": _targets(1.0)},
    ),
    "exponential": (  # a short interval, on which the loss is a straight line
        ExponentialMechanism(scale_share=0.0),
        {
            "problem": Problem(Logistic(), constraint=Box(-0.1, 0.1), fit_intercept=False),
            "tables": _against_one_more,
            "budget": PURE,
        },
    ),
    "output-perturbation-pure": (
        OutputPerturbation(row_norm=1.0, ridge=0.5, scale_share=0.0),
        {
            "problem": Problem(Huber(1.0), L2(0.01), fit_intercept=False),
            "tables": _targets(1e4),
            "y_limit": 1e4,
            "budget": PURE,
        },
    ),
    "gd-pure": (GradientDescent(steps=1, **_LAST), {"budget": PURE}),
}
