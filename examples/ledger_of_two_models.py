"""One budget, two models, and a third that is refused.

The ledger composes what is done: two models with epsilon 0.6 cost less than 1.2 together.
"""

import tempfile
from pathlib import Path

import numpy as np

from discreet import BudgetExceededError, Ledger, LogisticRegression, Ridge

rng = np.random.default_rng(0)
X = rng.uniform(0.0, 1.0, (6_000, 4))
stayed = (rng.logistic(size=6_000) < 4 * X[:, 0] - 2).astype(int)
cost = 10 + 5 * X[:, 1] + rng.normal(size=6_000)

with tempfile.TemporaryDirectory() as folder:
    ledger = Ledger(Path(folder) / "budget.db")
    ledger.open("patients", epsilon=1.0, delta=1e-7)
    book = {"ledger": ledger, "dataset": "patients", "bounds": (0.0, 1.0)}

    LogisticRegression(epsilon=0.6, classes=[0, 1], **book).fit(X, stayed)
    print(f"after the first model:  {ledger.spent('patients'):.2f} of 1")
    Ridge(epsilon=0.6, y_bounds=(0.0, 20.0), **book).fit(X, cost)
    print(f"after the second model: {ledger.spent('patients'):.2f} of 1")
    try:
        Ridge(epsilon=0.6, y_bounds=(0.0, 20.0), **book).fit(X, cost)
    except BudgetExceededError as refused:
        print("the third is refused:", str(refused).rpartition("; ")[2])

    for entry in ledger.entries("patients"):
        print(entry.status, entry.note)
    print("problems found by verify:", ledger.verify())
