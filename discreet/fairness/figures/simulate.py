"""Values of fairness notions for many models at once: private fits, or models drawn from the law of a distance."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet._common.checks import whole
from discreet._common.types import FloatArray
from discreet.fairness.cells import RowCells
from discreet.fairness.certificates.classifier import LinearClassifier, linear_classifier
from discreet.fairness.certificates.margins import gaps_of
from discreet.fairness.quantities import Quantity, quantities

if TYPE_CHECKING:
    from discreet._common.types import Progress
    from discreet.theory.distance import DistanceLaw


@dataclass(frozen=True, eq=False)
class ModelValues:
    """What several models are worth on the same rows.

    Attributes
    ----------
    asked : list of Quantity
        The quantities of all notions, in the order of a certificate's statements.
    values : array of shape (models, quantities)
        NaN for a group without rows.
    """

    asked: list[Quantity]
    values: FloatArray

    @property
    def models(self) -> int:
        return self.values.shape[0]

    @property
    def notions(self) -> list[str]:
        return list(dict.fromkeys(quantity.notion for quantity in self.asked))

    def aggregate(self, notion: str) -> FloatArray:
        """The mean over groups of the absolute values, for each model; groups without rows are left out."""
        chosen = [place for place, quantity in enumerate(self.asked) if quantity.notion == notion and quantity.defined]
        if not chosen:
            return np.full(self.models, np.nan)
        return np.asarray(np.abs(self.values[:, chosen]).mean(axis=1))

    def band(self, notion: str) -> tuple[float, float]:
        """The smallest and the largest of the aggregates."""
        found = self.aggregate(notion)
        return float(found.min()), float(found.max())


def values_of(
    scores: Iterable[FloatArray], rows: RowCells, notions: Iterable[str] | str | None = None, favourable: Any = None
) -> ModelValues:
    """Return the values of all notions for models given by their scores.

    Parameters
    ----------
    scores : iterable of arrays of shape (rows, outputs)
        One array for each model.
    rows : RowCells
        The label and the group of each row.
    notions, favourable
        As in `certificate`.
    """
    counts = rows.counts
    right = [rows.sums(gaps_of(score, rows.label)[1]) for score in scores]
    if not right:
        raise ValueError("there are no models.")
    asked = quantities(rows.table(np.zeros(rows.label.size)), notions, favourable)
    rates = np.divide(np.array(right), counts, out=np.zeros((len(right), *rows.shape)), where=counts > 0.0)
    weights = np.array([quantity.weights for quantity in asked])
    constants = np.array([quantity.constant for quantity in asked])
    return ModelValues(asked, constants + np.tensordot(rates, weights, axes=([1, 2], [1, 2])))


def drawn_scores(
    classifier: LinearClassifier, law: DistanceLaw, table: Any, count: int, seed: int | None = None
) -> Iterator[FloatArray]:
    """Yield the scores of models drawn around a classifier, in a uniformly random direction of the law's norm.

    The distance has the survival function that the law proves. For Gaussian and for spherical Laplace noise this is
    how private models lie around their noise-free twin; for other laws, which only bound the distance, the drawn
    models lie further out than private models do.

    Parameters
    ----------
    classifier : LinearClassifier
        The centre.
    law : DistanceLaw
        In the columns of the classifier.
    table : array
        What `LinearClassifier.features` returned.
    count : int
        Number of models.
    seed : int, optional
        Nothing is released here, so that ordinary random numbers are enough.
    """
    rng = np.random.default_rng(seed)
    rows, centre = classifier.rows(table), classifier.weights
    for _ in range(whole("count", count, least=1)):
        direction = rng.standard_normal(centre.shape)
        distance = law.radius(float(rng.uniform(1e-9, 1.0)))
        step = direction * (distance / np.linalg.norm(direction)) / np.sqrt(law.weights)
        yield rows @ (centre + step).T


def refitted(model: Any, X: Any, y: Any, count: int, progress: Progress | None = None) -> list[Any]:
    """Return private models that are fitted like a given one, each with fresh noise.

    Guarantee: none for all of them together: every fit is one more release of the rows, so that only the owner of the
    rows may see the result. No ledger is charged.

    Parameters
    ----------
    model : estimator
        A classifier of discreet; its parameters are used, without its ledger and seed.
    X, y
        The training rows.
    count : int
        Number of fits.
    progress : callable, optional
        Called as progress(done, count).
    """
    from sklearn.base import clone

    made = []
    for done in range(whole("count", count, least=1)):
        again = clone(model).set_params(ledger=None, dataset=None, random_state=None, verbose=0)
        made.append(again.fit(X, y))
        if progress is not None:
            progress(done + 1, count)
    return made


def scores_of(models: Iterable[Any], table: Any) -> Iterator[FloatArray]:
    """Yield the scores of fitted models for the same rows."""
    for model in models:
        classifier = linear_classifier(model)
        yield classifier.scores(classifier.features(table))
