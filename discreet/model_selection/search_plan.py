"""What a private search will do, fixed before a row is read: the fits to compare, the choice, the fit of the winner.

Proof: docs/guarantees/model-selection.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from discreet._common.types import BoolArray
from discreet.data.public import Public
from discreet.estimators.fitting import plan_fit, public_for, public_inputs_of
from discreet.estimators.task import SHRINK, covers_either
from discreet.privacy import accounting
from discreet.privacy.budget import Budget
from discreet.privacy.mechanisms import QuantileSelection
from discreet.privacy.relation import Relation
from discreet.privacy.release import ReleasePlan
from discreet.solvers import Plan

CHOICE_SHARE = 0.1  # of what the search spends: a choice is one number, the fits to compare are many


@dataclass(frozen=True)
class TableShape:
    """The public shape of a table: its rows, of which some are held out, columns and classes.

    `names` and `booleans` tell of the columns what the fits will see: their names, and which have the type bool.
    """

    rows: int
    held_out: int
    columns: int
    classes: int
    sparse: bool
    names: Sequence[str] | None = None
    booleans: BoolArray | None = None

    def plan(self, model: Any, budget: Budget, everything: bool) -> Plan:
        """The plan of a model that gets this budget, for all rows or for those that are not held out."""
        rows = self.rows if everything else self.rows - self.held_out
        priced = model.set_params(epsilon=budget, delta=None)
        if Relation(model.relation) is Relation.ADD_REMOVE:
            priced.set_params(public_n=rows)
        public = public_for(priced, rows, self.columns, self.names, sparse=self.sparse, booleans=self.booleans)
        return plan_fit(priced, public, self.classes)

    def public(self, relation: Relation) -> Public:
        """What is public about the table as a whole."""
        public_n = self.rows if relation is Relation.ADD_REMOVE else None
        return Public.of(self.rows, self.columns, relation=relation, public_n=public_n)

    def public_inputs(self, models: Sequence[Any]) -> tuple[str, ...]:
        """What any of these models takes as public beside the declarations: all of them were fitted, or may be."""
        tables = [Public.of(self.rows, self.columns, **public_inputs_of(model)) for model in models]
        return tuple(dict.fromkeys(what for table in tables for what in table.inputs))


def plan_search(models: Sequence[Any], shape: TableShape, budget: Budget, share: float) -> ReleasePlan:
    """Spend a share of the budget on the search and the rest on the winner; `models` are not fitted, one a candidate.

    Guarantee: the composition of all trials, of the choice and of the costliest last fit keeps `budget`.
    """
    relation = Relation(models[0].relation)
    for shrink in SHRINK:
        kept = 1.0 - shrink
        trial, last = budget.part(kept * share * (1.0 - CHOICE_SHARE) / len(models)), budget.part(kept * (1.0 - share))
        selection = QuantileSelection(2.0 / _choice_epsilon(budget, kept * share * CHOICE_SHARE), 1)
        trials = tuple(shape.plan(model, trial, everything=False) for model in models)
        finals = tuple(shape.plan(model, last, everything=True) for model in models)
        last_fit = costliest([plan.event for plan in finals], budget, relation)
        event = accounting.compose([*(plan.event for plan in trials), selection.event, last_fit])
        if accounting.fits(event, budget, relation):
            parts, settings = {"trials": trials, "selection": selection, "finals": finals}, {"held_out": shape.held_out}
            public, inputs = shape.public(relation), shape.public_inputs(models)
            return ReleasePlan("grid search", public, budget, parts, settings, event, inputs)
    raise ValueError("the costs of these candidates do not add up to the budget; search over settings of one solver.")


def _choice_epsilon(budget: Budget, share: float) -> float:
    """The range of the selection that uses this share: e^2 / 8 in rho, which is e^2 / 4 in mu^2; epsilon if pure."""
    if budget.kind == "pure":
        return budget.amount * share
    if budget.kind == "zcdp":
        return math.sqrt(8.0 * budget.amount * share)
    return 2.0 * budget.gaussian_mu() * math.sqrt(share)


def costliest(events: list[Any], budget: Budget, relation: Relation) -> Any:
    """The event that covers the last fit whichever candidate wins.

    Of several pure events none need cover the others, as their profiles may cross even if their epsilons are equal. All
    are epsilon-DP for the largest of them, and a release of which nothing else is known has the largest profile.
    """
    if all(event == events[0] for event in events):
        return events[0]
    if budget.kind == "pure":
        return accounting.pure_event(max(accounting.pure_epsilon_of(event, relation) for event in events))
    if not covers_either(events, budget):
        raise ValueError("the candidates cost differently once chosen; search over settings of one solver.")
    costs = {"approximate": accounting.mu_of, "zcdp": accounting.rho_of}
    return max(events, key=lambda event: costs[budget.kind](event, relation))
