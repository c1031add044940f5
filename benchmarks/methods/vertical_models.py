"""Models of columns that several holders have: the joint one, that of the label holder, that of one trusted holder.

`run(case, setting, seed)` takes a `vertical.case.Case` and an epsilon for each holder; noise is fresh.
"""

import numpy as np
from framework import Method

from discreet import Budget
from discreet.data.public import Public
from discreet.data.rows import Data
from discreet.federated.vertical import Holder, run_vertical
from discreet.privacy.random.generator import secure_generator
from discreet.solvers import CoordinateDescent


def split(case, setting, seed):
    """What the joint model of all holders explains."""
    plan = case.plan(setting["epsilon"])
    holders = {
        name: Holder(plan, name, case.X[:, own], case.y if name == case.labels else None)
        for name, own in case.columns.items()
    }
    model = run_vertical(plan, holders)
    coef = np.zeros(case.X.shape[1])
    for name, own in case.columns.items():
        coef[own] = model.coef[name]
    return {"explained": case.explained(coef, model.intercept)}


def central(case, own, epsilon):
    """What private coordinate descent on these columns explains, if one trusted holder has them and the target."""
    n = len(case.y)
    public = Public.of(n, len(own), bounds=tuple(case.bounds[:, own]), y_bounds=case.y_bounds)
    solver = CoordinateDescent()
    plan = solver.plan(case.problem, public, Budget(epsilon, 1.0 / n**2))
    solution = solver.solve(case.problem, Data(case.X[:, own], case.y), plan, secure_generator())
    coef = np.zeros(case.X.shape[1])
    coef[own] = solution.coef
    return {"explained": case.explained(coef, float(solution.intercept))}


def label_holder(case, setting, seed):
    return central(case, case.columns[case.labels], setting["epsilon"])


def trusted(case, setting, seed):
    """At the epsilon that all rows of all holders have together in the split model."""
    return central(case, list(range(case.X.shape[1])), case.plan(setting["epsilon"]).total.epsilon)


methods = [
    Method("split", "all holders together, each with its own columns", split, ("vertical",), style={"color": "C0"}),
    Method("label holder alone", "`cd` on its own columns", label_holder, ("vertical",), style={"color": "C1"}),
    Method("one trusted holder", "`cd` on all columns", trusted, ("vertical",), style={"color": "C2"}),
]
