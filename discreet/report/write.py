"""A report from a fitted model or from its file."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sklearn.utils.validation import check_is_fitted

from discreet._common.checks import whole
from discreet.estimators.base import PrivateLinearModel
from discreet.report.blocks import Report
from discreet.report.material import Material
from discreet.report.sections.card import card, signature
from discreet.report.sections.coefficients import says
from discreet.report.sections.evaluated import evaluated
from discreet.report.sections.ledger import booked
from discreet.report.sections.promise import key_numbers, notices, promise
from discreet.report.sections.trained import planned, trained

if TYPE_CHECKING:
    from discreet.metrics import Evaluation
    from discreet.privacy.ledger import Ledger

SHOWN_COLUMNS = 30


def report_of(
    model: Any,
    *,
    evaluation: Evaluation | str | Path | None = None,
    ledger: Ledger | str | None = None,
    dataset: str | None = None,
    purpose: str = "",
    columns: int = SHOWN_COLUMNS,
) -> Report:
    """Return the report on a fitted model: what it is, what is promised, what it says, and how good it is.

    Guarantee: post-processing of what the model and its evaluation released; no row is read.

    Parameters
    ----------
    model : fitted estimator, str or Path
        The model, or its file; a file also tells the name of the target and its hash.
    evaluation : Evaluation, str or Path, optional
        A private evaluation of this model, or its file. Its cost is stated, alone and together with that of the model.
    ledger : Ledger or str, optional
        The ledger in which the costs were booked, or its address. It is asked for the entries of the model, and whether
        its records are intact.
    dataset : str, optional
        The name of the table in the ledger, if the model does not tell it.
    purpose : str, default=""
        What the model is for. If empty, the page has lines to fill in by hand.
    columns : int, default=30
        How many columns are shown at most, those that can move the prediction most.

    Returns
    -------
    Report
        `html()` and `markdown()` return it as a text.

    Examples
    --------
    >>> import numpy as np
    >>> from discreet import Ridge
    >>> from discreet.report import report_of
    >>> X = np.random.default_rng(0).uniform(-1.0, 1.0, (1000, 2))
    >>> model = Ridge(bounds=(-1.0, 1.0), y_bounds=(-1.0, 1.0)).fit(X, X[:, 0])
    >>> report = report_of(model)
    >>> [section.title for section in report.sections][:3]
    ['What was trained, and on what', 'The promise', 'What the model says']
    >>> report.html().startswith("<!DOCTYPE html>")
    True
    """
    estimator, schema, sha256 = _read(model)
    if isinstance(evaluation, (str, Path)):
        from discreet.metrics import load_evaluation

        evaluation = load_evaluation(evaluation)
    shown = whole("columns", columns, least=0)
    material = Material(estimator, schema, sha256, evaluation, _existing(ledger), dataset, purpose, shown)
    private = "" if material.is_private else " without privacy"
    return Report(
        title=f"{material.title}: report on a model{private}",
        subtitle="For the person who answers for the data: what was done with the table, and what is promised.",
        notices=notices(material),
        numbers=key_numbers(material),
        sections=tuple(part(material) for part in PARTS),
    )


PARTS = (trained, promise, says, evaluated, planned, booked, card, signature)


def write_report(
    model: Any, path: str | Path, *, markdown: bool | None = None, overwrite: bool = False, **more: Any
) -> Report:
    """Write the report on a fitted model to a file, as one page of HTML without links to anything outside.

    Guarantee: post-processing of what the model and its evaluation released; no row is read.

    Parameters
    ----------
    model : fitted estimator, str or Path
        The model, or its file.
    path : str or Path
        Where to write.
    markdown : bool, optional
        Whether to write Markdown, without pictures; None means: if the name ends in .md.
    overwrite : bool, default=False
        Whether a file that exists may be replaced; else it is a FileExistsError.
    more
        As for `report_of`.

    Returns
    -------
    Report
        What was written.

    Examples
    --------
    >>> import numpy as np
    >>> from discreet import Ridge
    >>> from discreet.report import write_report
    >>> X = np.random.default_rng(0).uniform(-1.0, 1.0, (1000, 2))
    >>> model = Ridge(bounds=(-1.0, 1.0), y_bounds=(-1.0, 1.0)).fit(X, X[:, 0])
    >>> _ = write_report(model, "report.html", purpose="an example")
    """
    report = report_of(model, **more)
    plain = is_markdown(path) if markdown is None else markdown
    text = report.markdown() if plain else report.html()
    with open(path, "w" if overwrite else "x", encoding="utf-8") as file:
        file.write(text)
    return report


def is_markdown(path: str | Path) -> bool:
    """Whether the name of a file asks for Markdown."""
    return Path(path).suffix.lower() in (".md", ".markdown")


def _read(model: Any) -> tuple[Any, Any, str]:
    """The estimator, and for a file its schema and its hash."""
    if not isinstance(model, (str, Path)):
        if not isinstance(model, PrivateLinearModel):
            raise ValueError(f"model must be a fitted estimator of discreet or its file; got {type(model).__name__}.")
        check_is_fitted(model, "coef_")
        return model, None, ""
    from discreet.estimators.model_file import read_model

    stored = read_model(model)
    return stored.estimator, stored.schema, hashlib.sha256(Path(model).read_bytes()).hexdigest()


def _existing(ledger: Ledger | str | None) -> Ledger | None:
    """The ledger; one that is not there is refused, since it would look like one without entries."""
    if ledger is None:
        return None
    from discreet.privacy.ledger import Ledger as Book

    return Book.of(ledger).existing()
