"""What the tests of exports share: a fitted model of every kind, and rows that try its ranges."""

import numpy as np
import pandas as pd

import discreet

NAMES = ["age", 'height "tall"', "x y; DROP TABLE people; --"]
KINDS = {
    "regression": ("Ridge", None, {"y_bounds": (-100.0, 100.0)}),
    "counts": ("PoissonRegressor", None, {}),
    "amounts": ("GammaRegressor", None, {}),
    "no intercept": ("Lasso", None, {"fit_intercept": False}),
    "two classes": ("LogisticRegression", ["it's no", "yes"], {}),
    "boolean": ("LogisticRegression", [False, True], {}),
    "softmax": ("LogisticRegression", ["a", "b", "c'); --"], {}),
    "one against the rest": ("LogisticRegression", [1, 2, 4], {"multi_class": "ovr"}),
    "hinge": ("LinearSVC", [0, 1], {}),
    "hinge of three": ("LinearSVC", [0.5, 1.5, 2.5], {}),
}


def fitted(kind, epsilon=5.0, **more):
    """A small model whose columns have declared bounds that most fresh rows leave."""
    name, labels, parameters = KINDS[kind]
    rng = np.random.default_rng(0)
    X = rng.normal(size=(800, 3)) * [1.0, 30.0, 0.1] + [0.0, 100.0, 0.0]
    margin = X @ [2.0, 0.03, -20.0] - 3.0 + 0.3 * rng.normal(size=800)
    bounds = {"bounds": ([-2.0, 0.0, -0.5], [2.0, 200.0, 0.5])}
    if labels is not None:
        cuts = np.quantile(margin, np.arange(1, len(labels)) / len(labels))
        margin, parameters = np.asarray(labels)[np.digitize(margin, cuts)], {**parameters, "classes": labels}
    elif kind in ("counts", "amounts"):
        margin = np.exp(0.3 * margin)
    model = getattr(discreet, name)(epsilon=epsilon, random_state=0, **{**bounds, **parameters, **more})
    return model.fit(pd.DataFrame(X, columns=NAMES), margin)


def rows_that_leave_the_ranges(model, rows=200):
    """Entries inside, at the ends, outside and huge."""
    rng = np.random.default_rng(1)
    low, high = model.ranges_
    X = rng.uniform(2.0 * low - high, 2.0 * high - low, (rows, low.size))
    X[0], X[1], X[2], X[3], X[4] = low, high, 1e308, -1e308, 0.0
    return pd.DataFrame(X, columns=NAMES)
