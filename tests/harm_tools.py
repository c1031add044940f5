"""What the tests of planned harm share: a classifier whose noise is large enough to see, and rows of given margins."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
from scipy.integrate import cumulative_trapezoid
from sklearn.linear_model import LogisticRegression as PlainRegression

from discreet import LogisticRegression
from discreet.fairness.harm.margin_profiles import logistic, mean_for, normal
from discreet.solvers.output_perturbation import OutputPerturbation

ROWS, COLUMNS, RIDGE = 4_000, 3, 0.1
GROUPS = {"a": 8_000, "b": 2_000}


def classifier(epsilon=1.0, seed=None, **parameters):
    """Declared bounds and scales, so that scaled columns are the columns themselves."""
    solver = OutputPerturbation(ridge=RIDGE, row_norm=1.0, scale_share=0)
    given = {"bounds": (-1.0, 1.0), "classes": [0, 1], "solver": solver, "delta": 1e-6} | parameters
    return LogisticRegression(epsilon=epsilon, random_state=seed, **given)


def training_table():
    rng = np.random.default_rng(5)
    X = rng.uniform(-1.0, 1.0, (ROWS, COLUMNS))
    return X, (X @ [2.0, -1.0, 0.5] + 0.3 + rng.logistic(size=ROWS) > 0.0).astype(int)


def twin_of(X, y):
    """The minimiser that output perturbation adds noise to, by scikit-learn; the intercept is penalised and last."""
    widened = np.column_stack([X, np.ones(len(X))])
    plain = PlainRegression(C=1.0 / (RIDGE * len(X)), fit_intercept=False, tol=1e-10, max_iter=10_000)
    return plain.fit(widened, y).coef_.ravel()


def private_weights(count, epsilon=1.0):
    """Weights, the intercept last, of so many private fits of the same table."""
    X, y = training_table()
    fits = [classifier(epsilon, seed).fit(X, y) for seed in range(count)]
    return np.array([np.append(model.coef_, model.intercept_) for model in fits])


def cell_scores(label, rate, spread, count):
    """Evenly spaced quantiles of the scores in a cell of normal, calibrated log-odds."""
    mean = mean_for(rate, spread)
    grid = mean + spread * np.linspace(-8.0, 8.0, 20_001)
    density = normal(grid, mean, spread) * logistic(grid if label == 1 else -grid)
    mass = cumulative_trapezoid(density, initial=0.0)
    return np.interp((np.arange(count) + 0.5) / count, mass / mass[-1], grid)


def rows_with_scores(scores, twin, norm, direction):
    """Scaled rows of one norm with these scores under the twin; what is left of the norm goes in one direction."""
    along = np.outer(scores / (twin @ twin), twin)
    across = direction - (direction @ twin) / (twin @ twin) * twin
    left = np.sqrt(norm**2 - np.square(along).sum(axis=1))
    return along + np.outer(left, across / np.linalg.norm(across))


def evaluation_table(twin, norm, rates, spread):
    """Rows on which harm is counted, in cells of normal log-odds; noise moves the two groups in opposite directions."""
    rows, labels, groups = [], [], []
    for sign, (group, size) in zip((1.0, -1.0), GROUPS.items(), strict=True):
        direction = sign * np.arange(1.0, twin.size + 1.0)
        for label in (0, 1):
            count = round(size * (rates[group] if label == 1 else 1.0 - rates[group]))
            scores = cell_scores(label, rates[group], spread, count)
            rows.append(rows_with_scores(scores, twin, norm, direction))
            labels += [label] * count
            groups += [group] * count
    return SimpleNamespace(rows=np.concatenate(rows), labels=np.array(labels), groups=np.array(groups))
