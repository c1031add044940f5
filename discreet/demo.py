"""The demonstration: how much accuracy a privacy budget buys on a table of tumour measurements.

The table ships with scikit-learn: 569 biopsies, 30 measurements of cell nuclei each, benign or malignant.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet._common.exceptions import NotPrivateWarning
from discreet.estimators import LogisticRegression

EPSILONS = (0.5, 1.0, 2.0, 5.0, 10.0, math.inf)
SHOWN = 1.0  # the epsilon whose plan and statement are printed
RUNS = 5
TEST_SHARE = 0.3

# Plausible limits of ten measurements of a cell nucleus: for the mean over a biopsy, for its standard error
# and for the worst nuclei. Lengths and areas follow from nuclei of 5 to 30 (at worst 40) micrometres in
# radius; the others are grey levels and ratios. Round numbers, as one takes them from earlier publications: the
# ranges of this public table are well known, and some of its rows lie outside.
Pair = tuple[float, float]
LIMITS: dict[str, tuple[Pair, Pair, Pair]] = {
    "radius": ((5, 30), (0, 3), (5, 40)),
    "texture": ((5, 40), (0, 5), (5, 50)),
    "perimeter": ((30, 200), (0, 20), (30, 250)),
    "area": ((100, 2500), (0, 500), (100, 5000)),
    "smoothness": ((0.05, 0.2), (0, 0.03), (0.05, 0.25)),
    "compactness": ((0, 0.4), (0, 0.15), (0, 1)),
    "concavity": ((0, 0.5), (0, 0.3), (0, 1)),
    "concave points": ((0, 0.2), (0, 0.05), (0, 0.3)),
    "symmetry": ((0.1, 0.3), (0, 0.1), (0.1, 0.6)),
    "fractal dimension": ((0.05, 0.1), (0, 0.03), (0.05, 0.2)),
}


@dataclass(frozen=True)
class DemoRow:
    """Mean accuracy on unseen rows at one epsilon, and the standard deviation over the runs."""

    epsilon: float
    accuracy: float
    deviation: float


@dataclass(frozen=True)
class DemoResult:
    """What the demonstration shows.

    Attributes
    ----------
    rows : list of DemoRow
        One for each epsilon.
    model : LogisticRegression
        The model trained at epsilon = 1 in the last run.
    runs : int
        Number of splits.
    reference : float
        Accuracy of scikit-learn's logistic regression on the same splits, with standardised columns, without privacy.
    """

    rows: list[DemoRow]
    model: LogisticRegression
    runs: int
    reference: float


def declared_bounds() -> tuple[list[float], list[float]]:
    """Return public bounds of the 30 columns, in the order of the table: ten means, ten errors, ten worst values.

    Examples
    --------
    >>> from discreet.demo import declared_bounds
    >>> low, high = declared_bounds()
    >>> len(low), low[0], high[0]  # the mean radius of a nucleus, in micrometres
    (30, 5.0, 30.0)
    """
    pairs = [LIMITS[name][kind] for kind in range(3) for name in LIMITS]
    return [float(low) for low, _ in pairs], [float(high) for _, high in pairs]


def run_demo(
    epsilons: Sequence[float] = EPSILONS, runs: int = RUNS, progress: Callable[[int, int], None] | None = None
) -> DemoResult:
    """Train on 70 % of the rows and test on the rest, for every epsilon, `runs` times with fresh noise.

    Guarantee: each model is private as its `guarantee_` states; the accuracies are not, and describe a
    public table.

    Parameters
    ----------
    epsilons : sequence of float
        Privacy budgets to compare; one of them must be 1.
    runs : int, default=5
        Number of splits.
    progress : callable, optional
        Called as progress(done, total).

    Returns
    -------
    DemoResult
        Accuracies, and the model trained at epsilon = 1.
    """
    from sklearn.datasets import load_breast_cancer
    from sklearn.model_selection import train_test_split

    X, y = load_breast_cancer(return_X_y=True)
    scores, reference = np.zeros((len(epsilons), runs)), np.zeros(runs)
    shown = None
    for run in range(runs):
        train, test, y_train, y_test = train_test_split(X, y, test_size=TEST_SHARE, random_state=run)
        reference[run] = _plain_model().fit(train, y_train).score(test, y_test)
        for i, epsilon in enumerate(epsilons):
            model = _fit(train, y_train, epsilon)
            scores[i, run] = model.score(test, y_test)
            shown = model if epsilon == SHOWN else shown
            if progress is not None:
                progress(run * len(epsilons) + i + 1, runs * len(epsilons))
    assert shown is not None
    rows = [DemoRow(e, float(s.mean()), float(s.std())) for e, s in zip(epsilons, scores, strict=True)]
    return DemoResult(rows, shown, runs, float(reference.mean()))


def _plain_model() -> Any:
    from sklearn.linear_model import LogisticRegression as PlainLogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(), PlainLogisticRegression())


def _fit(X: Any, y: Any, epsilon: float) -> LogisticRegression:
    model = LogisticRegression(epsilon=epsilon, bounds=declared_bounds(), classes=[0, 1])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotPrivateWarning)  # the row without privacy is there to compare
        model.fit(X, y)
    return model
