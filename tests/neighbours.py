"""Neighbouring tables with hostile rows, for Hypothesis: the cases of every sensitivity law."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from discreet import Relation
from discreet.audit.neighbours import neighbours
from discreet.privacy.budget import Budget
from discreet.problem.column_scaling import ColumnScaling
from discreet.problem.losses import Huber, Logistic, Multinomial, OneVsRest, SmoothedHinge, Squared
from discreet.problem.penalties import Zero
from discreet.problem.problem import Problem
from discreet.problem.scaled_problem import scale_problem
from discreet.testing import tables

N, P = 6, 3


EXTREME = st.one_of(
    st.floats(-3.0, 3.0), st.sampled_from([0.0, 1e308, -1e308, 1.7e308, 5e-324, -1e-310, 1e30, -1e6, 0.5])
)


TABLES = arrays(np.float64, (N, P), elements=EXTREME)


ROWS = arrays(np.float64, P, elements=EXTREME)


WEIGHTS = arrays(np.float64, N, elements=st.floats(0.0, 1.0))


RELATIONS = st.sampled_from(list(Relation))


LOSSES = st.sampled_from(
    [Squared(), Logistic(), Huber(0.7), SmoothedHinge(0.5), Multinomial(3), OneVsRest(Logistic(), 3)]
)


def targets(loss, seed):
    return tables.targets(loss, N, seed)


CASE = {
    "relation": RELATIONS,
    "X": TABLES,
    "weight": WEIGHTS,
    "row": ROWS,
    "at": st.integers(0, N - 1),
    "seed": st.integers(0, 1000),
}


def scaled_neighbours(relation, loss, X, weight, row, at, seed, order):
    """Both tables in one released frame, with an intercept."""
    scaling = ColumnScaling(
        low=np.full(P, -1e9),
        high=np.full(P, 1e9),
        shift=np.array([0.0, 0.5, -1.0]),
        scale=np.array([1.0, 0.01, 100.0]),
        second_moment=np.ones(P),
        frozen=np.array([False, False, True]),
        target_low=-1e200,
        target_high=1e200,
    )
    problem = Problem(loss, Zero())
    pair = neighbours(relation, X, targets(loss, seed), weight, row, at)
    return [scale_problem(problem, data, scaling, N, order) for data in pair]


def some_weights(scaled, seed):
    rng = np.random.default_rng(seed)
    return rng.standard_normal(scaled.shape) * 10.0 ** rng.integers(-3, 4)


BUDGETS = [
    Budget(1.0, 1e-6),
    Budget(0.1, 1e-9),
    Budget(8.0, 1e-5),
    Budget.pure(1.0),
    Budget.zcdp(0.1),
    Budget.gdp(0.5),
]
