"""What every search offers once it is fitted: its winner's predictions, its guarantee, its tags."""

from __future__ import annotations

from typing import Any

from sklearn.base import is_classifier
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from discreet.estimators.base import PrivateLinearModel
from discreet.privacy.guarantee import Guarantee

# What the search sets itself, or what must be the same for all candidates to be comparable.
FIXED = {"epsilon", "delta", "relation", "public_n", "ledger", "dataset", "random_state", "classes", "y_bounds"}


def check_searchable(model: Any, varied: set[str], name: str) -> None:
    """Refuse estimators and varied parameters that the proofs do not cover; `name` is the parameter that names them."""
    check_scorable(model, "the search")
    fixed = sorted(FIXED & varied)
    if fixed:
        raise ValueError(f"{name} cannot vary {fixed[0]!r}: set it once, for the whole search.")


def check_scorable(model: Any, what: str) -> None:
    """Refuse estimators whose scores are not sums of bounded numbers, or that book their own cost."""
    if not isinstance(model, PrivateLinearModel):
        raise ValueError(f"estimator must be one of discreet's; got {type(model).__name__}.")
    needed = "classes" if is_classifier(model) else "y_bounds"
    declared = getattr(model, needed)
    if declared is None or isinstance(declared, str):
        raise ValueError(f"{what} needs {needed} to be declared: the scores depend on them.")
    if model.ledger is not None:
        raise ValueError(f"pass ledger= to {what}, which books all fits at once, and not to its estimator.")


def _winner_has(method: str) -> Any:
    return available_if(lambda search: hasattr(search.estimator, method))


class Winner:
    """Hands everything on to `best_estimator_`."""

    estimator: Any
    best_estimator_: Any

    def predict(self, X: Any) -> Any:
        """Return what the winner predicts."""
        return self._winner().predict(X)

    @_winner_has("predict_proba")
    def predict_proba(self, X: Any) -> Any:
        """Return the winner's class probabilities."""
        return self._winner().predict_proba(X)

    @_winner_has("predict_log_proba")
    def predict_log_proba(self, X: Any) -> Any:
        """Return the logarithms of the winner's class probabilities."""
        return self._winner().predict_log_proba(X)

    @_winner_has("decision_function")
    def decision_function(self, X: Any) -> Any:
        """Return the winner's linear predictor."""
        return self._winner().decision_function(X)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the winner's exact score: accuracy, or R^2 for regressors. NOT PRIVATE: no noise, no cost booked.

        `discreet.metrics.evaluate` releases scores privately.
        """
        return float(self._winner().score(X, y, sample_weight))

    def _winner(self) -> Any:
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_

    @property
    def guarantee_(self) -> Guarantee:
        """The promise that holds for the winner and the choice together."""
        promise: Guarantee = self._winner().guarantee_
        return promise

    @property
    def classes_(self) -> Any:
        """The labels of a classifier."""
        return self._winner().classes_

    @property
    def n_features_in_(self) -> int:
        """The number of columns seen in `fit`."""
        if "best_estimator_" not in self.__dict__:
            raise AttributeError(f"{type(self).__name__} has no n_features_in_ before fit.")
        return int(self.best_estimator_.n_features_in_)

    def __sklearn_tags__(self) -> Any:
        tags, inner = super().__sklearn_tags__(), get_tags(self.estimator)  # type: ignore[misc]
        tags.estimator_type = inner.estimator_type
        tags.classifier_tags, tags.regressor_tags = inner.classifier_tags, inner.regressor_tags
        tags.input_tags.sparse = inner.input_tags.sparse
        return tags


def check_event(model: Any, plan: Any) -> None:
    """The fit cost what was planned and paid for; anything else is an error of this package."""
    if model.plan_.event != plan.event:
        raise RuntimeError(f"{type(model).__name__} cost something else than was planned; do not publish the result.")
