"""What a search with a random number of trials will do and cost, fixed before a row is read, and one trial of it.

Proof: docs/guarantees/private-search.md.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing

from discreet._common.text import facts
from discreet._common.types import FloatArray, IndexArray
from discreet.estimators.task import SHRINK
from discreet.model_selection.search_plan import TableShape, costliest
from discreet.privacy import accounting
from discreet.privacy.budget import Budget
from discreet.privacy.mechanisms import RandomTrials, additive, bounded_fractions
from discreet.privacy.random.generator import RandomGenerator
from discreet.privacy.relation import Relation
from discreet.privacy.release import ReleasePlan

LESS = (*SHRINK, 0.5, 0.7, 0.9)  # of a trial's budget, given up in turn until the accountant agrees


def check_fit(plan: ReleasePlan, model: Any, budget: Budget, events: tuple[Any, ...]) -> None:
    """The fit cost what was planned and paid for; anything else is an error of this package."""
    event, known = model.plan_.event, budget.kind in ("gdp", "pure")
    if event not in events and not (known and accounting.fits(event, budget, plan.public.relation)):
        raise RuntimeError(f"{type(model).__name__} cost something else than planned; do not publish the result.")


def _in_words(plan: ReleasePlan) -> str:
    law, deviation, promise = plan.trials.law, plan.score.deviation(bounded_fractions(1)), plan.guarantee
    name = "geometric" if law.eta == 1.0 else "logarithmic"
    last = "the model of the best trial" if plan.final is None else f"fitted again on all rows with {plan.final}"
    lines = {
        "trials": f"{law.mean:.4g} expected, at least 1 ({name} law); their number is not released",
        "fit of a trial": f"{plan.rows - plan.held_out:,} rows with {plan.trial}",
        "score of a trial": f"{plan.held_out:,} rows, noise of standard deviation {deviation / plan.held_out:.2g}",
        "winner": last,
        "in all": f"epsilon = {promise.epsilon:g}, delta = {promise.delta:g}, relation {str(promise.relation)!r}",
    }
    return facts(lines.items())


@dataclass(frozen=True)
class TrialsTerms:
    """What the user asked for: the whole budget, the number of trials, and the share of the search if it refits."""

    budget: Budget
    trials: RandomTrials
    search_share: float | None
    listed: bool  # whether all candidates are known beforehand
    public_inputs: tuple[str, ...] = ()  # of all candidates, in words for statements


def plan_trials(models: Sequence[Any], shape: TableShape, terms: TrialsTerms) -> ReleasePlan:
    """Give every trial as much as the budget allows; `models` are not fitted: all candidates, or an example.

    Guarantee: the best of the trials, with the last fit if there is one, keeps the budget.
    """
    relation, share = Relation(models[0].relation), terms.search_share
    budget = terms.budget if share is None else terms.budget.part(share)
    # Of one trial, as a multiplier, if it has Gaussian noise, or Laplace noise for a pure budget.
    noise = accounting.calibrate(lambda z: terms.trials.event([_event(budget, z)]), budget, relation)
    for less in LESS:
        plan = _planned(models, shape, terms, noise / math.sqrt(1.0 - less), less)
        if accounting.fits(plan.event, terms.budget, relation):
            return plan
    raise ValueError("the costs of these candidates do not add up to the budget; search over settings of one solver.")


def _planned(models: Sequence[Any], shape: TableShape, terms: TrialsTerms, noise: float, less: float) -> ReleasePlan:
    """The plan with this noise for each trial; the last fit gets what is left, and `less` than that."""
    relation, budget, final = Relation(models[0].relation), terms.budget, None
    trial = _part(budget, noise, terms.listed)
    score = additive(trial, 1.0)
    events = [score.event, *_events(models, shape, trial, False, terms.listed)]
    if budget.kind == "pure" and not terms.listed:  # of such a fit only its epsilon is known, not its noise
        events.append(accounting.pure_event(trial.amount))
    best = event = terms.trials.event(events)
    last: list[Any] = []
    if terms.search_share is not None:
        left = accounting.calibrate(lambda z: accounting.compose([best, _event(budget, z)]), budget, relation)
        final = _part(budget, left / math.sqrt(1.0 - less), terms.listed)
        last = _events(models, shape, final, True, terms.listed) or [_event(budget, left)]
        event = accounting.compose([best, costliest(last, budget, relation)])
    settings = {"rows": shape.rows, "held_out": shape.held_out, "trial": trial, "final": final}
    settings |= {"trial_events": tuple(events), "final_events": tuple(last)}
    parts, public = {"trials": terms.trials, "score": score}, shape.public(relation)
    plan = ReleasePlan("random search", public, budget, parts, settings, event, terms.public_inputs)
    return replace(plan, text=_in_words(plan))


def _events(models: Sequence[Any], shape: TableShape, budget: Budget, everything: bool, listed: bool) -> list[Any]:
    """What each candidate costs with this budget; an example that stands for others only has to have a plan."""
    events = [shape.plan(model, budget, everything).event for model in models]
    return events if listed else []


def _event(budget: Budget, noise: float) -> Any:
    return accounting.pure_event(1.0 / noise) if budget.kind == "pure" else accounting.gaussian_event(noise)


def _part(budget: Budget, noise: float, listed: bool) -> Budget:
    """The budget that this noise spends, in the definition in which the candidates are planned.

    Candidates that are not known beforehand must keep it whatever they are, in Gaussian DP; of those that are known
    the accountant is asked, so that sampled fits keep their amplification.
    """
    if budget.kind == "pure":
        return Budget.pure(1.0 / noise)
    epsilon = accounting.gaussian_epsilon(budget.delta, 1.0 / noise) if budget.delta else 0.0
    return Budget(epsilon, budget.delta) if listed and epsilon > 0.0 else Budget.gdp(1.0 / noise)


@dataclass(frozen=True, eq=False)
class Trial:
    """What a trial would release: its settings, its model and its noisy score; and what it warned of."""

    settings: dict[str, Any]
    model: Any
    score: float
    warnings: tuple[warnings.WarningMessage, ...] = ()


@dataclass(frozen=True, eq=False)
class Parts:
    """The rows to fit on and those held out, with their weights."""

    X_fit: Any
    y_fit: Any
    weight_fit: FloatArray
    X_out: Any
    y_out: Any
    weight_out: FloatArray


@dataclass(frozen=True, eq=False)
class Split:
    """Positions of the rows to fit on and of those held out, the same for all trials."""

    fit: IndexArray
    out: IndexArray

    @classmethod
    def draw(cls, plan: ReleasePlan, rows: int, relation: Relation, rng: RandomGenerator) -> Split:
        """Positions that no row decides about; under add/remove each row has a coin of its own.

        A fixed number of rows held out would change the place of other rows when one is added.
        """
        if relation is Relation.ADD_REMOVE:
            held_out = rng.integers(plan.rows, rows) < plan.held_out
        else:
            held_out = np.zeros(rows, dtype=bool)
            held_out[rng.permutation(rows)[: plan.held_out]] = True
        return cls(np.flatnonzero(~held_out), np.flatnonzero(held_out))

    def parts(self, X: Any, y: Any, weight: FloatArray) -> Parts:
        """The rows at these positions."""
        X_fit, y_fit, X_out, y_out = (_safe_indexing(a, at) for at in (self.fit, self.out) for a in (X, y))
        return Parts(X_fit, y_fit, weight[self.fit], X_out, y_out, weight[self.out])
