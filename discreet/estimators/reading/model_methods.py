"""What every fitted estimator can do beside predicting: tell what it says, and go where it is needed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sklearn.pipeline import Pipeline

    from discreet.data.schema import Schema
    from discreet.estimators.reading.summary import ModelSummary


class ReadableModel:
    """Summary, exports and the picture in a notebook; a part of all estimators (docs/reading_models.md)."""

    def summary(self) -> ModelSummary:
        """Return what the fitted model says: coefficients, ranges, noise and guarantee.

        Guarantee: post-processing of what was released; `guarantee_` covers it.

        Returns
        -------
        ModelSummary
            `print` shows a table for people, `to_dict()` gives the same to programs.

        Examples
        --------
        >>> import numpy as np
        >>> from discreet import Ridge
        >>> X = np.random.default_rng(0).uniform(-1.0, 1.0, (1000, 2))
        >>> model = Ridge(bounds=(-1.0, 1.0), y_bounds=(-1.0, 1.0)).fit(X, X[:, 0])
        >>> [column["high"] for column in model.summary().to_dict()["columns"]]
        [1.0, 1.0]
        """
        from discreet.estimators.reading.summary import summarise

        return summarise(self)

    def to_pipeline(self) -> Pipeline:
        """Return a fitted pipeline of scikit-learn that predicts the same: a clipper, then a plain linear model.

        For tools that know the models of scikit-learn, such as explainers: the second step is linear in what the first
        one returns. Its classes are `LinearRegression`, `LogisticRegression`, `LinearSVC` and, for one class against
        the rest with probabilities, `SGDClassifier`.

        Guarantee: post-processing of what was released; `guarantee_` covers it. The pipeline itself has no
        `guarantee_`, and fitting it again would not be private.

        Returns
        -------
        Pipeline
            With the steps "clip" (`discreet.preprocessing.ColumnClipper`) and "model".

        Examples
        --------
        >>> import numpy as np
        >>> from discreet import Ridge
        >>> X = np.random.default_rng(0).uniform(-1.0, 1.0, (1000, 2))
        >>> model = Ridge(bounds=(-1.0, 1.0), y_bounds=(-1.0, 1.0)).fit(X, X[:, 0])
        >>> bool(np.allclose(model.to_pipeline().predict(9.0 * X), model.predict(9.0 * X)))
        True
        """
        from discreet.estimators.reading.linear_form import linear_form
        from discreet.estimators.reading.pipeline import pipeline_of

        return pipeline_of(linear_form(self))

    def to_onnx(self, path: str | Path | None = None) -> Any:
        """Return the fitted model as an ONNX graph in double precision, and write it to a file if asked.

        The input "X" has one row per prediction and the columns of the fit in their order, as float64. A regression
        has the output "prediction"; a classifier "label", "score" and, if it has them, "probabilities". Rows with NaN,
        which `predict` refuses, get NaN as score and a label that means nothing.

        Guarantee: post-processing of what was released; `guarantee_` covers it.

        Parameters
        ----------
        path : str or Path, optional
            Where to write the model.

        Returns
        -------
        onnx.ModelProto
            The checked model; its metadata name the columns and the guarantee.

        Raises
        ------
        RuntimeError
            The package onnx is not installed.
        """
        from discreet.estimators.reading.linear_form import linear_form
        from discreet.estimators.reading.onnx_graph import onnx_model

        model: Any = self
        form = linear_form(model)
        made = onnx_model(form, type(model).__name__, model.guarantee_)
        if path is not None:
            Path(path).write_bytes(made.SerializeToString())
        return made

    def to_sql(
        self,
        table: str | Sequence[str],
        *,
        columns: Iterable[str] | None = None,
        schema: Schema | None = None,
        keep: str | Iterable[str] = (),
        score: bool = False,
        proba: bool = False,
    ) -> str:
        """Return a SELECT statement of standard SQL that scores the rows of a table as `predict` does.

        A NULL in a column with a coefficient gives NULL; columns whose coefficients are all 0 are not asked for.

        Guarantee: post-processing of what was released; `guarantee_` covers it.

        Parameters
        ----------
        table : str or sequence of str
            The name of the table, quoted as it is; a sequence such as ("clinic", "patients") for schema and table.
        columns : iterable of str, optional
            The names of the columns in the table, in the order of the fit; None means those of the fit.
        schema : Schema, optional
            That of a model which `discreet fit` trained on a file: its category columns are compared with their
            categories, and a NULL becomes what it says about missing values. Dates are refused. `discreet export`
            passes it by itself.
        keep : str or iterable of str, optional
            Columns of the table that the result repeats, such as a key.
        score : bool, default=False
            Whether a classifier's result has its decision function too.
        proba : bool, default=False
            Whether a classifier's result has its probabilities too.

        Returns
        -------
        str
            The statement, without a semicolon. Its result has the kept columns, "prediction", "score" (with more than
            two classes "score_" and the class) and "probability_" and the class.

        Examples
        --------
        >>> import numpy as np, sqlite3
        >>> from discreet import Ridge
        >>> X = np.random.default_rng(0).uniform(-1.0, 1.0, (1000, 2))
        >>> model = Ridge(bounds=(-1.0, 1.0), y_bounds=(-1.0, 1.0)).fit(X, X[:, 0])
        >>> database = sqlite3.connect(":memory:")
        >>> _ = database.execute("CREATE TABLE rows (a REAL, b REAL)")
        >>> _ = database.execute("INSERT INTO rows VALUES (0.5, 0.1)")
        >>> ((found,),) = database.execute(model.to_sql("rows", columns=["a", "b"]))
        >>> bool(np.isclose(found, model.predict([[0.5, 0.1]])[0]))
        True
        """
        from discreet.estimators.reading.linear_form import linear_form
        from discreet.estimators.reading.sql import sql_query

        return sql_query(linear_form(self), table, columns, schema, keep, score, proba)

    @property
    def _repr_html_(self) -> Callable[[], str]:
        """The picture for notebooks that ask for HTML; absent, as in scikit-learn, if it is set to show text."""
        from discreet.estimators.reading.html import privacy_line

        draw = super()._repr_html_  # type: ignore[misc]
        return lambda: draw() + privacy_line(self)

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        from discreet.estimators.reading.html import privacy_line

        bundle: dict[str, str] = super()._repr_mimebundle_(**kwargs)  # type: ignore[misc]
        if "text/html" in bundle:
            bundle["text/html"] += privacy_line(self)
        return bundle
