"""A fitted model in numbers and words: what each column does, its clipping, its noise, the guarantee."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet._common.blocks import Groups, Shown, as_text
from discreet._common.types import FloatArray
from discreet.estimators.reading.coefficient_noise import CoefficientNoise, coefficient_noise
from discreet.estimators.reading.linear_form import LinearForm, has_end, linear_form
from discreet.estimators.reading.prediction_only import why_prediction_only
from discreet.estimators.stored_plan import plan_of

if TYPE_CHECKING:
    from discreet.inference import Inference
    from discreet.privacy.guarantee import Guarantee
    from discreet.solvers import Plan

SHOWN_COLUMNS = 40  # of a printed table; those that can move the prediction most


@dataclass(frozen=True, eq=False)
class ModelSummary(Shown):
    """What a fitted model says; `print(summary)` is for people, `summary.to_dict()` for machines.

    Everything in it was released or is public: the guarantee of the model covers it.

    Attributes
    ----------
    estimator : str
        The class of the estimator.
    form : LinearForm
        Coefficients, intercept, ranges and classes.
    noise : CoefficientNoise
        The standard deviation of the noise in each coefficient, or why it is not known.
    prediction_only : str
        Why the coefficients are for prediction only: what moves them beside noise and the choice of the rows; empty
        where nothing does, or where the plan is not known.
    guarantee : Guarantee
        The guarantee that holds for the model.
    solver : str
        The solver that ran; "not known" for a model file whose plan cannot be made again.
    chosen_because : str
        Why "auto" took this solver; empty where the caller named it.
    scaling : str or None
        How the ranges were found, a key of the words in which a plan tells it; None if that is not known.
    inference : Inference or None
        Estimates with intervals, where the fit was planned for them.
    """

    estimator: str
    form: LinearForm
    noise: CoefficientNoise
    prediction_only: str
    guarantee: Guarantee
    solver: str
    chosen_because: str
    scaling: str | None
    inference: Inference | None = None

    @property
    def per_range(self) -> FloatArray:
        """How far each score moves while a column goes from its low to its high end; NaN where an end is missing."""
        low, high = (np.where(has_end(end), end, np.nan) for end in (self.form.low, self.form.high))
        return self.form.coef * (high - low)

    def text(self, columns: int = SHOWN_COLUMNS) -> str:
        """Return the summary for people, in lines of at most 100 characters.

        Parameters
        ----------
        columns : int, default=40
            How many columns are shown at most: those that can move the prediction most, in the order of the table.
        """
        from discreet.estimators.reading.summary_text import blocks_of

        return as_text(blocks_of(self, columns))

    def _blocks(self) -> Groups:
        from discreet.estimators.reading.summary_text import blocks_of

        return blocks_of(self, SHOWN_COLUMNS)

    def to_dict(self) -> dict[str, Any]:
        """Return the summary as JSON values; what is missing or not known is None."""
        form, noise, guarantee = self.form, self.noise, self.guarantee
        labels = form.labels
        described = labels if len(labels) > 2 else labels[1:]
        return {
            "estimator": self.estimator,
            "solver": self.solver,
            "chosen_because": self.chosen_because,
            "classes": labels or None,
            "columns": [
                {"name": name, "low": _end(low), "high": _end(high)}
                for name, low, high in zip(form.shown_names, form.low, form.high, strict=True)
            ],
            "scaling": self.scaling,
            "outputs": [
                {
                    "class": described[k] if labels else None,
                    "intercept": float(form.intercept[k]),
                    "coef_per_unit": form.coef[k].tolist(),
                    "coef_per_range": [None if np.isnan(v) else float(v) for v in self.per_range[k]],
                    **({"rate_ratio_per_unit": np.exp(form.coef[k]).tolist()} if form.link == "log" else {}),
                }
                for k in range(form.intercept.size)
            ],
            "prediction_only": self.prediction_only or None,
            "noise": {
                "kind": noise.kind,
                "why": noise.why,
                "coef_per_unit": None if noise.per_unit is None else noise.per_unit.tolist(),
                "intercept": noise.intercept,
            },
            **({} if self.inference is None else {"inference": self.inference.to_dict()}),
            "privacy": {
                "epsilon": guarantee.epsilon if guarantee.is_private else "inf",
                "delta": guarantee.delta,
                "relation": str(guarantee.relation),
                "leaks": list(guarantee.leaks),
                "meaning": guarantee.meaning.to_dict(),
            },
        }


def summarise(estimator: Any, planned: tuple[Plan | None, str] | None = None) -> ModelSummary:
    """Return the summary of a fitted estimator; a model file keeps all that is needed for it.

    Parameters
    ----------
    estimator : PrivateLinearModel
        Fitted, or from a model file.
    planned : tuple, optional
        What `plan_or_reason` returned, where that is known.
    """
    form = linear_form(estimator)
    plan, why_no_plan = planned or plan_or_reason(estimator)
    return ModelSummary(
        estimator=type(estimator).__name__,
        form=form,
        noise=coefficient_noise(estimator, plan, why_no_plan),
        prediction_only="" if plan is None else why_prediction_only(plan, getattr(estimator, "scaling_", None)),
        guarantee=estimator.guarantee_,
        solver="not known" if plan is None else plan.solver.name,
        chosen_because="" if plan is None else plan.chosen_because,
        scaling=None if plan is None else plan.scaling_plan.method,
        inference=getattr(estimator, "inference_", None),
    )


def plan_or_reason(estimator: Any) -> tuple[Plan | None, str]:
    """The plan of a fit, or why it is not known."""
    try:
        return plan_of(estimator), ""
    except ValueError as missing:
        return None, str(missing)


def _end(end: float) -> float | None:
    return float(end) if has_end(np.asarray(end)) else None
