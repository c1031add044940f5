"""Hospital readmission with declared bounds.

A plan before any row is read, a logistic regression of made-up hospital stays, and what its coefficients say beside
their noise.
"""

import numpy as np
import pandas as pd

from discreet import LogisticRegression

rng = np.random.default_rng(0)
n = 10_000
stays = pd.DataFrame(
    {
        "age": rng.normal(62, 16, n).clip(18, 104).round(),
        "days": 1 + rng.gamma(2.0, 3.0, n).round(),
        "earlier_stays": rng.poisson(0.8, n),
        "emergency": rng.random(n) < 0.4,  # a column of type bool lies in (0, 1): no bounds needed
    }
)
log_odds = 0.04 * (stays["age"] - 62) + 0.9 * stays["earlier_stays"] + stays["emergency"] - 1.8
back = np.where(rng.logistic(size=n) < log_odds, "back", "well")

# From what the columns are, never from the rows. None: this side is learned privately.
bounds = {"age": (18, 105), "days": (1, 90), "earlier_stays": (0, None)}
model = LogisticRegression(epsilon=1.0, bounds=bounds, classes=["back", "well"])

plan = model.plan(n_samples=n, n_features=4, feature_names=list(stays.columns))
print(f"planned: {plan.solver.name}, noise of a scaled coefficient about {plan.standard_error:.3f}")

model.fit(stays, back)
noise = model.summary().to_dict()["noise"]["coef_per_unit"]
for name, coefficient, error in zip(stays.columns, model.coef_[0], noise, strict=True):
    print(f"{name:<14} {coefficient:+.3f}  (noise about {error:.3f})")
print(f"accuracy {model.score(stays, back):.2f}")  # exact: these rows are made up
