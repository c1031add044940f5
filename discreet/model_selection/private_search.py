"""Searches whose choice is private, everything being paid for: over a grid, and at random.

The cost of a random search hardly grows with the number of trials: only the best of them is released. What it will do
and cost is fixed before a row is read. Proof: docs/guarantees/private-search.md.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.model_selection import ParameterGrid, ParameterSampler, train_test_split
from sklearn.utils import _safe_indexing

from discreet._common.types import FloatArray, IndexArray
from discreet.estimators.task import SHRINK
from discreet.model_selection.candidates import cost_of, is_pipeline, last_step, silenced
from discreet.model_selection.search import (
    PrivateSearch,
    RowScore,
    TableShape,
    check_event,
    check_searchable,
    costliest,
    plan_search,
)
from discreet.privacy import accounting
from discreet.privacy.budget import Budget
from discreet.privacy.mechanisms import RandomTrials, additive, bounded_fractions
from discreet.privacy.random.generator import RandomGenerator
from discreet.privacy.relation import Relation
from discreet.privacy.release import ReleasePlan


@dataclass(eq=False, repr=False)
class PrivateGridSearch(PrivateSearch):
    """Search over a grid of settings with differential privacy.

    Some rows are held out. Every candidate is fitted privately on the others and scored on those held out; one is
    selected by the exponential mechanism, and fitted again on all rows. A score is the number of held-out rows that are
    predicted right, or for regressors the sum of 1 - |error| / (width of `y_bounds`), each at least 0.

    Guarantee: the winner and the choice are differentially private together, as `guarantee_` states. The scores are
    not released.

    Parameters
    ----------
    estimator : estimator of discreet
        A classifier with `classes=[...]`, or a regressor with `y_bounds=(low, high)`. Its own `epsilon` and `delta` are
        replaced.
    param_grid : dict or list of dict
        Lists of settings by parameter, as in scikit-learn. Few candidates are better: all are paid for.
    epsilon : float or Budget, default=1.0
        Privacy budget of the whole: all fits and the choice. Budgets in Gaussian DP are refused, because a selection
        has no cost in that definition.
    delta : float, optional
        Failure probability of the promise; None means 1/n^2, 0 asks for pure epsilon-DP.
    search_share : float, default=0.5
        Share of the budget for the search; the rest is for the fit of the winner.
    held_out : float, default=0.2
        Share of the rows that the candidates are scored on.
    ledger : Ledger or str, optional
        Where the cost of the whole is booked before any row is used. Needs `dataset`.
    dataset : str, optional
        The name under which the data set's budget was opened in the ledger.
    random_state : int, optional
        None draws cryptographically secure noise. A seed makes the run reproducible, and whoever knows it can
        remove the noise: for tests only, with a warning. `guarantee_.leaks` then names it, and a ledger refuses the
        search unless it was made with `allow_seeded=True`.

    Attributes
    ----------
    best_params_ : dict
        The selected settings.
    best_index_ : int
        The number of the selected candidate.
    best_estimator_ : estimator
        The model with these settings, fitted on all rows; its `guarantee_` is that of the search, and the only promise
        to quote: `best_estimator_.plan_` is the plan of this one fit.
    plan_ : ReleasePlan
        What was fixed before any row was read.
    guarantee_ : Guarantee
        What is promised for the winner and the choice together.
    weighted_ : bool
        Whether `fit` was given `sample_weight`.

    Examples
    --------
    >>> import numpy as np
    >>> from discreet import LogisticRegression
    >>> from discreet.model_selection import PrivateGridSearch
    >>> X = np.random.default_rng(0).uniform(-1.0, 1.0, (2000, 3))
    >>> model = LogisticRegression(bounds=(-1.0, 1.0), classes=[0, 1])
    >>> search = PrivateGridSearch(model, {"alpha": [1e-5, 0.01]}, epsilon=1.0, random_state=0)
    >>> search = search.fit(X, (X[:, 0] > 0.0).astype(int))  # a seed, so that this example repeats; leave it out
    >>> search.best_params_, search.guarantee_.epsilon
    ({'alpha': 0.01}, 1.0)
    """

    param_grid: Any
    _: KW_ONLY
    search_share: float = 0.5

    def _plan(self, shape: TableShape) -> ReleasePlan:
        models = [clone(self.estimator).set_params(**settings) for settings in self._candidates()]
        return plan_search(models, shape, self._budget(shape.rows), self.search_share)

    def _search(self, plan: ReleasePlan, X: Any, y: Any, weight: Any, rng: RandomGenerator) -> Any:
        scores = self._scores(plan, X, y, weight, rng)
        # A selection among runs of one place each is the exponential mechanism on the candidates.
        chosen, _ = plan.selection.choose(rng, -scores, np.ones(scores.size, dtype=np.int64), bounded_fractions(1))
        self.best_index_, self.best_params_ = chosen, self._candidates()[chosen]
        passed = {} if weight is None else {"sample_weight": weight}
        return self._fitted(plan.finals[chosen], self.best_params_, rng, X, y, passed)

    def _scores(self, plan: ReleasePlan, X: Any, y: Any, weight: Any, rng: RandomGenerator) -> FloatArray:
        """The exact score of every candidate on the held-out rows; a row adds a number in [0, 1] to each."""
        weights = np.ones(len(y)) if weight is None else weight
        seed = int(rng.integers(2**31, 1)[0])
        # By position: no row decides where another row goes.
        X_fit, X_out, y_fit, y_out, w_fit, w_out = train_test_split(
            X, y, weights, test_size=plan.held_out, random_state=seed
        )
        passed = {} if weight is None else {"sample_weight": w_fit}
        score = RowScore.of(self.estimator, "accuracy" if is_classifier(self.estimator) else "neg_mean_absolute_error")
        models = (
            self._fitted(trial, settings, rng, X_fit, y_fit, passed)
            for settings, trial in zip(self._candidates(), plan.trials, strict=True)
        )
        return np.array([score.total(model, X_out, y_out, w_out) for model in models])

    def _fitted(
        self, plan: Any, settings: dict[str, Any], rng: RandomGenerator, X: Any, y: Any, passed: dict[str, Any]
    ) -> Any:
        """A candidate that was fitted by its plan."""
        model = self._model(settings, plan.budget, plan.public.rows, rng).fit(X, y, **passed)
        check_event(model, plan)
        return model

    def _candidates(self) -> list[dict[str, Any]]:
        return list(ParameterGrid(self.param_grid))

    def _check(self) -> None:
        """Refuse what the proof does not cover."""
        model = self.estimator
        if is_pipeline(model):
            raise ValueError("PrivateGridSearch takes a model alone; use PrivateSearchCV for a pipeline.")
        check_searchable(model, {name for settings in self._candidates() for name in settings}, "param_grid")
        if Relation(model.relation) is Relation.ADD_REMOVE:
            raise ValueError("relation='add_remove': a row more or less would change who is held out; use 'replace'.")
        budget = self._budget(2)
        if budget.is_infinite or budget.kind == "gdp":
            raise ValueError(f"a private search cannot keep the budget {budget}; use a finite epsilon or rho.")
        if not 0.0 < self.search_share < 1.0:
            raise ValueError(f"search_share must lie between 0 and 1; got {self.search_share!r}.")


MOST_LISTED = 200  # candidates that are planned one by one before the search
PUBLIC_INPUTS = ("start", "public_table")


@dataclass(frozen=True, eq=False)
class Candidates:
    """Lists of settings, or distributions with a method `rvs`, by parameter; several such dicts are alternatives."""

    options: tuple[Mapping[str, Any], ...]

    @classmethod
    def of(cls, given: Any) -> Candidates:
        return cls((given,) if isinstance(given, Mapping) else tuple(given))

    @property
    def varied(self) -> set[str]:
        return {name for option in self.options for name in option}

    def listed(self) -> list[dict[str, Any]] | None:
        """All candidates, if there are not too many; None if they are drawn from distributions."""
        if any(hasattr(values, "rvs") for option in self.options for values in option.values()):
            return None
        grid = ParameterGrid(list(self.options))
        return list(grid) if len(grid) <= MOST_LISTED else None

    def public_inputs(self) -> list[dict[str, Any]]:
        """The different public inputs of all candidates, as settings; they are stated, so they must be lists."""
        inputs = [{name: option[name] for name in PUBLIC_INPUTS if name in option} for option in self.options]
        for name, values in (pair for option in inputs for pair in option.items()):
            if hasattr(values, "rvs"):
                raise ValueError(f"{name} must be a list: the guarantee names the public inputs of all candidates.")
        return list(ParameterGrid(inputs))

    def draw(self, rng: RandomGenerator) -> dict[str, Any]:
        """Settings for one trial, whatever the trials before it were."""
        seed = int(rng.integers(2**31, 1)[0])
        settings: dict[str, Any] = next(iter(ParameterSampler(list(self.options), 1, random_state=seed)))
        return settings


LESS = (*SHRINK, 0.5, 0.7, 0.9)  # of a trial's budget, given up in turn until the accountant agrees


def check_fit(plan: ReleasePlan, model: Any, budget: Budget, events: tuple[Any, ...]) -> None:
    """The fit cost what was planned and paid for; anything else is an error of this package."""
    event, known = cost_of(model), budget.kind in ("gdp", "pure")
    if event not in events and not (known and accounting.fits(event, budget, plan.public.relation)):
        raise RuntimeError(f"{type(model).__name__} cost something else than planned; do not publish the result.")


def _in_words(plan: ReleasePlan) -> tuple[tuple[str, str], ...]:
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
    return tuple(lines.items())


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
    relation, share = Relation(last_step(models[0]).relation), terms.search_share
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
    relation, budget, final = Relation(last_step(models[0]).relation), terms.budget, None
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
    return replace(plan, words=_in_words(plan))


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


Parts = tuple[Any, Any, FloatArray]  # rows, their target and their weights


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

    def parts(self, X: Any, y: Any, weight: FloatArray) -> tuple[Parts, Parts]:
        """The rows to fit on and those held out."""
        fit, out = ((_safe_indexing(X, at), _safe_indexing(y, at), weight[at]) for at in (self.fit, self.out))
        return fit, out


@dataclass(eq=False, repr=False)
class PrivateSearchCV(PrivateSearch):
    """Random search over settings with differential privacy, by scikit-learn's interface of `RandomizedSearchCV`.

    Some rows are held out. A trial draws settings at random, fits them privately on the other rows and scores the model
    on the rows held out, with noise. The number of trials is random as well, and only the trial with the best noisy
    score is released: its settings, its score and its model. Twenty trials then cost little more than one.

    Guarantee: `best_estimator_`, `best_params_`, `best_score_` and `cv_results_` are differentially private together,
    as `guarantee_` states. Who learns how many trials there were, for example from the time that `fit` took or from the
    times in a ledger, is outside the guarantee. Trials show no progress, whatever `verbose` is.

    Parameters
    ----------
    estimator : estimator of discreet, or private Pipeline that ends in one
        A classifier with `classes=[...]`, or a regressor with `y_bounds=(low, high)`. Its own `epsilon` and `delta` are
        replaced; the private steps of a pipeline share the budget in the ratio of their epsilons.
    param_distributions : dict or list of dict
        Lists of settings, or distributions with a method `rvs`, by parameter ("step__alpha" in a pipeline). Every trial
        draws anew, so that settings may repeat.
    n_iter : int, default=10
        Expected number of trials, at least 2.
    scoring : str, optional
        "neg_brier_score" (the default where there are probabilities) or "accuracy"; for regressors
        "neg_mean_absolute_error" (the default) or "neg_mean_squared_error", with errors limited to the width of
        `y_bounds`.
    refit : bool, default=False
        False keeps the model of the best trial, which costs nothing more. True fits the best settings again on all
        rows, with what the search leaves of the budget.
    search_share : float, default=0.2
        With `refit=True`: the share of the budget for the search.
    held_out : float, default=0.2
        Share of the rows that the trials are scored on.
    trials_law : {"geometric", "logarithmic"}, default="geometric"
        The law of the number of trials. The logarithmic law costs a little less and has one trial more often.
    epsilon : float or Budget, default=1.0
        Privacy budget of the whole, in (epsilon, delta) or pure epsilon. Other budgets are refused: the best of
        several trials has no useful cost in Gaussian or zero-concentrated DP.
    delta : float, optional
        Failure probability of the promise; None means 1/n^2, 0 asks for pure epsilon-DP.
    ledger : Ledger or str, optional
        Where the cost of the whole is booked, once, before any row is used. Needs `dataset`.
    dataset : str, optional
        The name under which the data set's budget was opened in the ledger.
    random_state : int, optional
        None draws cryptographically secure noise. A seed makes the run reproducible, and whoever knows it can
        remove the noise: for tests only, with a warning. `guarantee_.leaks` then names it, and a ledger refuses the
        search unless it was made with `allow_seeded=True`.

    Attributes
    ----------
    best_params_ : dict
        The settings of the best trial.
    best_score_ : float
        Its noisy score, in the unit of `scoring`; larger is better. The best of several noisy scores is somewhat too
        good.
    best_estimator_ : estimator
        Its model, or with `refit=True` that of its settings on all rows; its `guarantee_` is that of the search, and
        the only promise to quote: `best_estimator_.plan_` is the plan of this one fit and promises too much.
    best_index_ : int
        0: the only trial that is released.
    cv_results_ : dict
        The released trial alone, in scikit-learn's form.
    plan_ : ReleasePlan
        What was fixed before any row was read.
    guarantee_ : Guarantee
        What is promised for the winner, its settings and its score together.
    weighted_ : bool
        Whether `fit` was given `sample_weight`.

    Examples
    --------
    >>> import numpy as np
    >>> from discreet import LogisticRegression
    >>> from discreet.model_selection import PrivateSearchCV
    >>> X = np.random.default_rng(0).uniform(-1.0, 1.0, (2000, 3))
    >>> model = LogisticRegression(bounds=(-1.0, 1.0), classes=[0, 1])
    >>> search = PrivateSearchCV(model, {"alpha": [1e-5, 1.0, 100.0]}, n_iter=20, epsilon=1.0, random_state=0)
    >>> search = search.fit(X, (X[:, 0] > 0.0).astype(int))  # a seed, so that this example repeats; leave it out
    >>> search.best_params_, search.guarantee_.epsilon
    ({'alpha': 1e-05}, 1.0)
    """

    param_distributions: Any
    _: KW_ONLY
    n_iter: int = 10
    scoring: str | None = None
    refit: bool = False
    search_share: float = 0.2
    trials_law: str = "geometric"

    def _plan(self, shape: TableShape) -> ReleasePlan:
        candidates = Candidates.of(self.param_distributions)
        listed = candidates.listed()
        models = [clone(self.estimator).set_params(**settings) for settings in listed or [{}]]
        inputs = [clone(self.estimator).set_params(**settings) for settings in candidates.public_inputs()]
        trials, budget = RandomTrials.expecting(self.n_iter, self.trials_law), self._budget(shape.rows)
        share, stated = self.search_share if self.refit else None, shape.public_inputs(inputs)
        known = listed is not None and not is_pipeline(self.estimator)  # what each candidate costs
        return plan_trials(models, shape, TrialsTerms(budget, trials, share, known, stated))

    def _search(self, plan: ReleasePlan, X: Any, y: Any, weight: Any, rng: RandomGenerator) -> Any:
        best = self._best_trial(plan, X, y, weight, rng)
        for warning in best.warnings:
            warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
        self.best_params_, self.best_score_, self.best_index_ = best.settings, best.score, 0
        self.cv_results_ = _results(best.settings, best.score)
        if plan.final is None:
            return best.model
        passed = {} if weight is None else {"sample_weight": weight}
        model = self._model(best.settings, plan.final, plan.rows, rng).fit(X, y, **passed)
        check_fit(plan, model, plan.final, plan.final_events)
        return model

    def _best_trial(self, plan: ReleasePlan, X: Any, y: Any, weight: Any, rng: RandomGenerator) -> Trial:
        """The trial with the best noisy score; ties go to the first. Nothing of the others is kept."""
        split = Split.draw(plan, len(y), Relation(last_step(self.estimator).relation), rng)
        fit, out = split.parts(X, y, np.ones(len(y)) if weight is None else weight)
        trials = (self._trial(plan, fit, out, weight is not None, rng) for _ in range(plan.trials.draw(rng)))
        return max(trials, key=lambda trial: trial.score)

    def _trial(self, plan: ReleasePlan, fit: Parts, out: Parts, weighted: bool, rng: RandomGenerator) -> Trial:
        """Draw settings, fit them, score the model with noise: costs one of `plan.trial_events`."""
        settings = Candidates.of(self.param_distributions).draw(rng)
        # The number of progress bars or of warnings would tell that of the trials.
        model = silenced(self._model(settings, plan.trial, plan.rows - plan.held_out, rng))
        passed = {"sample_weight": fit[2]} if weighted else {}
        score = RowScore.of(self.estimator, self.scoring)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model.fit(fit[0], fit[1], **passed)
        check_fit(plan, model, plan.trial, plan.trial_events)
        with warnings.catch_warnings():  # never shown: such a warning would come from the exact rows held out
            warnings.simplefilter("ignore")
            exact = np.array([score.total(model, *out)])
        noisy = float(plan.score.release(rng, exact, bounded_fractions(1))[0])
        return Trial(settings, model, score.in_units(noisy / plan.held_out), tuple(caught))

    def _check(self) -> None:
        """Refuse what the proof does not cover."""
        check_searchable(self.estimator, Candidates.of(self.param_distributions).varied, "param_distributions")
        RowScore.of(self.estimator, self.scoring)
        budget = self._budget(2)
        if budget.is_infinite or budget.kind in ("gdp", "zcdp"):
            raise ValueError(
                f"a private search cannot keep the budget {budget}; use a finite epsilon with delta, or pure epsilon. "
                "The best of a random number of trials has no useful cost in Gaussian or zero-concentrated DP."
            )
        if isinstance(self.n_iter, bool) or not isinstance(self.n_iter, int | np.integer) or self.n_iter < 2:
            raise ValueError(f"n_iter must be a whole number of at least 2; got {self.n_iter!r}.")
        if self.refit and not 0.0 < self.search_share < 1.0:
            raise ValueError(f"search_share must lie between 0 and 1; got {self.search_share!r}.")


def _results(settings: dict[str, Any], score: float) -> dict[str, Any]:
    """The released trial as scikit-learn's `cv_results_`."""
    columns = {f"param_{name}": np.array([value], dtype=object) for name, value in settings.items()}
    return columns | {
        "params": [settings],
        "mean_test_score": np.array([score]),
        "rank_test_score": np.array([1], dtype=np.int32),
    }
