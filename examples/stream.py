"""A stream: rows that come night by night.

One budget for the whole stream, every model on the way may be published, and no chunk is kept. Pause and resume
between processes.
"""

import tempfile
from pathlib import Path

import numpy as np

from discreet import LogisticRegression, pause_stream, resume_stream

rng = np.random.default_rng(0)


def night(rows: int = 1_000) -> tuple[np.ndarray, np.ndarray]:
    X = rng.uniform(-1.0, 1.0, (rows, 3))
    return X, np.where(rng.logistic(size=rows) < 6 * X[:, 0] - 1, "yes", "no")


# The most rows that will ever come must be public, and bounds are needed: nothing can be learned beforehand.
model = LogisticRegression(epsilon=1.0, bounds=(-1.0, 1.0), classes=["no", "yes"], public_n=20_000)
X_new, y_new = night(5_000)
with tempfile.TemporaryDirectory() as folder:
    file = Path(folder) / "visits.stream"
    for count in range(1, 21):
        model.partial_fit(*night())
        if count in (2, 5, 20):
            print(f"after {count:>2} nights: accuracy {model.score(X_new, y_new):.2f}")
        if count == 10:
            pause_stream(model, file)  # as secret as the rows
            model = resume_stream(file)
print(f"epsilon {model.guarantee_.epsilon:g} for all twenty models together")
