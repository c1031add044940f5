"""A fitted model as a pipeline of scikit-learn: clip the columns, then a plain linear model."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn import linear_model, svm
from sklearn.pipeline import Pipeline

from discreet.estimators.reading.column_clipper import ColumnClipper
from discreet.estimators.reading.linear_form import LinearForm


def pipeline_of(form: LinearForm) -> Pipeline:
    """The pipeline whose predictions are those of the form."""
    return Pipeline([("clip", _clipper(form)), ("model", _model(form))])


def _clipper(form: LinearForm) -> ColumnClipper:
    clipper: Any = ColumnClipper(form.low.copy(), form.high.copy())
    clipper.low_, clipper.high_, clipper.n_features_in_ = clipper.low, clipper.high, form.columns
    if form.names is not None:
        clipper.feature_names_in_ = np.array(form.names, dtype=object)
    return clipper


def _model(form: LinearForm) -> Any:
    """A linear model of scikit-learn that scores as the form does; its parameters play no part in that."""
    if form.classes is None:
        model: Any = linear_model.LinearRegression()
        if form.link == "log":
            kinds = {1: linear_model.PoissonRegressor, 2: linear_model.GammaRegressor}
            # Fitted to nothing: its link is made in fit alone.
            model = kinds[form.power or 1]().fit(np.zeros((2, form.columns)), np.ones(2))
        model.coef_, model.intercept_ = form.coef[0].copy(), float(form.intercept[0])
    else:
        # Of scikit-learn's classes this one alone normalises the probabilities of one class against the rest.
        one_vs_rest = linear_model.SGDClassifier(loss="log_loss")
        softmax = linear_model.LogisticRegression()
        model = {"none": svm.LinearSVC(), "one_vs_rest": one_vs_rest}.get(form.link, softmax)
        model.coef_, model.intercept_ = form.coef.copy(), form.intercept.copy()
        model.classes_ = form.classes.copy()
    model.n_features_in_ = form.columns
    return model
