"""How a certificate would change with the number of rows and with epsilon, beside a band of private models.

The laws of the distances come from plans, which read no rows.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet._common.exceptions import PrivacyLeakWarning
from discreet.data.validation import Table
from discreet.estimators.fitting import plan_fit
from discreet.estimators.stored_plan import plan_of
from discreet.fairness.cells import row_cells
from discreet.fairness.certificates.certify import certificate
from discreet.fairness.certificates.classifier import linear_classifier, unknown_distance
from discreet.fairness.evaluation.gradient_distance import gradient_distance
from discreet.fairness.figures.plots import Curve, Point
from discreet.fairness.figures.simulate import ModelValues, drawn_scores, refitted, scores_of, values_of

if TYPE_CHECKING:
    from discreet.fairness.certificates.record import FairnessCertificate
    from discreet.theory.distance import DistanceLaw

POINTS = 8  # of a curve
FEWEST_ROWS, MOST_POINTS_APART = 50, 100.0  # curves begin at the rows of the fit over 100, but at 50 rows
EPSILONS = (1.0 / 30.0, 10.0)  # times the epsilon of the model

Progress = Callable[[int, int], None]


@dataclass(frozen=True, eq=False)
class Evaluation:
    """The rows on which models are judged, and how.

    Attributes
    ----------
    X, y, sensitive
        The rows, their labels and their groups.
    failure : float
        Of the certificates.
    models : int
        Number of models of a band.
    train : tuple of X and y, or None
        The training rows, for an owner who may refit models; None draws models from the law instead.
    """

    X: Any
    y: Any
    sensitive: Any
    failure: float = 0.01
    models: int = 100
    train: tuple[Any, Any] | None = None

    def band(self, model: Any, law: DistanceLaw | None, train: tuple[Any, Any] | None = None) -> ModelValues | None:
        """The values of private models like a given one: refitted if there are training rows, else drawn from a law.

        None if there is neither.
        """
        classifier = linear_classifier(model)
        rows = row_cells(self.y, self.sensitive, labels=classifier.classes)
        if train is not None:
            with said_before():
                return values_of(scores_of(refitted(model, *train, self.models), self.X), rows)
        if law is None:
            return None
        return values_of(drawn_scores(classifier, law, classifier.features(self.X), self.models), rows)

    def certify(self, model: Any, law: DistanceLaw | None) -> FairnessCertificate:
        """The certificate around a private model."""
        with said_before():
            return certificate(model, self.X, self.y, self.sensitive, distance=law, failure=self.failure)


def law_at(model: Any, rows: int, epsilon: float) -> DistanceLaw:
    """Return the law that a fit like a given one would have with other rows and another epsilon, in the same columns.

    A ValueError where no theorem covers the fit.
    """
    from sklearn.base import clone

    again = clone(model).set_params(epsilon=epsilon, ledger=None, dataset=None)
    public = replace(plan_of(model).public, rows=rows)  # with the names and types of the columns, which a clone forgets
    plan = plan_fit(again, public, len(model.classes_))
    return plan.distance_law(model.scaling_)


def curves_of(model: Any, evaluation: Evaluation, axis: str, progress: Progress | None = None) -> list[Curve]:
    """Return one panel for each notion: bound and band along an axis.

    Parameters
    ----------
    model : estimator
        A private classifier of discreet, with a numeric epsilon.
    evaluation : Evaluation
        With training rows, models are fitted again at every point, and the bound is around the first of them; without,
        the bound and the band are around `model`, whatever the number of rows and epsilon.
    axis : {"rows", "epsilon"}
        What changes.
    progress : callable, optional
        Called as progress(done, points).
    """
    if isinstance(model.epsilon, bool) or not isinstance(model.epsilon, (int, float)):
        raise ValueError("the figures vary epsilon, and the budget of this model is not stated as an epsilon.")
    points: dict[str, list[Point]] = {}
    places = _places(model, evaluation, axis)
    for done, (rows, epsilon) in enumerate(places):
        for notion, point in _points(model, evaluation, axis, rows, epsilon):
            points.setdefault(notion, []).append(point)
        if progress is not None:
            progress(done + 1, len(places))
    what = "the private model" if evaluation.train is None else "one private model"
    return [Curve(notion, axis, found, what) for notion, found in points.items()]


def _places(model: Any, evaluation: Evaluation, axis: str) -> Sequence[tuple[int, float]]:
    rows = plan_of(model).public.rows if evaluation.train is None else len(evaluation.train[1])
    if axis == "rows":
        least = min(rows, max(FEWEST_ROWS, round(rows / MOST_POINTS_APART)))
        return [(round(n), float(model.epsilon)) for n in np.geomspace(least, rows, POINTS)]
    return [(rows, float(model.epsilon * factor)) for factor in np.geomspace(*EPSILONS, POINTS)]


def _points(model: Any, evaluation: Evaluation, axis: str, rows: int, epsilon: float) -> Iterator[tuple[str, Point]]:
    train = None if evaluation.train is None else _subset(evaluation.train, rows)
    form: str | None = "best"
    if train is None:
        centre, law = model, law_at(model, rows, epsilon)
    else:
        centre, form, law = _fitted_again(model, epsilon, train)
    found = evaluation.certify(centre, law)
    band = evaluation.band(centre, law, train)
    at = float(rows) if axis == "rows" else epsilon
    for notion, total in found.aggregate.items():
        bounds = {form: total.bound} if form is not None else {}
        bounds |= {} if total.printed is None else {"printed": total.printed}
        ends = {name: (max(0.0, total.value - most), min(1.0, total.value + most)) for name, most in bounds.items()}
        yield notion, Point(at, total.value, None if band is None else band.band(notion), ends)


def _fitted_again(model: Any, epsilon: float, train: tuple[Any, Any]) -> tuple[Any, str | None, DistanceLaw]:
    """One private model, which form its bounds have (None: none), and the law of its distance."""
    from sklearn.base import clone

    with said_before():
        fitted = refitted(clone(model).set_params(epsilon=epsilon), *train, 1)[0]
        made = linear_classifier(fitted)
        if made.law is not None:
            return fitted, "best", made.law
        try:
            return fitted, "gradient", gradient_distance(fitted, *train)
        except ValueError:  # the gradient proves no distance either: the band alone is drawn
            return fitted, None, unknown_distance(made)


def _subset(train: tuple[Any, Any], rows: int) -> tuple[Any, Any]:
    """The first rows of a random order that is always the same."""
    X, y = train
    chosen = np.random.default_rng(0).permutation(len(y))[:rows]
    part = replace(X, X=X.X[chosen], y=None) if isinstance(X, Table) else np.asarray(X)[chosen]
    return part, np.asarray(y)[chosen]


@contextmanager
def said_before() -> Iterator[None]:
    """Silence warnings about leaks, for a caller who has given one about everything that is computed inside."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyLeakWarning)
        yield
