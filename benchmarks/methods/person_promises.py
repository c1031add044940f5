"""Ways to keep one promise for a whole person with several rows. `problem` is a draw of experiments/people.py.

Every fit is the library's default, or has the solver that `setting["solver"]` names.
"""

from __future__ import annotations

import numpy as np
from framework import Method
from sklearn.linear_model import LinearRegression
from sklearn.linear_model import LogisticRegression as ExactLogistic
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from discreet import Budget, LogisticRegression, Ridge

EXPERIMENTS = ("people", "people-newton", "people-gd")
GROUPS = (2, 5)  # and the largest number of rows of a person


def model(draw, budget, setting, seed, **more):
    more |= {"epsilon": budget, "solver": setting.get("solver", "auto"), "random_state": seed}
    return LogisticRegression(classes=[0, 1], **more) if draw.labels else Ridge(**more)


def whole(draw, setting, seed):
    """All rows: the mean gradient of a person is clipped."""
    fitted = model(draw, draw.budget(setting["epsilon"]), setting, seed)
    return draw.judged(fitted.fit(draw.X, draw.y, groups=draw.ids))


def one_row(draw, setting, seed):
    fitted = model(draw, draw.budget(setting["epsilon"]), setting, seed, rows_per_person=1)
    return draw.judged(fitted.fit(draw.X, draw.y, groups=draw.ids))


def group(size):
    """At most so many random rows of a person, and a promise for rows of which so many together cost the budget.

    mu / size in Gaussian differential privacy is the tightest form of group privacy. Size None: all rows.
    """

    def run(draw, setting, seed):
        most = size or draw.most
        X, y = draw.capped((*GROUPS, draw.most))[most]
        shared = Budget.gdp(draw.budget(setting["epsilon"]).gaussian_mu() / most)
        return draw.judged(model(draw, shared, setting, seed).fit(X, y)) | {"rows of a person": most}

    return run


def textbook(draw, setting, seed):
    """All rows, with epsilon / k and delta / (k e^epsilon) for the largest number k of rows of a person."""
    epsilon, whole = setting["epsilon"], draw.budget(setting["epsilon"])
    budget = Budget(epsilon / draw.most, whole.delta / (draw.most * np.exp(epsilon)))
    return draw.judged(model(draw, budget, setting, seed).fit(draw.X, draw.y)) | {"rows of a person": draw.most}


def exact(draw, setting, seed):
    kind = ExactLogistic(max_iter=1000) if draw.labels else LinearRegression()
    return draw.judged(make_pipeline(StandardScaler(), kind).fit(draw.X, draw.y))


def constant(draw, setting, seed):
    return {"score": draw.score_of(np.full(draw.test.size, draw.y.mean())) if draw.labels else 0.0}


def few_rows(draw):
    """A group of all rows is one of the others where no person has more."""
    return "there is a group of this size" if draw.most in GROUPS else None


person_promises = [
    Method("persons: default", "fit(X, y, groups=ids), all rows", whole, EXPERIMENTS),
    Method("persons: one row", "the same with rows_per_person=1", one_row, EXPERIMENTS),
    *(Method(f"persons: group {k}", f"{k} rows of each, mu / {k}", group(k), EXPERIMENTS) for k in GROUPS),
    Method("persons: group k", "all rows, mu / k", group(None), EXPERIMENTS, refuses=few_rows),
    Method("persons: epsilon / k", "all rows, epsilon / k", textbook, EXPERIMENTS),
    Method("persons: no privacy", "scikit-learn", exact, EXPERIMENTS),
    Method("persons: constant", "the mean of the training rows, exact", constant, EXPERIMENTS),
]
