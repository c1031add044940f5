"""The audit of solvers that release a minimiser once: a table of one row, which is replaced or becomes null."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from discreet.audit.lower_bound import epsilon_lower_bound
from discreet.audit.worst_case import DELTA, EPSILON
from discreet.data.public import Public
from discreet.data.rows import Data
from discreet.privacy.random.generator import seeded_generator
from discreet.privacy.relation import Relation

__all__ = ["DELTA", "EPSILON", "one_row_bound"]

RUNS = 1_500


def one_row_bound(solver, problem, targets, relation, noise, budget, **facts):
    """A lower bound on epsilon for the row x = 1 with the first target against the second, or against nothing."""
    public = Public(1, 1, relation, low=-np.ones(1), high=np.ones(1), **facts)
    plan = solver.plan(problem, public, budget)
    plan = replace(plan, mechanism=replace(plan.mechanism, multiplier=noise * plan.mechanism.multiplier))
    first, second = (Data(np.ones((1, 1)), np.full(1, target)) for target in targets)
    if relation is not Relation.REPLACE:
        second = replace(first, weight=np.zeros(1))
    stream = seeded_generator(20)
    samples = [[solver.solve(problem, data, plan, stream).w[0] for _ in range(RUNS)] for data in (first, second)]
    return epsilon_lower_bound(np.array(samples[0]), np.array(samples[1]), budget.delta)
