"""Private classifiers: logistic regression and the support vector machine."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from scipy.special import expit, softmax
from sklearn.base import ClassifierMixin

from discreet.data.distributed.predictions import by_partition, gathered
from discreet.data.validation import declared_classes, no_entry_shown
from discreet.estimators.base import PrivateLinearModel, explains_parameters
from discreet.estimators.class_weights import class_weights, largest_weight
from discreet.problem.losses import ClassWeighted, Logistic, Loss, Multinomial, OneVsRest, SmoothedHinge
from discreet.problem.penalties import L1, L2, Penalty, Zero
from discreet.problem.penalties import ElasticNet as ElasticNetPenalty
from discreet.problem.problem import Problem

# How people write penalties elsewhere, and what is meant.
PENALTY_SPELLINGS = {
    **dict.fromkeys(("none", "no", "false", "zero"), "None"),
    **dict.fromkeys(("l2", "ridge", "squared_l2", "l_2"), '"l2"'),
    **dict.fromkeys(("l1", "lasso", "l_1"), '"l1"'),
    **dict.fromkeys(("elasticnet", "elastic_net", "elastic-net", "elastic", "l1l2", "l1_l2"), '"elasticnet"'),
}


@dataclass(eq=False, repr=False, kw_only=True)
class PrivateClassifier(ClassifierMixin, PrivateLinearModel):
    """Base class of the private classifiers, which need to know the labels.

    Parameters
    ----------
    classes : sequence, optional
        The public list of labels. None reads them from y, which reveals them, and warns.
    class_weight : dict, optional
        Public weights of the classes, such as {"no": 1, "yes": 10}; classes that are not named weigh 1. "balanced"
        would be read from the rows and is refused.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Coefficients per unit of the columns, of entries clipped to `ranges_`; one row for two classes.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Intercept; 0 if `fit_intercept` is False.
    classes_ : ndarray of shape (n_classes,)
        The labels, sorted.
    """

    classes: Any = None
    class_weight: Any = None

    def _problem(self, classes: int = 2) -> Problem:
        plain = super()._problem(classes)
        if self.class_weight is None:
            return plain
        weights = class_weights(self.class_weight, self._labels(classes), classes)
        return replace(plain, loss=ClassWeighted(plain.loss, weights))

    def _labels(self, classes: int) -> list[Any] | None:
        """The labels as Python values: as declared, or as seen in `fit`; None where they are not known yet."""
        if self.classes is not None:
            return list(declared_classes(self.classes).tolist())
        seen = getattr(self, "classes_", None)
        return list(seen.tolist()) if seen is not None and seen.size == classes else None

    def _strength(self, alpha: float) -> float:
        """The penalty beside weights whose largest is 1: the loss has been divided by the largest, and so is this."""
        return alpha if self.class_weight is None else alpha / largest_weight(self.class_weight)

    def _partial_fit(self, X: Any, y: Any, classes: Any = None, **metadata: Any) -> Self:
        if self.classes is None and classes is None and self._first_chunk():
            raise ValueError("partial_fit needs classes=[...]: the labels of a whole stream cannot be read off y.")
        return self._advance(X, y, metadata, classes)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True  # on the tiny tables of the checks, noise is all there is
        return tags

    def _store(self, coef: Any, intercept: Any) -> None:
        self.coef_ = np.atleast_2d(coef)
        self.intercept_ = np.atleast_1d(np.asarray(intercept, dtype=np.float64))

    @by_partition
    def decision_function(self, X: Any) -> Any:
        """Return signed scores, of shape (n_samples,) for two classes and (n_samples, n_classes) for more."""
        margins = self._margins(X)
        return margins.ravel() if self.classes_.size == 2 else margins

    @by_partition
    def predict(self, X: Any) -> Any:
        """Return the most likely class of each row."""
        scores = self.decision_function(X)
        index = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        return self.classes_[index]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the exact accuracy. NOT PRIVATE: it tells something about the rows of X and y.

        No noise is added, no cost is booked and `guarantee_` does not cover it, whatever the model states. Use it on
        public rows, or show the number to nobody who may not see the rows. `discreet.metrics.evaluate` releases the
        accuracy privately, with a confidence interval.

        Parameters
        ----------
        X : array, sparse matrix or table of shape (n_samples, n_features)
            Rows.
        y : array of shape (n_samples,)
            Their labels.
        sample_weight : array of shape (n_samples,), optional
            Weights.

        Returns
        -------
        float
            The share of the rows that are predicted right.
        """
        with no_entry_shown():
            return float(super().score(*gathered(X, y), sample_weight))


@explains_parameters
@dataclass(eq=False, repr=False, kw_only=True)
class LogisticRegression(PrivateClassifier):
    """Logistic regression with differential privacy.

    Minimises the mean log-loss plus alpha * (l1_ratio * ||w||_1 + (1 - l1_ratio) / 2 * ||w||_2^2) for
    penalty="elasticnet"; "l2" and "l1" are its two ends.

    Guarantee: the fitted model is differentially private as `guarantee_` states.

    Parameters
    ----------
    alpha : float, default=1e-5
        Strength of the penalty.
    penalty : {"l2", "l1", "elasticnet", None}, default="l2"
        Which penalty; the intercept is never penalised.
    l1_ratio : float, default=0.5
        Share of the L1 norm in the elastic net; used with penalty="elasticnet" only.
    multi_class : {"multinomial", "ovr"}, default="multinomial"
        How more than two classes are modelled: softmax, or one class against the rest. Both release one joint
        gradient, so K classes do not cost K budgets.

    See Also
    --------
    LinearSVC : The same with the hinge loss.
    discreet.solvers : The solvers and their settings.

    Notes
    -----
    Unlike scikit-learn's, the penalty is alpha times a norm beside a mean, not C times a sum.

    Examples
    --------
    >>> import numpy as np
    >>> from discreet import LogisticRegression
    >>> X = np.random.default_rng(0).uniform(-1.0, 1.0, (2000, 3))
    >>> y = (X[:, 0] > 0.0).astype(int)
    >>> model = LogisticRegression(epsilon=1.0, bounds=(-1.0, 1.0), classes=[0, 1], random_state=0)
    >>> model = model.fit(X, y)  # a seed, so that this example repeats; leave it out
    >>> bool(model.score(X, y) > 0.9)
    True
    >>> model.guarantee_.epsilon, model.guarantee_.delta
    (1.0, 2.5e-07)
    """

    alpha: float = 1e-5
    penalty: Any = "l2"
    l1_ratio: float = 0.5
    multi_class: str = "multinomial"

    def _loss(self, classes: int) -> Loss:
        if self.multi_class not in ("multinomial", "ovr"):
            raise ValueError(
                f"multi_class must be 'multinomial' (softmax, the default) or 'ovr' (one class against the rest); got "
                f"{self.multi_class!r}."
            )
        if classes == 2:
            return Logistic()
        return Multinomial(classes) if self.multi_class == "multinomial" else OneVsRest(Logistic(), classes)

    def _penalty(self) -> Penalty:
        return make_penalty(self.penalty, self._strength(self.alpha), self.l1_ratio)

    @by_partition
    def predict_proba(self, X: Any) -> Any:
        """Return class probabilities of shape (n_samples, n_classes), in the order of `classes_`."""
        scores = self.decision_function(X)
        if scores.ndim == 1:
            return np.column_stack([expit(-scores), expit(scores)])
        if self.multi_class == "multinomial":
            return softmax(scores, axis=1)
        each = expit(scores)
        total = each.sum(axis=1, keepdims=True)
        return np.where(total > 0.0, each / np.where(total > 0.0, total, 1.0), 1.0 / scores.shape[1])

    @by_partition
    def predict_log_proba(self, X: Any) -> Any:
        """Return the logarithms of the class probabilities."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))


@explains_parameters
@dataclass(eq=False, repr=False, kw_only=True)
class LinearSVC(PrivateClassifier):
    """Linear support vector classifier with differential privacy.

    Minimises the mean hinge loss max(0, 1 - y m), smoothed to a parabola within `width` of its kink, plus
    alpha / 2 * ||w||_2^2. More than two classes are modelled one against the rest, with one joint gradient.

    Guarantee: the fitted model is differentially private as `guarantee_` states.

    Parameters
    ----------
    alpha : float, default=1e-5
        Strength of the penalty.
    width : float, default=0.5
        Half-width of the smoothed part of the hinge loss, in margins.

    See Also
    --------
    LogisticRegression : Gives probabilities as well.

    Examples
    --------
    >>> import numpy as np
    >>> from discreet import LinearSVC
    >>> X = np.random.default_rng(0).uniform(-1.0, 1.0, (2000, 3))
    >>> y = np.where(X[:, 0] > 0.0, "yes", "no")
    >>> model = LinearSVC(epsilon=1.0, bounds=(-1.0, 1.0), classes=["no", "yes"], random_state=0).fit(X, y)
    >>> model.predict([[0.9, 0.0, 0.0], [-0.9, 0.0, 0.0]]).tolist()
    ['yes', 'no']
    """

    alpha: float = 1e-5
    width: float = 0.5

    def _loss(self, classes: int) -> Loss:
        hinge = SmoothedHinge(self.width)
        return hinge if classes == 2 else OneVsRest(hinge, classes)

    def _penalty(self) -> Penalty:
        return L2(self._strength(self.alpha))


def make_penalty(name: Any, alpha: float, l1_ratio: float) -> Penalty:
    """A penalty by scikit-learn's name."""
    if name is None:
        return Zero()
    if name == "l2":
        return L2(alpha)
    if name == "l1":
        return L1(alpha)
    if name == "elasticnet":
        return ElasticNetPenalty(alpha, l1_ratio)
    meant = PENALTY_SPELLINGS.get(str(name).lower())
    hint = f"; write penalty={meant}" if meant else ""
    raise ValueError(f"penalty must be 'l2', 'l1', 'elasticnet' or None; got {name!r}{hint}.")
