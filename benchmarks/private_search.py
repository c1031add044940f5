"""A private search against one that composes its trials: twenty candidates for the penalty, the same budget.

    .venv/bin/python benchmarks/private_search.py

Prints, for tables that scikit-learn has or draws, the mean accuracy and log-loss on rows that no search has seen, and
what one trial has of the mu of the whole budget. The defaults of `refit` and `search_share` were chosen with these
tables in view.
"""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits, make_classification
from sklearn.metrics import log_loss
from stored_tables import command

from discreet import LogisticRegression
from discreet.model_selection import PrivateGridSearch, PrivateSearchCV
from discreet.privacy import accounting

CANDIDATES = {"alpha": [float(alpha) for alpha in np.geomspace(1e-5, 100.0, 20)]}


def tables():
    """Name, rows and 0/1 labels."""
    yield "breast cancer", *load_breast_cancer(return_X_y=True)
    digits = load_digits()
    yield "digits, below five", digits.data, (digits.target < 5).astype(int)
    yield "drawn, 2,000 x 10", *make_classification(2_000, 10, n_informative=5, flip_y=0.1, random_state=2_000)


def searches(epsilon, seed):
    """The model without a search, and each search over the same candidates."""
    model = LogisticRegression(classes=[0, 1])
    shared = {"epsilon": epsilon, "random_state": seed}
    yield "no search", clone(model).set_params(**shared)
    yield "PrivateGridSearch", PrivateGridSearch(model, CANDIDATES, **shared)
    yield "PrivateSearchCV", PrivateSearchCV(model, CANDIDATES, n_iter=20, **shared)
    for share in (0.5, 0.2):
        refitted = PrivateSearchCV(model, CANDIDATES, n_iter=20, refit=True, search_share=share, **shared)
        yield f"  refit, search_share={share}", refitted


def main():
    parser = command(__doc__, other="breast cancer and digits of scikit-learn; one is generated")
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--repeats", type=int, default=10)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    for name, X, y in tables():
        found = {}
        for seed in range(options.repeats):
            order = np.random.default_rng(seed).permutation(y.size)
            fit, out = order[: 3 * y.size // 4], order[3 * y.size // 4 :]
            for label, search in searches(options.epsilon, seed):
                search.fit(X[fit], y[fit])
                loss = log_loss(y[out], search.predict_proba(X[out]), labels=[0, 1])
                found.setdefault(label, []).append((search.score(X[out], y[out]), loss))
        print(f"{name}, epsilon {options.epsilon:g}", flush=True)
        for label, results in found.items():
            mean, error = np.mean(results, axis=0), np.std(results, axis=0) / np.sqrt(len(results))
            print(f"  {label:<26} accuracy {mean[0]:.3f} +- {error[0]:.3f}  log-loss {mean[1]:.3f} +- {error[1]:.3f}")
    model, shared = LogisticRegression(classes=[0, 1]), {"epsilon": options.epsilon, "delta": 1e-6}
    grid = PrivateGridSearch(model, CANDIDATES, **shared)
    ours = PrivateSearchCV(model, CANDIDATES, n_iter=20, **shared)
    whole = accounting.gaussian_mu(options.epsilon, 1e-6)
    shares = [accounting.mu_of(plan, "replace") / whole for plan in _trials(grid, ours)]
    print(f"mu of one trial over that of the whole budget: grid {shares[0]:.3f}, search {shares[1]:.3f}")


def _trials(grid, ours):
    return grid.plan(1_000, 10).trials[0].event, ours.plan(1_000, 10).trial_events[0]


if __name__ == "__main__":
    main()
