"""What a report is made from: the model, and if there are any its evaluation, its file and its ledger. Never a row."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from discreet._common.text import one_line
from discreet.estimators.fingerprint import fingerprint
from discreet.estimators.stored_plan import plan_of
from discreet.preprocessing.pipeline import compose_guarantees
from discreet.privacy.relation import Relation

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
    estimator, summary
        The fitted model, and what it says.
    plan, why_no_plan
        The plan of its fit, or why it is not known.
    schema : Schema or None
        What was declared about the columns of the table file.
    sha256 : str
        Of the model's file; empty for a model in memory.
    evaluation : Evaluation or None
        A private evaluation of this very model.
    total, why_no_total
        What is promised about everything on the page together; None, and the reason, where that cannot be stated.
    ledger, dataset
        The ledger that is asked, and the name of the table in it.
    purpose : str
        What the model is for, as its owner says.
    columns : int
        How many columns are shown at most.
    """

    estimator: Any
    summary: ModelSummary
    plan: Plan | None
    why_no_plan: str
    schema: Schema | None
    sha256: str
    evaluation: Evaluation | None
    total: Guarantee | None
    why_no_total: str
    ledger: Ledger | None
    dataset: str | None
    purpose: str
    columns: int

    @property
    def guarantee(self) -> Guarantee:
        """The promise about the model alone."""
        return self.summary.guarantee

    @property
    def promise(self) -> Guarantee:
        """The promise that the page speaks of: of everything on it, or of the model where that cannot be stated."""
        return self.guarantee if self.total is None else self.total

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


def gather(
    estimator: Any,
    schema: Schema | None,
    sha256: str,
    evaluation: Evaluation | None,
    ledger: Ledger | None,
    dataset: str | None,
    purpose: str,
    columns: int,
) -> Material:
    """Everything that a page may tell; an evaluation of another model is refused."""
    if evaluation is not None and evaluation.model != fingerprint(estimator):
        raise ValueError("the evaluation is not one of this model; evaluate this model, or leave the evaluation out.")
    summary = estimator.summary()
    try:
        plan, why_no_plan = plan_of(estimator), ""
    except ValueError as missing:
        plan, why_no_plan = None, str(missing)
    total, why_no_total = _total(estimator, evaluation)
    return Material(
        estimator, summary, plan, why_no_plan, schema, sha256, evaluation, total, why_no_total,
        ledger, dataset, purpose, columns,
    )  # fmt: skip


def _total(estimator: Any, evaluation: Evaluation | None) -> tuple[Guarantee | None, str]:
    """What is promised about model and evaluation together, for a person who may be in both tables."""
    model: Guarantee = estimator.guarantee_
    if evaluation is None:
        return model, ""
    other = evaluation.guarantee
    if model.relation is not other.relation:
        return None, f"the model protects {model.relation}, its evaluation {other.relation}: these do not compose"
    if model.relation is Relation.ZERO_OUT and getattr(estimator, "weighted_", False) != evaluation.weighted:
        return None, "rows were weighted in one of the two only, so that a null row is not the same in both"
    together = compose_guarantees([model, other], None).about(model.release)
    if model.is_private and other.is_private and not math.isfinite(together.epsilon):
        return None, f"no epsilon was found that holds for both at delta {together.delta:.3g}"
    return together, ""
