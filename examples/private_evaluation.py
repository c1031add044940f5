"""How good is a model on private test rows?

Accuracy, area under the ROC curve and log-loss with confidence intervals, from one release, beside the best constant.
"""

import numpy as np
from sklearn.datasets import make_classification
from sklearn.model_selection import train_test_split

from discreet import LogisticRegression
from discreet.metrics import evaluate

X, y = make_classification(10_000, 8, n_informative=4, class_sep=0.8, random_state=0)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.4, random_state=0)

model = LogisticRegression(epsilon=1.0, bounds=(-8, 8), classes=[0, 1]).fit(X_train, y_train)
found = evaluate(model, X_test, y_test, epsilon=0.5)  # epsilon of its own, for the test rows

for name in ("accuracy", "accuracy_of_constant", "log_loss", "roc_auc"):
    figure = found[name]
    print(f"{name:<21}{figure.value:.3f}  from {figure.low:.3f} to {figure.high:.3f}")
print("better than a constant:", found.beats_constant)
print(f"exact accuracy, to compare (these rows are made up): {np.mean(model.predict(X_test) == y_test):.3f}")
