"""What a report is made from: the model, and if there are any its evaluation, its file and its ledger. Never a row."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from discreet._common.text import one_line
from discreet.estimators.fingerprint import fingerprint
from discreet.estimators.reading.summary import plan_or_reason, summarise
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
    estimator
        The fitted model.
    schema : Schema or None
        What was declared about the columns of the table file.
    sha256 : str
        Of the model's file; empty for a model in memory.
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
        """What is promised for everything on the page together, or why that cannot be stated."""
        return _total(self.estimator, self.evaluation)

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


def _total(estimator: Any, evaluation: Evaluation | None) -> tuple[Guarantee | None, str]:
    """What is promised about model and evaluation together, for a person who may be in both tables."""
    model: Guarantee = estimator.guarantee_
    if evaluation is None:
        return model, ""
    other = evaluation.guarantee
    if model.relation is not other.relation:
        return None, f"the model protects {model.relation}, its evaluation {other.relation}: these do not compose"
    if model.unit != other.unit:
        return None, (
            "the model and its evaluation do not both protect whole persons, and nothing follows for a person who has "
            "several rows"
        )
    if model.relation is Relation.ZERO_OUT and getattr(estimator, "weighted_", False) != evaluation.weighted:
        return None, "rows were weighted in one of the two only, so that a null row is not the same in both"
    together = compose_guarantees([model, other], None).about(model.release)
    if model.is_private and other.is_private and not math.isfinite(together.epsilon):
        return None, f"no epsilon was found that holds for both at delta {together.delta:.3g}"
    return together, ""
