"""A report from a fitted model or its file, and, if there are any, from its evaluation and its ledger. Never a row."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sklearn.utils.validation import check_is_fitted

from discreet._common.checks import whole
from discreet._common.text import one_line
from discreet.estimators.base import PrivateLinearModel
from discreet.estimators.fingerprint import fingerprint
from discreet.estimators.reading.summary import plan_or_reason, summarise
from discreet.preprocessing.pipeline import compose_guarantees
from discreet.privacy.relation import Relation
from discreet.privacy.signatures import NOT_SIGNED, signature_of
from discreet.report.blocks import Report
from discreet.report.sections.model import card, evaluated, planned, says, signature, trained
from discreet.report.sections.promise import booked, key_numbers, notices, promise
from discreet.report.signed import existing_ledger

if TYPE_CHECKING:
    from discreet.data.schema import Schema
    from discreet.estimators.reading.summary import ModelSummary
    from discreet.metrics import Evaluation
    from discreet.privacy.guarantee import Guarantee
    from discreet.privacy.ledger import Ledger
    from discreet.solvers import Plan


NAME = 60  # characters of the target's name in a title, at most


@dataclass(frozen=True, eq=False)
class Material:
    """Everything that a page may tell.

    Attributes
    ----------
    estimator
        The fitted model.
    schema : Schema or None
        What was declared about the columns of the table file.
    sha256 : str
        Of the model's file; empty for a model in memory.
    signed : tuple of str
        Who answers for the files, one line each; none for what is in memory.
    evaluation : Evaluation or None
        A private evaluation of this very model; one of another model is refused.
    ledger, dataset
        The ledger that is asked, and the name of the table in it.
    purpose : str
        What the model is for, as its owner says.
    columns : int
        How many columns are shown at most.
    """

    estimator: Any
    schema: Schema | None
    sha256: str
    signed: tuple[str, ...]
    evaluation: Evaluation | None
    ledger: Ledger | None
    dataset: str | None
    purpose: str
    columns: int

    def __post_init__(self) -> None:
        if self.evaluation is not None and self.evaluation.model != fingerprint(self.estimator):
            raise ValueError(
                "the evaluation is not one of this model; evaluate this model, or leave the evaluation out."
            )

    @cached_property
    def summary(self) -> ModelSummary:
        """What the model says."""
        return summarise(self.estimator, self.plan_or_reason)

    @cached_property
    def plan_or_reason(self) -> tuple[Plan | None, str]:
        """The plan of the fit, or why it is not known."""
        return plan_or_reason(self.estimator)

    @cached_property
    def total_or_reason(self) -> tuple[Guarantee | None, str]:
        """What is promised for everything on the page together, for a person who may be in both tables, or why not."""
        model, evaluation = self.estimator.guarantee_, self.evaluation
        if evaluation is None:
            return model, ""
        other = evaluation.guarantee
        if model.relation is not other.relation:
            return None, f"the model protects {model.relation}, its evaluation {other.relation}: these do not compose"
        if model.unit != other.unit:
            return None, (
                "the model and its evaluation do not both protect whole persons, and nothing follows for a person who "
                "has several rows"
            )
        if model.relation is Relation.ZERO_OUT and getattr(self.estimator, "weighted_", False) != evaluation.weighted:
            return None, "rows were weighted in one of the two only, so that a null row is not the same in both"
        together = compose_guarantees([model, other], None).about(model.release)
        if model.is_private and other.is_private and not math.isfinite(together.epsilon):
            return None, f"no epsilon was found that holds for both at delta {together.delta:.3g}"
        return together, ""

    @property
    def guarantee(self) -> Guarantee:
        """The promise about the model alone."""
        return self.summary.guarantee

    @property
    def promise(self) -> Guarantee:
        """The promise that the page speaks of: of everything on it, or of the model where that cannot be stated."""
        return self.total_or_reason[0] or self.guarantee

    @property
    def promises(self) -> tuple[Guarantee, ...]:
        """The promises about each result on the page."""
        return (self.guarantee,) if self.evaluation is None else (self.guarantee, self.evaluation.guarantee)

    @property
    def is_private(self) -> bool:
        """Whether every result on the page is private."""
        return all(promise.is_private for promise in self.promises)

    @property
    def leaks(self) -> tuple[str, ...]:
        """What results on the page tell outside their promises."""
        return tuple(dict.fromkeys(leak for promise in self.promises for leak in promise.leaks))

    @property
    def target(self) -> str | None:
        """The name of the column that is predicted, where it is known."""
        return None if self.schema is None else self.schema.target.name

    @property
    def title(self) -> str:
        """The model in a few words."""
        return self.summary.estimator + ("" if self.target is None else f" for {one_line(self.target, NAME)}")


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
    signed = _signers({"model": model, "evaluation": evaluation})
    if isinstance(evaluation, (str, Path)):
        from discreet.metrics import load_evaluation

        evaluation = load_evaluation(evaluation)
    shown = whole("columns", columns, least=0)
    material = Material(estimator, schema, sha256, signed, evaluation, existing_ledger(ledger), dataset, purpose, shown)
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


def _signers(sources: Mapping[str, Any]) -> tuple[str, ...]:
    """Who answers for each of the files; one that was changed after it was signed is a ValueError."""
    files = {what: path for what, path in sources.items() if isinstance(path, (str, Path))}
    return tuple(f"File of the {what}. {signature_of(path) or NOT_SIGNED}" for what, path in files.items())
