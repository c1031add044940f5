"""Choosing a setting with a private search.

The strength of the penalty is drawn at random, tried and scored with noise; only the best trial is released, and the
cost covers all of them.
"""

import numpy as np
from scipy.stats import loguniform

from discreet import LogisticRegression
from discreet.model_selection import PrivateSearchCV

rng = np.random.default_rng(0)
X = rng.normal(size=(20_000, 6))
y = (rng.logistic(size=20_000) < 2 * X[:, 0] - X[:, 1] + 1).astype(int)

search = PrivateSearchCV(
    LogisticRegression(bounds=(-5.0, 5.0), classes=[0, 1]), {"alpha": loguniform(1e-5, 10.0)}, n_iter=10, epsilon=1.0
)
print(search.plan(n_samples=20_000, n_features=6))
search.fit(X, y)
print(f"\nchosen alpha {search.best_params_['alpha']:.2g}, accuracy {search.score(X, y):.2f}")
print(
    f"all trials and the choice together: epsilon {search.guarantee_.epsilon:g} at delta {search.guarantee_.delta:.1e}"
)
