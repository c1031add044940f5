"""Private classifiers: logistic regression and the support vector machine."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit, softmax
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets

from discreet._common.exceptions import PrivacyLeakWarning
from discreet.estimators.base import PrivateLinearModel, make_penalty, only_weights
from discreet.problem.losses import Logistic, Loss, Multinomial, OneVsRest, SmoothedHinge
from discreet.problem.penalties import L2, Penalty


@dataclass(eq=False, repr=False, kw_only=True)
class PrivateClassifier(ClassifierMixin, PrivateLinearModel):
    """Base class of the private classifiers, which need to know the labels.

    Parameters
    ----------
    classes : sequence, optional
        The public list of labels. None reads them from y, which reveals them, and warns.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Coefficients; one row for two classes.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Intercept; 0 if `fit_intercept` is False.
    classes_ : ndarray of shape (n_classes,)
        The labels, sorted.
    """

    classes: Any = None

    def fit(self, X: Any, y: Any, **metadata: Any) -> PrivateClassifier:
        """Fit the model privately.

        Parameters
        ----------
        X : array, sparse matrix or table of shape (n_samples, n_features)
            The private rows; finite numbers.
        y : array of shape (n_samples,)
            The labels, each one of `classes`.
        sample_weight : array of shape (n_samples,), optional
            Weights between 0 and 1, passed by name. They are as private as the rows. Larger weights are refused: a
            row may not count more than once.

        Returns
        -------
        self
            The fitted estimator itself.

        Guarantee: what is learned is differentially private as `guarantee_` states; the ledger, if there is one,
        grants the cost before anything is computed from the rows.
        """
        table, labels, owned = self._validate(X, y)
        weight = only_weights(metadata, labels.shape[0])
        check_classification_targets(labels)
        self.classes_ = self._classes(labels, weight)
        leaks = () if self.classes is not None else ("the classes",)
        self._fit(table, self._encode(labels), owned, self.classes_.size, weight, leaks)
        return self

    def _partial_fit(self, X: Any, y: Any, classes: Any = None, **metadata: Any) -> PrivateClassifier:
        first = getattr(self, "stream_", None) is None
        table, labels, owned = self._validate(X, y, reset=first)
        weight = only_weights(metadata, labels.shape[0])
        check_classification_targets(labels)
        if first:
            declared = self.classes if self.classes is not None else classes
            if declared is None:
                raise ValueError("partial_fit needs classes=[...]: the labels of a whole stream cannot be read off y.")
            self.classes_ = distinct_classes(declared)
        self._advance(table, self._encode(labels), owned, self.classes_.size, weight)
        return self

    def _classes(self, labels: Any, weight: Any) -> Any:
        if self.classes is not None:
            return distinct_classes(self.classes)
        classes = np.unique(labels if weight is None else labels[weight > 0.0])
        if classes.size < 2:
            raise ValueError(
                f"y contains one class only{' among rows of positive sample_weight' if weight is not None else ''}, "
                f"{classes.tolist()}; pass classes=[...] with every label that may occur."
            )
        warnings.warn(
            "the classes were read from y, which reveals them; pass classes=[...] if the set of labels is not public.",
            PrivacyLeakWarning,
            stacklevel=3,
        )
        return classes

    def _encode(self, labels: Any) -> Any:
        try:
            codes = np.searchsorted(self.classes_, labels)
            known = self.classes_[np.minimum(codes, self.classes_.size - 1)] == labels
        except TypeError:
            known = np.zeros(1, dtype=bool)
        if not np.all(known):
            raise ValueError(
                f"y holds labels that are not in classes={self.classes_.tolist()}; declare every label that may occur."
            )
        return 2.0 * codes - 1.0 if self.classes_.size == 2 else codes.astype(np.float64)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True  # on the tiny tables of the checks, noise is all there is
        return tags

    def _store(self, coef: Any, intercept: Any) -> None:
        self.coef_ = np.atleast_2d(coef)
        self.intercept_ = np.atleast_1d(np.asarray(intercept, dtype=np.float64))

    def decision_function(self, X: Any) -> Any:
        """Return signed scores, of shape (n_samples,) for two classes and (n_samples, n_classes) for more."""
        margins = self._margins(X)
        return margins.ravel() if self.classes_.size == 2 else margins

    def predict(self, X: Any) -> Any:
        """Return the most likely class of each row."""
        scores = self.decision_function(X)
        index = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        return self.classes_[index]


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
            raise ValueError(f"multi_class must be 'multinomial' or 'ovr'; got {self.multi_class!r}.")
        if classes == 2:
            return Logistic()
        return Multinomial(classes) if self.multi_class == "multinomial" else OneVsRest(Logistic(), classes)

    def _penalty(self) -> Penalty:
        return make_penalty(self.penalty, self.alpha, self.l1_ratio)

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

    def predict_log_proba(self, X: Any) -> Any:
        """Return the logarithms of the class probabilities."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))


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
        return L2(self.alpha)


def distinct_classes(classes: Any) -> Any:
    """The declared labels, sorted."""
    distinct = np.unique(np.asarray(classes))
    if distinct.size < 2:
        raise ValueError(f"classes must hold at least two labels; got {classes!r}.")
    return distinct
