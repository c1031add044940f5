"""What the searches share: the order plan, ledger, search; and what a fitted one hands on to its winner.

Scores are sums over rows of numbers between 0 and 1, so that one row moves them by at most 1. What a search will do is
fixed before a row is read: the fits to compare, the choice, the fit of the winner. Proof:
docs/guarantees/model-selection.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone, is_classifier
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from discreet._common.types import BoolArray, FloatArray
from discreet.data.loading import split_target
from discreet.data.public import Public
from discreet.data.rows import on_term_grid
from discreet.data.validation import is_neutral, only_weights, refuse_groups
from discreet.estimators.base import PrivateLinearModel
from discreet.estimators.fitting import plan_fit, public_for, public_inputs_of
from discreet.estimators.task import SHRINK, covers_either
from discreet.model_selection.candidates import (
    budget_of_steps,
    check_candidate,
    check_varied,
    checked_table,
    cost_of,
    is_pipeline,
    keep_promise,
    last_step,
    promise_of,
    readable,
    set_private,
    with_budget,
)
from discreet.privacy import accounting
from discreet.privacy.budget import Budget, budget_from
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.mechanisms import QuantileSelection
from discreet.privacy.random.generator import RandomGenerator
from discreet.privacy.random.pickling import NoGeneratorInPickles
from discreet.privacy.relation import Relation
from discreet.privacy.release import ReleasePlan
from discreet.solvers import Plan

POWERS = {"neg_mean_absolute_error": 1, "neg_mean_squared_error": 2}  # of the error, for regressions


@dataclass(frozen=True)
class RowScore:
    """A score by scikit-learn's name; `low` and `high` are the declared limits of a regression target.

    Guarantee: each row's number lies in [0, 1] and depends on that row and on the model alone.
    """

    scoring: str
    low: float = 0.0
    high: float = 1.0

    @classmethod
    def of(cls, model: Any, scoring: str | None) -> RowScore:
        """The score for an estimator that declares its target; None takes the first that the model has."""
        names = [*POWERS]
        if is_classifier(model):
            names = ["neg_brier_score"] * hasattr(model, "predict_proba") + ["accuracy"]
        if scoring is not None and scoring not in names:
            raise ValueError(f"scoring must be one of {', '.join(names)} for {type(model).__name__}; got {scoring!r}.")
        low, high = (0.0, 1.0) if is_classifier(model) else map(float, last_step(model).y_bounds)
        return cls(scoring or names[0], low, high)

    def rows(self, model: Any, X: Any, y: Any) -> FloatArray:
        """One number in [0, 1] for each row; what is not a number counts as the worst."""
        y = np.asarray(y)
        if self.scoring == "accuracy":
            scores = np.asarray(model.predict(X) == y, dtype=np.float64)
        elif self.scoring == "neg_brier_score":
            # Half the squared distance of the probabilities from the label is at most 1.
            wanted = y[:, None] == np.asarray(model.classes_)[None, :]
            scores = np.asarray(1.0 - 0.5 * np.sum((model.predict_proba(X) - wanted) ** 2, axis=1))
        else:  # absolute errors, with 1 for the width of the declared limits, to which the target is clipped
            errors = np.abs(model.predict(X) - np.clip(y, self.low, self.high)) / (self.high - self.low)
            scores = 1.0 - np.asarray(errors, dtype=np.float64) ** POWERS[self.scoring]
        return np.where(scores >= 0.0, np.minimum(scores, 1.0), 0.0)

    def total(self, model: Any, X: Any, y: Any, weight: FloatArray) -> float:
        """The sum over the rows, each times its weight, which is at most 1; 0 if there are none.

        Exact, since all terms are multiples of a power of two: the rounding of a sum would move it by more than 1.
        """
        if weight.size == 0:  # models refuse to predict for an empty table
            return 0.0
        return float(on_term_grid(weight * self.rows(model, X, y)).sum())

    def in_units(self, mean: float) -> float:
        """A mean of such numbers as scikit-learn states this score."""
        if self.scoring == "accuracy":
            return mean
        return (mean - 1.0) * (self.high - self.low) ** POWERS.get(self.scoring, 0)


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
    neutral: bool = False  # whether rows that cannot be read count as null rows

    def plan(self, model: Any, budget: Budget, everything: bool) -> Plan | ReleasePlan:
        """The plan of a model that gets this budget, for all rows or for those that are not held out."""
        if last_step(model).inference is not False:
            raise ValueError(
                "no interval can be given: searches and cross-validations are not covered by docs/inference.md, as "
                "intervals of a model that was chosen do not hold; set inference=False."
            )
        rows = self.rows if everything else self.rows - self.held_out
        if is_pipeline(model):
            return self._plan_of_pipeline(model, budget_of_steps(budget), rows)
        priced = model.set_params(epsilon=budget, delta=None)
        if Relation(model.relation) is Relation.ADD_REMOVE:
            priced.set_params(public_n=rows)
        public = public_for(priced, rows, self.columns, self.names, sparse=self.sparse, booleans=self.booleans)
        return plan_fit(priced, public, self.classes)

    def _plan_of_pipeline(self, model: Any, budget: Budget, rows: int) -> ReleasePlan:
        """The most that the steps may spend together, each its part."""
        check_candidate(model, "the search")
        public = Public.of(rows, self.columns, relation=last_step(model).relation)
        pure = budget.kind == "pure"
        cost = accounting.pure_event(budget.amount) if pure else accounting.gaussian_event(1.0 / budget.amount)
        return ReleasePlan("pipeline", public, budget, {}, cost=cost)

    def public(self, relation: Relation) -> Public:
        """What is public about the table as a whole."""
        public_n = self.rows if relation is Relation.ADD_REMOVE else None
        return Public.of(self.rows, self.columns, relation=relation, public_n=public_n, neutral=self.neutral)

    def public_inputs(self, models: Sequence[Any]) -> tuple[str, ...]:
        """What any of these models takes as public beside the declarations: all of them were fitted, or may be."""
        plain = [model for model in models if not is_pipeline(model)]  # of a pipeline such inputs are refused
        tables = [Public.of(self.rows, self.columns, **public_inputs_of(model)) for model in plain]
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


# What the search sets itself, or what must be the same for all candidates to be comparable.
FIXED = {
    *("epsilon", "delta", "relation", "public_n", "ledger", "dataset", "random_state", "classes", "y_bounds"),
    "invalid_rows",
}


def check_searchable(model: Any, varied: set[str], name: str) -> None:
    """Refuse estimators and varied parameters that the proofs do not cover; `name` is the parameter that names them."""
    check_scorable(model, "the search")
    check_varied(model, varied, name)
    fixed = sorted(setting for setting in varied if setting.rpartition("__")[2] in FIXED)
    if fixed:
        raise ValueError(f"{name} cannot vary {fixed[0]!r}: set it once, for the whole search.")


def check_scorable(model: Any, what: str) -> None:
    """Refuse estimators whose scores are not sums of bounded numbers, or that book their own cost."""
    last = last_step(model)
    if not isinstance(last, PrivateLinearModel):
        raise ValueError(f"estimator must be one of discreet's; got {type(last).__name__}.")
    needed = "classes" if is_classifier(last) else "y_bounds"
    declared = getattr(last, needed)
    if declared is None or isinstance(declared, str):
        raise ValueError(f"{what} needs {needed} to be declared: the scores depend on them.")
    if last.ledger is not None:
        raise ValueError(f"pass ledger= to {what}, which books all fits at once, and not to its estimator.")
    check_candidate(model, what)


def _winner_has(method: str) -> Any:
    return available_if(lambda search: hasattr(search.estimator, method))


@dataclass(eq=False, repr=False)
class PrivateSearch(NoGeneratorInPickles, MetaEstimatorMixin, BaseEstimator):
    """A search that pays for all it looks at; once it is fitted, everything is handed on to `best_estimator_`."""

    estimator: Any
    _: KW_ONLY
    search_share: float
    held_out: float = 0.2
    epsilon: Any = 1.0
    delta: float | None = None
    ledger: Any = None
    dataset: str | None = None
    random_state: Any = None

    __metadata_request__fit: ClassVar[dict[str, None]] = {"sample_weight": None}

    def plan(self, n_samples: int, n_features: int, sparse: bool = False, feature_names: Any = None) -> ReleasePlan:
        """Return what `fit` would do with a table of this size, and its `guarantee`. No data is needed.

        Parameters
        ----------
        n_samples, n_features : int
            Number of rows and of columns; under "add_remove" the number of rows is `public_n`.
        sparse : bool, default=False
            Whether the table would be sparse.
        feature_names : sequence of str, optional
            Names of the columns, for bounds by name.

        Returns
        -------
        ReleasePlan
            Its `guarantee` is that of the whole.
        """
        return self._planned(n_samples, n_features, sparse, feature_names)

    def fit(self, X: Any, y: Any, **metadata: Any) -> Self:
        """Search, and keep the winner.

        Parameters
        ----------
        X : array, sparse matrix or table of shape (n_samples, n_features)
            The private rows; finite numbers.
        y : array of shape (n_samples,)
            The target.
        sample_weight : array of shape (n_samples,), optional
            Weights between 0 and 1, passed by name; as private as the rows.

        Returns
        -------
        self
            The fitted search itself.

        Guarantee: what is learned is differentially private as `guarantee_` states; the ledger, if there is one,
        grants the cost before anything is computed from the rows.
        """
        self._check()
        refuse_groups(metadata, "a private search")
        X, y = split_target(X, y)
        X, y, metadata = readable(self.estimator, X, y, metadata)
        table = checked_table(self.estimator, X, y, metadata)  # refuses a bad table before any release
        rows = table.rows
        weight = only_weights(metadata, rows.rows)
        plan = self._planned(rows.rows, rows.columns, rows.sparse, table.names, table.booleans)
        with plan.booked(type(self).__name__, self.ledger, self.dataset, self.random_state) as booking:
            model = self._search(plan, X, y, weight, booking.rng)
        self.plan_, self.weighted_, self.best_estimator_ = plan, "sample_weight" in metadata, model
        keep_promise(model, replace(plan.guarantee, leaks=promise_of(model).leaks, release=booking.record))
        # A generator, the part of the budget and silence belong to this run, not to the model.
        last = last_step(self.estimator)
        verbose = self.best_params_.get("verbose", last.verbose)
        set_private(model, random_state=None, public_n=last.public_n, verbose=verbose)
        return self

    def _planned(
        self, n_samples: int, n_features: int, sparse: bool, names: Any, booleans: BoolArray | None = None
    ) -> ReleasePlan:
        """The plan, where it is known as well which columns have the type bool."""
        self._check()
        last = last_step(self.estimator)
        relation = Relation(last.relation)
        public_n = last.public_n if relation is Relation.ADD_REMOVE else None
        rows = Public.of(n_samples, n_features, relation=relation, public_n=public_n).rows
        held_out = round(self.held_out * rows)
        if not 0 < held_out < rows:
            raise ValueError(f"held_out={self.held_out} of {rows} rows leaves no row to fit on, or none to score on.")
        classes = len(last.classes) if is_classifier(last) else 2
        neutral = is_neutral(last.invalid_rows)
        return self._plan(TableShape(rows, held_out, n_features, classes, sparse, names, booleans, neutral))

    def _plan(self, shape: TableShape) -> ReleasePlan:
        """Decide from public facts what will be done."""
        raise NotImplementedError

    def _search(self, plan: ReleasePlan, X: Any, y: Any, weight: Any, rng: RandomGenerator) -> Any:
        """Do what was planned, set `best_params_` and `best_index_`, and return the winner."""
        raise NotImplementedError

    def _check(self) -> None:
        """Refuse what the proof does not cover."""
        raise NotImplementedError

    def _budget(self, rows: int) -> Budget:
        return budget_from(self.epsilon, self.delta, rows)

    def _model(self, settings: dict[str, Any], budget: Budget, rows: int, rng: RandomGenerator) -> Any:
        """A candidate with its budget; seeded runs share one generator, others draw their own keys."""
        model = clone(self.estimator).set_params(**settings)
        check_candidate(model, "the search")
        with_budget(model, budget)
        if Relation(last_step(model).relation) is Relation.ADD_REMOVE:
            model.set_params(public_n=rows)
        return set_private(model, random_state=None if rng.secure else rng)

    def predict(self, X: Any) -> Any:
        """Return what the winner predicts."""
        return self._winner().predict(X)

    @_winner_has("predict_proba")
    def predict_proba(self, X: Any) -> Any:
        """Return the winner's class probabilities."""
        return self._winner().predict_proba(X)

    @_winner_has("predict_log_proba")
    def predict_log_proba(self, X: Any) -> Any:
        """Return the logarithms of the winner's class probabilities."""
        return self._winner().predict_log_proba(X)

    @_winner_has("decision_function")
    def decision_function(self, X: Any) -> Any:
        """Return the winner's linear predictor."""
        return self._winner().decision_function(X)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the winner's exact score: accuracy, or R^2 for regressors. NOT PRIVATE: no noise, no cost booked.

        `discreet.metrics.evaluate` releases scores privately.
        """
        return float(self._winner().score(X, y, sample_weight))

    def _winner(self) -> Any:
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_

    @property
    def guarantee_(self) -> Guarantee:
        """The promise that holds for the winner and the choice together."""
        promise: Guarantee = last_step(self._winner()).guarantee_
        return promise

    @property
    def classes_(self) -> Any:
        """The labels of a classifier."""
        return self._winner().classes_

    @property
    def n_features_in_(self) -> int:
        """The number of columns seen in `fit`."""
        if "best_estimator_" not in self.__dict__:
            raise AttributeError(f"{type(self).__name__} has no n_features_in_ before fit.")
        return int(self.best_estimator_.n_features_in_)

    def __sklearn_tags__(self) -> Any:
        tags, inner = super().__sklearn_tags__(), get_tags(self.estimator)
        tags.estimator_type = inner.estimator_type
        tags.classifier_tags, tags.regressor_tags = inner.classifier_tags, inner.regressor_tags
        tags.input_tags.sparse = inner.input_tags.sparse
        return tags


def check_event(model: Any, plan: Any) -> None:
    """The fit cost what was planned and paid for; anything else is an error of this package."""
    event, pipeline = cost_of(model), is_pipeline(model)
    if event != plan.event and not (pipeline and accounting.fits(event, plan.budget, plan.public.relation)):
        raise RuntimeError(f"{type(model).__name__} cost something else than was planned; do not publish the result.")
